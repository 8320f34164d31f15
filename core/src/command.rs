//! What the state machines order, in the imperative. Data only: each can be cloned, compared,
//! printed, stored and replayed, and each is a crash point of the simulation.

use crate::ids::{AttemptRef, EffectId, Epoch, Incarnation, RequestId, SessionId, TaskId, Term};
use crate::lease::LeaseOp;
use crate::message::{Execute, StopReason, ToMaster, ToWorker};
use crate::outcome::Outcome;
use crate::store::{Row, Status, StoreOp};

/// Why a master ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CloseReason {
    /// It does not lead.
    NotLeader,
    /// The peer's hello was refused.
    Refused,
    /// A newer session of the same incarnation took its place.
    Replaced,
    /// Nothing was heard for a whole heartbeat TTL.
    Silent,
    /// The peer broke the protocol.
    Protocol,
}

/// A master's answer to a client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reply {
    /// Stored, durably; `existed` if the key named it already.
    Submitted {
        /// The task.
        task: TaskId,
        /// Whether the same key had been submitted before.
        existed: bool,
    },
    /// The key belongs to another submission.
    KeyTaken(TaskId),
    /// The task never started again after this: it is CANCELLED.
    Cancelled(Row),
    /// The wish is stored; the worker is being told.
    Cancelling(Row),
    /// The task had ended before.
    AlreadyOver(TaskId, Status),
    /// There is no such task.
    NoTask(TaskId),
    /// This master does not lead; ask another, or again.
    NotLeader(Epoch),
    /// The store did not take it; nothing was changed. Ask again.
    StoreFailed,
    /// The store gave no answer; it may have been done. Ask again with the same key.
    Unknown,
}

/// One thing for a master's adapters to do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MasterCommand {
    /// Order the task store; answered by `Stored`.
    Store(EffectId, StoreOp),
    /// Order the lease store; answered by `Leased`.
    Lease(EffectId, LeaseOp),
    /// Say something in a session. A session that has ended swallows it.
    Send(SessionId, ToWorker),
    /// End a session. `Closed` is not reported back for it.
    Close(SessionId, CloseReason),
    /// Answer a client.
    Reply(RequestId, Reply),
    /// This master leads from here on (for readiness, logs and people).
    Lead(Term),
    /// This master leads no more.
    StepDown(Term),
    /// Everything is handed over: the process may end.
    Stopped,
}

/// A record for the worker's disk.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Record {
    /// This attempt was given to this incarnation under this term. Kept for a day after its end, as the
    /// highest attempt of its task that must never start again.
    Given {
        /// Which attempt.
        at: AttemptRef,
        /// To which incarnation.
        ran_by: Incarnation,
        /// By which term; also raises the highest term seen.
        term: Term,
    },
    /// An attempt's outcome.
    Outcome(Outcome),
    /// The highest term seen.
    Highest(Term),
    /// This outcome was acknowledged: it need not be said again.
    Acknowledged(AttemptRef, Incarnation),
}

/// One thing for a worker's adapters to do.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum AgentCommand {
    /// Connect to the known master of this index; answered by `Dialed` or `DialFailed`.
    Dial(EffectId, usize),
    /// End a session; nothing of it is reported from here on.
    Hangup(SessionId),
    /// Say something in a session.
    Send(SessionId, ToMaster),
    /// Write a record; answered by `Persisted` or `PersistFailed`.
    Persist(EffectId, Record),
    /// Start the process of an attempt; answered by `Ended` once, whatever happens.
    Start(Execute),
    /// End the process of an attempt: TERM, after the grace KILL, everything it started. Answered by its `Ended`.
    Stop(AttemptRef, StopReason),
    /// A drain is over: the process may end.
    Drained,
    /// Another process goes by this worker's name: end with an error.
    Quit(QuitReason),
}

/// Why an agent cannot go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuitReason {
    /// Another live process goes by this name.
    NameInUse,
    /// A later start of this worker has replaced this one.
    Replaced,
}
