//! What reaches the state machines: things that happened, in the past tense.

use alloc::vec::Vec;

use crate::ids::{AttemptRef, EffectId, RequestId, SessionId, TaskId, Term};
use crate::lease::LeaseAnswer;
use crate::message::{ToMaster, ToWorker};
use crate::outcome::{Outcome, Verdict};
use crate::spec::{Payload, Submission};
use crate::store::StoreResult;

/// What a client asks of a master.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Ask {
    /// Run this.
    Submit(Submission),
    /// End this.
    Cancel {
        /// Which task.
        task: TaskId,
        /// End it at once in the store, whatever its worker does.
        force: bool,
    },
}

/// What happens to a master.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MasterEvent {
    /// A deadline that it named has come (or any time passed; waking too often does no harm).
    Woke,
    /// The task store's answer, or that none came.
    Stored(EffectId, StoreResult),
    /// The lease store's answer.
    Leased(EffectId, LeaseAnswer),
    /// A peer connected.
    Opened(SessionId),
    /// A peer's connection ended.
    Closed(SessionId),
    /// A peer said something.
    Received(SessionId, ToMaster),
    /// A client asks something.
    Asked(RequestId, Ask),
    /// The operator wants it to stop: hand over what it leads.
    StopAsked,
}

/// What a worker's disk held when it started.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Remembered {
    /// The highest term that it had seen.
    pub highest: Term,
    /// The highest attempt per task that it was ever given (kept for a day), ascending by task.
    pub given: Vec<AttemptRef>,
    /// Outcomes that were not acknowledged.
    pub outcomes: Vec<Outcome>,
}

/// What happens to a worker's agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AgentEvent {
    /// A deadline that it named has come (or any time passed).
    Woke,
    /// The disk was read, and nothing of an earlier incarnation runs any more. The first event.
    Booted(Remembered),
    /// The connection that it asked for is there.
    Dialed(EffectId, SessionId),
    /// The connection that it asked for could not be made.
    DialFailed(EffectId),
    /// Its connection ended.
    Closed(SessionId),
    /// The master said something.
    Received(SessionId, ToWorker),
    /// A record is on the disk (it survives a kill of the process).
    Persisted(EffectId),
    /// A record could not be written.
    PersistFailed(EffectId),
    /// The attempt's process ended, or could not be started (then the verdict says so).
    Ended {
        /// Which attempt.
        at: AttemptRef,
        /// What it came to by itself: succeeded, failed, failed for good.
        verdict: Verdict,
        /// Details for people.
        report: Payload,
    },
    /// The operator wants it to take no more tasks, and to stop once none is left.
    DrainAsked {
        /// Give back at once what still runs.
        hand_back: bool,
    },
}
