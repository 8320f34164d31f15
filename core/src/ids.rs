//! Names of things, each its own type, so that none is taken for another.
//!
//! Names that people choose (of workers, labels) are text outside. The adapter that first sees one
//! gives it a number, since core only ever compares them.

use core::fmt;
use core::num::NonZeroU32;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty) $prefix:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

id! {
    /// One run to be done. Given by the store, ascending.
    TaskId(u64) "t"
}
id! {
    /// A worker's name, as a number that its adapter gave.
    WorkerId(u32) "w"
}
id! {
    /// A label's text, as a number that its adapter gave.
    LabelId(u32) "l"
}
id! {
    /// One connection of one peer to one master. Never used twice in a process; later ones have higher numbers.
    SessionId(u64) "s"
}
id! {
    /// A client's question that waits for its answer.
    RequestId(u64) "r"
}
id! {
    /// One effect that core ordered; its answer repeats it.
    EffectId(u64) "#"
}
id! {
    /// One start of a process, drawn at random. [`Incarnation::DOCUMENTED`] stands for a peer that has none.
    Incarnation(u64) "i"
}
id! {
    /// One leader's term. Only grows; the fencing token of the leader. 0 is "before any leader".
    Epoch(u64) "e"
}

impl Incarnation {
    /// A worker of the documented protocol says no incarnation and counts as this one.
    pub const DOCUMENTED: Incarnation = Incarnation(0);
}

impl Epoch {
    /// The term after this one.
    #[must_use]
    pub fn next(self) -> Epoch {
        Epoch(self.0 + 1)
    }
}

/// Which try of a task this is; the first is 1. Only grows; the fencing token of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(pub NonZeroU32);

impl Attempt {
    /// The first try of a task.
    pub const FIRST: Attempt = Attempt(NonZeroU32::MIN);

    /// The attempt of this number, if it is one: numbers begin at 1.
    #[must_use]
    pub fn new(number: u32) -> Option<Attempt> {
        NonZeroU32::new(number).map(Attempt)
    }

    /// The attempt that a claim makes when `newest` is the newest so far.
    #[must_use]
    pub fn after(newest: Option<Attempt>) -> Attempt {
        match newest {
            None => Attempt::FIRST,
            Some(Attempt(number)) => Attempt(number.saturating_add(1)),
        }
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a{}", self.0)
    }
}

/// One attempt of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptRef {
    /// The task.
    pub task: TaskId,
    /// Which try of it.
    pub attempt: Attempt,
}

impl AttemptRef {
    /// Names an attempt.
    #[must_use]
    pub fn new(task: TaskId, attempt: Attempt) -> AttemptRef {
        AttemptRef { task, attempt }
    }
}

impl fmt::Display for AttemptRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.task, self.attempt)
    }
}

/// What an effect carries so that a late one can be refused. Epochs compare first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence {
    /// The leader's term that gave it.
    pub epoch: Epoch,
    /// The attempt it is for.
    pub attempt: Attempt,
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.attempt)
    }
}

/// Who leads: the epoch and the process that took it. Both must match for a leader write to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Term {
    /// The term's number.
    pub epoch: Epoch,
    /// The process that took it.
    pub leader: Incarnation,
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.epoch, self.leader)
    }
}

/// One process of a worker: its name and its incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    /// The worker's name.
    pub worker: WorkerId,
    /// Which start of it.
    pub incarnation: Incarnation,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.worker, self.incarnation)
    }
}
