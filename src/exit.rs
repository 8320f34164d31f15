//! How the program ends: exit codes, and failures with the code they lead to.

use std::fmt;
use std::process::ExitCode;

/// What `tenure --help` says about exit codes.
pub(crate) const HELP: &str = "\
Exit codes:
  0    done; for `wait`: the task is COMPLETED
  1    the task FAILED
  2    wrong usage or settings
  3    not found
  4    conflict (the key belongs to another submission, the task is over, the name is in use)
  5    not allowed
  6    unavailable: no server answers, or it does not lead
  8    the task was CANCELLED
  10   an invariant was violated (bench, sim)
  11   the budget was used up before the end (sim)
  124  timeout
`tenure run` ends with the task's own code instead: 128+n if signal n ended it, 124 if its time was
up, 127 if its program could not be started, 130 after Ctrl-C, 125 if Tenure itself failed.";

/// A documented exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// As asked.
    Done,
    /// The task failed.
    TaskFailed,
    /// Wrong usage or settings.
    Usage,
    /// There is no such thing.
    NotFound,
    /// It contradicts what is there.
    Conflict,
    /// Not allowed.
    NotAllowed,
    /// Nobody there to do it; may work later.
    Unavailable,
    /// The task was cancelled.
    Cancelled,
    /// A promise of Tenure was broken.
    InvariantViolated,
    /// A simulation did not reach its end within its budget.
    BudgetUsed,
    /// Time was up.
    Timeout,
    /// `tenure run` itself failed, not its task.
    Own,
    /// A task's own code.
    Task(u8),
}

impl Exit {
    /// The number.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::TaskFailed => 1,
            Exit::Usage => 2,
            Exit::NotFound => 3,
            Exit::Conflict => 4,
            Exit::NotAllowed => 5,
            Exit::Unavailable => 6,
            Exit::Cancelled => 8,
            Exit::InvariantViolated => 10,
            Exit::BudgetUsed => 11,
            Exit::Timeout => 124,
            Exit::Own => 125,
            Exit::Task(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// Why a command could not do what was asked, in a sentence that says what to do.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// The value, the place and the remedy.
    pub(crate) message: String,
}

impl Failure {
    /// A failure of this kind.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Failure {
        Failure { exit, message: message.into() }
    }

    /// Wrong usage or settings.
    pub(crate) fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, message)
    }

    /// Something this program needs from the machine is not there.
    pub(crate) fn unavailable(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Unavailable, message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
