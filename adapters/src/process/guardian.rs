//! The guardian process: forks a task init for each task, and kills what a killed init leaves.
//!
//! It stays small on purpose: one thread, no runtime, no parsing. Its standard input is the socket
//! to the worker; a message on it is one byte and the three descriptors of a task.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{MsgFlags, send};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};

use super::event::Exit;
use super::frame::{GREETING, Stage, Tell};
use super::init::{self, Ends};
use super::tree;

/// How often the strays of a killed init are looked for again, in milliseconds.
const WALK_AGAIN_MS: u8 = 10;

/// Runs the guardian; for the hidden subcommand `tenure guardian`.
///
/// Must be called before any thread is started. Returns when the worker is gone and so is
/// everything that it ran.
pub fn main() -> ExitCode {
    match Guardian::new().and_then(Guardian::serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tenure guardian: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Guardian {
    /// `None` once the worker is gone.
    worker: Option<OwnedFd>,
    signals: SignalFd,
    /// The inits that live, with their control sockets: to speak for one that was killed.
    inits: BTreeMap<i32, OwnedFd>,
    /// Control sockets of killed inits, until their strays are dead.
    lost: Vec<OwnedFd>,
    alone: bool,
}

impl Guardian {
    fn new() -> io::Result<Guardian> {
        let worker = take_stdin()?;
        // Ctrl-C in a terminal, or a signal to the worker's group, is the worker's to handle.
        // Fails only for a group leader, which is as good.
        let _ = nix::unistd::setsid();
        nix::unistd::chdir("/")?;
        let _ = prctl::set_name(c"tenure-guardian");
        prctl::set_child_subreaper(true)?;
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None)?;
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        let signals = SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        send(worker.as_raw_fd(), GREETING, MsgFlags::MSG_NOSIGNAL)?;
        let (inits, lost) = (BTreeMap::new(), Vec::new());
        Ok(Guardian { worker: Some(worker), signals, inits, lost, alone: true })
    }

    fn serve(mut self) -> io::Result<()> {
        while self.worker.is_some() || !self.alone {
            if self.wait()? {
                self.receive();
            }
            while let Ok(Some(_)) = self.signals.read_signal() {}
            self.reap();
            self.kill_strays();
        }
        Ok(())
    }

    /// Blocks until something happens; true if the worker's socket has something to read.
    fn wait(&self) -> io::Result<bool> {
        let mut fds = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        fds.extend(self.worker.as_ref().map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)));
        let timeout = if self.is_clearing() { WALK_AGAIN_MS.into() } else { PollTimeout::NONE };
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(fds.get(1).is_some_and(|fd| fd.any() == Some(true)))
    }

    fn receive(&mut self) {
        let Some(worker) = &self.worker else { return };
        match receive_fds(worker.as_raw_fd()) {
            Ok(Some(fds)) => self.on_fds(fds),
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Ok(None) | Err(_) => self.worker = None,
        }
    }

    fn on_fds(&mut self, fds: Vec<OwnedFd>) {
        match <[OwnedFd; 3]>::try_from(fds) {
            Ok([control, stdout, stderr]) => self.start(Ends { control, stdout, stderr }),
            // Out of descriptors. Those that are missing are closed, like these after this.
            Err(fds) => {
                if let Some(control) = fds.into_iter().next() {
                    tell(control, Tell::Failed { stage: Stage::Setup, errno: libc::EMFILE });
                }
            }
        }
    }

    fn start(&mut self, ends: Ends) {
        let Ok(control) = ends.control.try_clone() else {
            return tell(ends.control, Tell::Failed { stage: Stage::Fork, errno: libc::EMFILE });
        };
        // SAFETY: this process has one thread, so its child may allocate and run any code.
        match unsafe { fork() } {
            Ok(ForkResult::Parent { child }) => {
                self.inits.insert(child.as_raw(), control);
                self.alone = false;
            }
            Ok(ForkResult::Child) => {
                // Descriptors of the worker and of other tasks must not be held open here: their
                // end of file means that somebody died.
                self.worker = None;
                self.inits.clear();
                self.lost.clear();
                drop(control);
                init::run(ends)
            }
            Err(errno) => tell(control, Tell::Failed { stage: Stage::Fork, errno: errno as i32 }),
        }
    }

    fn reap(&mut self) {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, 0)) => {
                    self.inits.remove(&pid.as_raw());
                }
                Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, _, _)) => {
                    self.lost.extend(self.inits.remove(&pid.as_raw()));
                }
                Ok(WaitStatus::StillAlive) => return self.alone = false,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return self.alone = true,
            }
        }
    }

    /// Whether there may be strays. Without a worker nothing but inits may live, and they not long.
    fn is_clearing(&self) -> bool {
        self.worker.is_none() || !self.lost.is_empty()
    }

    /// A child that is not an init was orphaned by the death of one.
    fn kill_strays(&mut self) {
        if !self.is_clearing() {
            return;
        }
        let me = nix::unistd::getpid().as_raw();
        let killed = tree::kill_below(me, |pid| self.inits.contains_key(&pid));
        if killed.pids.is_empty() {
            let survivors = killed.refused.len() as u32;
            for control in self.lost.drain(..) {
                tell(control, Tell::Ended { exit: Exit::Lost, killed: 0, survivors });
            }
        }
    }
}

fn tell(control: OwnedFd, tell: Tell) {
    // A worker that is gone does not need to know.
    let _ = UnixStream::from(control).write_all(&tell.encode());
}

/// Moves the socket away from descriptor 0, where it would leak into every task.
fn take_stdin() -> io::Result<OwnedFd> {
    let stdin = io::stdin();
    let kind = nix::sys::socket::getsockopt(&stdin, nix::sys::socket::sockopt::SockType);
    if kind != Ok(nix::sys::socket::SockType::SeqPacket) {
        return Err(io::Error::other(
            "standard input is not a worker's socket; the guardian is started by the worker, \
             not by hand",
        ));
    }
    // SAFETY: `fcntl` gives a new descriptor, which nobody else owns.
    let socket = unsafe {
        let fd = libc::fcntl(0, libc::F_DUPFD_CLOEXEC, 3);
        OwnedFd::from_raw_fd(Errno::result(fd)?)
    };
    nix::unistd::dup2_stdin(File::open("/dev/null")?)?;
    close_others(socket.as_raw_fd());
    Ok(socket)
}

/// Closes what the program that started the worker left open: it may be a listening socket.
fn close_others(keep: RawFd) {
    let last = libc::c_uint::MAX as RawFd;
    for (first, last) in [(3, keep - 1), (keep + 1, last)] {
        // SAFETY: nothing but `keep` and the standard streams is owned by this process yet.
        unsafe { libc::syscall(libc::SYS_close_range, first, last as libc::c_uint, 0) };
    }
}

/// The descriptors of a task, fewer if there is no room for them; `None` at the end of file.
///
/// By hand, because nix drops the numbers of those that did arrive when others did not, which
/// would leave them open for ever.
fn receive_fds(socket: RawFd) -> Result<Option<Vec<OwnedFd>>, Errno> {
    let mut byte = 0_u8;
    let mut data = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // Aligned, and larger than a header and three descriptors.
    let mut space = [0_u64; 8];
    // SAFETY: all zeros is an empty message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut data;
    message.msg_iovlen = 1;
    message.msg_control = space.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&space) as _;
    // SAFETY: the message points to buffers that live here, with their sizes.
    let length = unsafe { libc::recvmsg(socket, &raw mut message, libc::MSG_CMSG_CLOEXEC) };
    let length = Errno::result(length)?;
    // SAFETY: the kernel filled the message in, and made its descriptors for us.
    let fds = unsafe { owned_fds(&message) };
    Ok((length > 0).then_some(fds))
}

/// # Safety
/// The message must be one that `recvmsg` filled in, and be passed once only.
unsafe fn owned_fds(message: &libc::msghdr) -> Vec<OwnedFd> {
    let mut fds = Vec::new();
    // SAFETY: the macros stay within the message; each descriptor is ours, see above.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while !header.is_null() {
            if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*header).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                let first = libc::CMSG_DATA(header).cast::<RawFd>();
                for at in 0..bytes / size_of::<RawFd>() {
                    fds.push(OwnedFd::from_raw_fd(first.add(at).read_unaligned()));
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    fds
}
