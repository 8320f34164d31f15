//! The task init: forks the command, waits for it, and leaves only when nothing of it is left.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use super::event::Exit;
use super::frame::{Ask, Frames, Program, Stage, Tell};
use super::{spawn, tree};

/// How often the tree is walked again while it is being killed.
const WALK_AGAIN: Duration = Duration::from_millis(10);

/// The same, once it has proved hard to kill.
const WALK_RARELY: Duration = Duration::from_secs(1);

/// Time for SIGKILL to work. A process that takes longer is stuck in the kernel (a dead network
/// file system, a GPU driver) or belongs to another user: the worker is told, and the walk goes on.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// What the guardian hands over for one task.
pub(super) struct Ends {
    pub(super) control: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// Runs the task init in a process that was just forked for it. All signals are blocked.
pub(super) fn run(ends: Ends) -> ! {
    let code = catch_unwind(AssertUnwindSafe(|| match Init::new(ends).and_then(Init::serve) {
        Ok(()) => 0,
        Err(_) => 1,
    }));
    // SAFETY: ends the process without the guardian's destructors. Descendants that an error
    // left behind fall to the guardian, which sees that the code is not 0.
    unsafe { libc::_exit(code.unwrap_or(101)) }
}

struct Init {
    control: UnixStream,
    frames: Frames,
    signals: SignalFd,
    /// Given to the command, then closed, so that its end is the end of the pipe.
    output: Option<(OwnedFd, OwnedFd)>,
    main: Main,
    phase: Phase,
    killed: BTreeSet<i32>,
    alone: bool,
    told_end: bool,
}

/// The command itself.
enum Main {
    Awaited,
    /// Forked, and not yet known whether it could execute.
    Starting {
        pid: i32,
        status: OwnedFd,
    },
    Running {
        pid: i32,
    },
    Failed,
    Over(Exit),
}

/// How much of the task may still live.
#[derive(Clone, Copy)]
enum Phase {
    All,
    /// Everything was asked to end. The end of the command does not cut the grace short for its
    /// children: a training process may write its checkpoint after the shell around it has gone.
    Stopping {
        until: Option<Instant>,
    },
    Nothing {
        since: Instant,
    },
}

impl Init {
    fn new(ends: Ends) -> Result<Init, Errno> {
        // A group of its own, so that a signal to the guardian's group does not end both.
        nix::unistd::setsid()?;
        prctl::set_child_subreaper(true)?;
        let _ = prctl::set_name(c"tenure-init");
        let mut mask = SigSet::empty();
        mask.add(Signal::SIGCHLD);
        Ok(Init {
            control: UnixStream::from(ends.control),
            frames: Frames::default(),
            signals: SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?,
            output: Some((ends.stdout, ends.stderr)),
            main: Main::Awaited,
            phase: Phase::All,
            killed: BTreeSet::new(),
            alone: false,
            told_end: false,
        })
    }

    fn serve(mut self) -> Result<(), Errno> {
        while !self.finished() {
            let [control, status, child] = self.wait()?;
            // The status first: a command that has ended may be one that never executed.
            if status {
                self.settle_start();
            }
            if child {
                while let Ok(Some(_)) = self.signals.read_signal() {}
            }
            self.reap();
            if control {
                self.read_control();
            }
            self.advance();
        }
        Ok(())
    }

    /// Blocks until something happens. Which of control, status pipe and children was it?
    fn wait(&self) -> Result<[bool; 3], Errno> {
        let mut fds = vec![
            PollFd::new(self.control.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
        ];
        if let Main::Starting { status, .. } = &self.main {
            fds.push(PollFd::new(status.as_fd(), PollFlags::POLLIN));
        }
        // Once the worker is gone or the end is told, end of file there would spin the loop.
        let skip = usize::from(matches!(self.phase, Phase::Nothing { .. }));
        match poll(&mut fds[skip..], self.timeout()) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno),
        }
        let ready = |at: usize| fds.get(at).is_some_and(|fd| fd.any() == Some(true));
        Ok([ready(0), ready(2), ready(1)])
    }

    fn timeout(&self) -> PollTimeout {
        let left = match self.phase {
            Phase::All | Phase::Stopping { until: None } => return PollTimeout::NONE,
            Phase::Stopping { until: Some(until) } => {
                // Rounded up: waking early would spin until the grace is over.
                until.saturating_duration_since(Instant::now()) + Duration::from_millis(1)
            }
            Phase::Nothing { .. } if self.told_end => WALK_RARELY,
            Phase::Nothing { .. } => WALK_AGAIN,
        };
        PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
    }

    fn read_control(&mut self) {
        let mut buffer = [0; 64 << 10];
        match nix::unistd::read(&self.control, &mut buffer) {
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Ok(length) if length > 0 => self.on_bytes(&buffer[..length]),
            // The worker died, or let go of the task.
            Ok(_) | Err(_) => self.kill_all(),
        }
    }

    fn on_bytes(&mut self, bytes: &[u8]) {
        self.frames.push(bytes);
        loop {
            match self.frames.next().and_then(|f| f.map(|f| Ask::decode(&f)).transpose()) {
                Ok(None) => return,
                Ok(Some(Ask::Run(program))) => self.start(&program),
                Ok(Some(Ask::Stop { grace_ms })) => self.stop(Duration::from_millis(grace_ms)),
                // Not a worker that we understand: the same as one that is gone.
                Err(_) => return self.kill_all(),
            }
        }
    }

    fn start(&mut self, program: &Program) {
        let Some((stdout, stderr)) = self.output.take() else { return };
        match spawn::spawn(program, stdout, stderr) {
            Ok(spawned) => {
                self.main = Main::Starting { pid: spawned.pid, status: spawned.status };
                self.alone = false;
            }
            Err(errno) => self.fail(Stage::Fork, errno as i32),
        }
    }

    fn settle_start(&mut self) {
        let Main::Starting { pid, status } = &self.main else { return };
        let pid = *pid;
        match spawn::read_status(status) {
            None => {
                self.main = Main::Running { pid };
                self.tell(Tell::Started { pid });
            }
            Some((stage, errno)) => self.fail(stage, errno),
        }
    }

    fn fail(&mut self, stage: Stage, errno: i32) {
        self.main = Main::Failed;
        self.tell(Tell::Failed { stage, errno });
    }

    fn stop(&mut self, grace: Duration) {
        if grace.is_zero() {
            return self.kill_all();
        }
        // A second request may shorten the grace, never lengthen it.
        let until = Instant::now().checked_add(grace);
        match self.phase {
            Phase::Nothing { .. } => {}
            Phase::Stopping { until: Some(old) } if until.is_none_or(|new| new >= old) => {}
            Phase::Stopping { .. } => self.phase = Phase::Stopping { until },
            Phase::All => {
                self.phase = Phase::Stopping { until };
                let me = nix::unistd::getpid().as_raw();
                tree::signal_below(me, Signal::SIGTERM);
                // One that was stopped could not act on it.
                tree::signal_below(me, Signal::SIGCONT);
            }
        }
    }

    fn kill_all(&mut self) {
        if !matches!(self.phase, Phase::Nothing { .. }) {
            self.phase = Phase::Nothing { since: Instant::now() };
        }
    }

    fn reap(&mut self) {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => self.on_exit(pid.as_raw(), Exit::Code(code)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => {
                    self.on_exit(pid.as_raw(), Exit::Signal(signal as i32));
                }
                Ok(WaitStatus::StillAlive) => return self.alone = false,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return self.alone = true,
            }
        }
    }

    fn on_exit(&mut self, pid: i32, exit: Exit) {
        if matches!(self.main, Main::Starting { pid: main, .. } if main == pid) {
            self.settle_start();
        }
        if matches!(self.main, Main::Running { pid: main } if main == pid) {
            self.main = Main::Over(exit);
        }
    }

    /// Moves on to what the state of the command and the clock now ask for.
    fn advance(&mut self) {
        match self.phase {
            Phase::All if matches!(self.main, Main::Over(_) | Main::Failed) => self.kill_all(),
            Phase::Stopping { until: Some(until) } if until <= Instant::now() => self.kill_all(),
            Phase::All | Phase::Stopping { .. } | Phase::Nothing { .. } => {}
        }
        if let Phase::Nothing { since } = self.phase
            && !self.alone
        {
            self.kill(since);
        }
        if self.alone && matches!(self.main, Main::Over(_)) {
            self.tell_end(0);
        }
    }

    fn kill(&mut self, since: Instant) {
        let killed = tree::kill_below(nix::unistd::getpid().as_raw(), |_| false);
        let left = killed.pids.len() + killed.refused.len();
        // The command itself is not one of its descendants.
        let main = match self.main {
            Main::Starting { pid, .. } | Main::Running { pid } => pid,
            Main::Awaited | Main::Failed | Main::Over(_) => 0,
        };
        self.killed.extend(killed.pids.into_iter().filter(|pid| *pid != main));
        if since.elapsed() > KILL_LIMIT {
            // There is a child, though it may not be ours to see.
            self.tell_end(left.max(1) as u32);
        }
    }

    fn tell_end(&mut self, survivors: u32) {
        if self.told_end || matches!(self.main, Main::Failed) {
            return;
        }
        self.told_end = true;
        let exit = match self.main {
            Main::Over(exit) => exit,
            Main::Awaited | Main::Starting { .. } | Main::Running { .. } | Main::Failed => {
                Exit::Lost
            }
        };
        self.tell(Tell::Ended { exit, killed: self.killed.len() as u32, survivors });
    }

    fn tell(&mut self, tell: Tell) {
        // A worker that is gone is noticed by its end of file.
        let _ = self.control.write_all(&tell.encode());
    }

    fn finished(&self) -> bool {
        let over = matches!(self.main, Main::Over(_) | Main::Failed);
        self.alone && (over || matches!(self.phase, Phase::Nothing { .. }))
    }
}
