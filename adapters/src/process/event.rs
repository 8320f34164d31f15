//! What the worker asks for and what it hears back.

use std::ffi::OsString;
use std::path::PathBuf;

use tokio::sync::OwnedSemaphorePermit;

/// A command to run.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The caller's handle; every event of this command carries it. Free again after the last one.
    pub key: u64,
    /// A path, or a name that is looked up in the `PATH` of `env`.
    pub program: OsString,
    /// Its arguments, without the program's own name.
    pub args: Vec<OsString>,
    /// The whole environment: nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// Where it starts. A relative program path is relative to this.
    pub cwd: PathBuf,
}

/// What happened to a command.
///
/// For each launch there is either one `FailedToStart`, or a `Started`, any number of `Line`s and
/// one `Ended`. An `Ended` with [`Exit::Lost`] may come without a `Started`.
#[derive(Debug)]
pub enum ProcessEvent {
    /// The program runs.
    Started {
        /// The handle of the launch.
        key: u64,
        /// Process id of the command itself.
        pid: i32,
    },
    /// The program never ran.
    FailedToStart {
        /// The handle of the launch.
        key: u64,
        /// Who has to change something before it can.
        fault: Fault,
        /// What was tried, why it failed and what to do.
        error: String,
    },
    /// A piece of output.
    Line {
        /// The handle of the launch.
        key: u64,
        /// What was written.
        line: Line,
    },
    /// The command is over and so are all its descendants; nothing of this key follows.
    Ended {
        /// The handle of the launch.
        key: u64,
        /// How the command itself ended.
        exit: Exit,
        /// Descendants that were still there when the command ended, and were killed.
        killed: u32,
        /// Processes that did not die of SIGKILL in time (stuck in the kernel, or of another
        /// user). They are tried again for as long as they live.
        survivors: u32,
    },
    /// The guardian is gone. Tasks that run go on under their own inits; the next launch starts
    /// another guardian.
    GuardianLost {
        /// How it ended.
        error: String,
        /// The commands that run without a second line of defence.
        running: Vec<u64>,
    },
}

/// Whose fault a failed start is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The command's: program, arguments, environment or directory. Another try here fails too.
    Command,
    /// The worker's: no process, memory or descriptor to spare, no guardian. May pass.
    Worker,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// Its supervisor was killed, then all that was left of the task. How far it came is unknown.
    Lost,
}

/// Where a line was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// File descriptor 1.
    Stdout,
    /// File descriptor 2.
    Stderr,
}

/// A line of output, or a part of one that is longer than the cap.
///
/// Appending [`Line::push_to`] of every line of a stream gives its bytes back unchanged.
/// A line keeps room of its command's output budget until it is dropped: a consumer that holds
/// lines slows the command down instead of filling memory.
#[derive(Debug)]
pub struct Line {
    /// Where it was written.
    pub stream: Stream,
    /// Any bytes but `\n`; a `\r` before it stays.
    pub bytes: Vec<u8>,
    /// What came after these bytes.
    pub ending: Ending,
    pub(super) room: Option<OwnedSemaphorePermit>,
}

/// What came after the bytes of a [`Line`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A newline.
    Newline,
    /// More of the same line, which is longer than the cap: the next `Line` of the stream.
    Continues,
    /// The end of the stream.
    End,
}

impl Line {
    /// Appends the bytes as they were written, newline included.
    pub fn push_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes);
        if self.ending == Ending::Newline {
            out.push(b'\n');
        }
    }

    /// Gives the bytes away and frees the room they took in the budget.
    pub fn into_bytes(self) -> Vec<u8> {
        drop(self.room);
        self.bytes
    }
}
