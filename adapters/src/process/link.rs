//! The worker's end of a guardian: starting it, handing it tasks, noticing its death.

use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use nix::libc;
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, recv, sendmsg, socketpair,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;

use super::frame::GREETING;

/// A guardian says hello within milliseconds; a machine that swaps may take longer.
const GREETING_LIMIT: Duration = Duration::from_secs(10);

/// A guardian takes under a millisecond for a task.
const SEND_AGAIN: Duration = Duration::from_millis(2);

/// How to start a guardian.
#[derive(Clone, Debug)]
pub struct GuardianCommand {
    program: PathBuf,
    args: Vec<OsString>,
}

impl GuardianCommand {
    /// A program that calls [`super::guardian::main`] when started with these arguments.
    pub fn new<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = A>,
    ) -> GuardianCommand {
        let args = args.into_iter().map(Into::into).collect();
        GuardianCommand { program: program.into(), args }
    }

    /// This very program with the argument `guardian`.
    ///
    /// Not by its path: the file there may have been replaced by another version since.
    pub fn this_program() -> GuardianCommand {
        GuardianCommand::new("/proc/self/exe", ["guardian"])
    }

    /// Starts it and waits for its greeting.
    pub(super) async fn start(&self) -> io::Result<Guardian> {
        let (ours, theirs) =
            socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?;
        let mut command = Command::new(&self.program);
        command.args(&self.args).stdin(Stdio::from(theirs)).stdout(Stdio::null());
        let mut child = command.spawn().map_err(|error| self.explain(error))?;
        // The command holds the guardian's end of the socket: kept, it would hide its death.
        drop(command);
        let (died, death) = oneshot::channel();
        thread::Builder::new().name("guardian-wait".into()).spawn(move || {
            let _ = died.send(child.wait());
        })?;
        let link = Link::new(ours)?;
        match tokio::time::timeout(GREETING_LIMIT, link.greeting()).await {
            Ok(Ok(())) => Ok(Guardian { link, death }),
            Ok(Err(error)) => Err(self.explain(error)),
            Err(_) => Err(self.explain(io::Error::from(io::ErrorKind::TimedOut))),
        }
    }

    fn explain(&self, error: io::Error) -> io::Error {
        let program = self.program.display();
        io::Error::new(
            error.kind(),
            format!(
                "the guardian `{program}` did not start: {error}; it must be this version's \
                 `tenure guardian` or `tenure-guardian`"
            ),
        )
    }
}

/// A guardian that greeted.
pub(super) struct Guardian {
    pub(super) link: Link,
    /// Says how it ended.
    pub(super) death: oneshot::Receiver<io::Result<ExitStatus>>,
}

/// The socket to a guardian. Closing it ends the guardian after everything it runs.
pub(super) struct Link {
    socket: AsyncFd<OwnedFd>,
}

impl Link {
    fn new(socket: OwnedFd) -> io::Result<Link> {
        std::os::unix::net::UnixStream::from(socket.try_clone()?).set_nonblocking(true)?;
        // SAFETY: an `OwnedFd` names one open descriptor until it is dropped.
        let socket = unsafe { AsyncFd::register(socket)? };
        Ok(Link { socket })
    }

    async fn greeting(&self) -> io::Result<()> {
        let mut bytes = [0; 64];
        let length = self
            .socket
            .async_io(Interest::READABLE, |fd| {
                Ok(recv(fd.as_raw_fd(), &mut bytes, MsgFlags::empty())?)
            })
            .await?;
        match &bytes[..length] {
            GREETING => Ok(()),
            b"" => Err(io::Error::other("it ended before it was ready")),
            other => Err(io::Error::other(format!(
                "it greeted with `{}` instead of `{}`",
                other.escape_ascii(),
                GREETING.escape_ascii()
            ))),
        }
    }

    /// Hands over the ends of a task: control socket, stdout, stderr.
    pub(super) async fn send(&self, ends: [OwnedFd; 3]) -> io::Result<()> {
        let fds: Vec<RawFd> = ends.iter().map(AsRawFd::as_raw_fd).collect();
        let rights = [ControlMessage::ScmRights(&fds)];
        let flags = MsgFlags::MSG_NOSIGNAL;
        let message = |fd: &OwnedFd| {
            let data = [IoSlice::new(b"t")];
            Ok(sendmsg::<()>(fd.as_raw_fd(), &data, &rights, flags, None)?)
        };
        loop {
            match self.socket.async_io(Interest::WRITABLE, message).await {
                // So many descriptors are on their way that the kernel takes no more until the
                // guardian has received some; it cannot tell when.
                Err(error) if error.raw_os_error() == Some(libc::ETOOMANYREFS) => {
                    tokio::time::sleep(SEND_AGAIN).await;
                }
                other => return other.map(|_| ()),
            }
        }
    }
}
