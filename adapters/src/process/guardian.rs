//! The guardian process: forks a task init for each task, and kills what a killed init leaves.
//!
//! It stays small on purpose: one thread, no runtime, no parsing. Its standard input is the socket
//! to the worker; a message on it is one byte and the three descriptors of a task.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IoSliceMut, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, send};
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
        let timeout = if self.lost.is_empty() { PollTimeout::NONE } else { WALK_AGAIN_MS.into() };
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(fds.get(1).is_some_and(|fd| fd.any() == Some(true)))
    }

    fn receive(&mut self) {
        let Some(worker) = &self.worker else { return };
        match receive_ends(worker.as_raw_fd()) {
            Ok(Some(ends)) => self.start(ends),
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            // Out of descriptors: the message and its ends are gone, which the worker sees.
            Err(Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS) => {}
            Ok(None) | Err(_) => self.worker = None,
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

    /// A child that is not an init was orphaned by the death of one.
    fn kill_strays(&mut self) {
        if self.lost.is_empty() {
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

/// The descriptors of a task; `None` at the end of file.
fn receive_ends(socket: RawFd) -> Result<Option<Ends>, Errno> {
    let mut byte = [0; 1];
    let mut data = [IoSliceMut::new(&mut byte)];
    let mut space = nix::cmsg_space!([RawFd; 3]);
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket, &mut data, Some(&mut space), flags)?;
    let mut fds = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(raw) = control {
            // SAFETY: the kernel made these descriptors for this message.
            fds.extend(raw.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
        }
    }
    if message.bytes == 0 {
        return Ok(None);
    }
    let [control, stdout, stderr] = fds.try_into().map_err(|_| Errno::ENOBUFS)?;
    Ok(Some(Ends { control, stdout, stderr }))
}
