//! What masters and workers say to each other, without its wire form.

use alloc::vec::Vec;

use crate::ids::{Attempt, AttemptRef, Epoch, Incarnation, TaskId, Term, WorkerId};
use crate::outcome::{Outcome, Verdict};
use crate::spec::{Payload, Shape};
use crate::time::Millis;

/// An attempt that has an outcome on its worker's disk, not acknowledged yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Finished {
    /// Which attempt.
    pub at: AttemptRef,
    /// The incarnation that ran it.
    pub ran_by: Incarnation,
}

/// All that a worker has: what it runs, and what it has finished but not had acknowledged.
/// An attempt in neither part is not there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Inventory {
    /// Accepted, and without an outcome.
    pub running: Vec<AttemptRef>,
    /// With an outcome that waits for its acknowledgement.
    pub finished: Vec<Finished>,
}

impl Inventory {
    /// Whether the worker runs this attempt.
    #[must_use]
    pub fn runs(&self, at: AttemptRef) -> bool {
        self.running.contains(&at)
    }

    /// Whether the worker holds an outcome of this attempt.
    #[must_use]
    pub fn finished(&self, at: AttemptRef) -> bool {
        self.finished.iter().any(|finished| finished.at == at)
    }
}

/// How a worker introduces itself; the first message of its session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Hello {
    /// Its name.
    pub worker: WorkerId,
    /// Which start of it.
    pub incarnation: Incarnation,
    /// All that it has to give.
    pub capacity: Shape,
    /// The highest term it has seen.
    pub highest: Term,
    /// All that it has at hand.
    pub inventory: Inventory,
    /// Whether it takes no new tasks.
    pub draining: bool,
}

/// Why a worker does not start what it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decline {
    /// No free slot or GPU.
    Busy,
    /// It cannot run such a task, or is draining.
    Cannot,
    /// It was given this attempt or a later one before and does not run it.
    OldAttempt,
}

/// From a worker to a master.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ToMaster {
    /// The first message of a session.
    Hello(Hello),
    /// Alive, and all that it has.
    Heartbeat(Inventory),
    /// The attempt is on the worker's disk and is being started, or was before.
    Accepted(AttemptRef),
    /// The attempt was not started.
    Declined(AttemptRef, Decline),
    /// An attempt ended.
    Finished(Outcome),
    /// The heartbeat of a documented worker, which says no hello.
    DocumentedHeartbeat {
        /// Its name.
        worker: WorkerId,
        /// What it runs, if anything.
        busy: Option<TaskId>,
    },
    /// A documented worker's answer to an execution order.
    DocumentedAnswer {
        /// The task it was sent.
        task: TaskId,
        /// Whether it runs it.
        accepted: bool,
    },
    /// A documented worker's report of an end.
    DocumentedReport {
        /// The task.
        task: TaskId,
        /// The attempt, where it says one.
        attempt: Option<Attempt>,
        /// How it ended.
        verdict: Verdict,
        /// Details for people.
        report: Payload,
    },
}

/// Why a hello is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HelloRefusal {
    /// Another live process goes by that name.
    NameInUse,
    /// A later start of this worker has replaced the one that asks.
    Replaced,
}

/// What an order to run an attempt says.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Execute {
    /// The attempt.
    pub at: AttemptRef,
    /// The term that orders it.
    pub term: Term,
    /// What it takes of the worker.
    pub shape: Shape,
    /// How long it may run.
    pub timeout: Option<Millis>,
    /// Whether an earlier attempt may have left a checkpoint.
    pub resumes: bool,
    /// What to run.
    pub payload: Payload,
}

/// What became of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AckVerdict {
    /// It is the attempt's outcome (perhaps it was already).
    Committed,
    /// A later attempt or an end came before it; it is kept for the record only.
    Superseded,
}

/// Why an attempt must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// Its task was cancelled.
    Cancelled,
    /// Its task has a later attempt, or is over.
    Superseded,
}

/// From a master to a worker.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ToWorker {
    /// The session counts from here on.
    HelloAck(Term),
    /// The session will not be.
    HelloRefused(HelloRefusal),
    /// Your heartbeat was heard by this term's leader.
    HeartbeatAck(Epoch),
    /// Run this.
    Execute(Execute),
    /// The store has your outcome, or needs it no more.
    ResultAck {
        /// Which attempt.
        at: AttemptRef,
        /// Which incarnation's outcome.
        ran_by: Incarnation,
        /// The term whose store read stands behind this.
        epoch: Epoch,
        /// What became of it.
        verdict: AckVerdict,
    },
    /// End this.
    Stop {
        /// Which attempt.
        at: AttemptRef,
        /// The term that orders it.
        epoch: Epoch,
        /// Why.
        reason: StopReason,
    },
    /// Another master leads, or none does.
    NotLeader(Epoch),
    /// Take no new tasks.
    Drain,
    /// Answer with a heartbeat at once.
    Ping,
}
