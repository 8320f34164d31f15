//! What people are told about tasks, attempts and workers.

use std::sync::Arc;

use tenure_core::ids::{Attempt, Epoch, Incarnation, TaskId};
use tenure_core::outcome::Verdict;
use tenure_core::spec::Payload;
use tenure_core::store::{AttemptEnd, LoseReason, Row, Status};
use tenure_core::time::Time;

/// A task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskView {
    /// What decisions are made from.
    pub row: Row,
    /// The name of the worker of the newest attempt.
    pub worker: Option<Arc<str>>,
    /// The labels that it needs.
    pub labels: Vec<Arc<str>>,
    /// When its row last changed; for a task that is over: when it ended.
    pub changed_at: Time,
}

/// Which tasks to list: newest first.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    /// Only those of these statuses; all if empty.
    pub statuses: Vec<Status>,
    /// Only those whose newest attempt is this worker's.
    pub worker: Option<String>,
    /// Only those older than this one: the last of the page before.
    pub after: Option<TaskId>,
    /// At most so many.
    pub limit: u32,
}

/// One attempt, or an outcome that came for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptView {
    /// Which try.
    pub attempt: Attempt,
    /// Who had it.
    pub incarnation: Incarnation,
    /// The worker's name. None for an outcome of an incarnation that never held the attempt.
    pub worker: Option<Arc<str>>,
    /// The term that claimed it.
    pub epoch: Option<Epoch>,
    /// When it was claimed.
    pub claimed_at: Option<Time>,
    /// When the store learnt that it had started.
    pub started_at: Option<Time>,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// How it ended; none while it is open.
    pub end: Option<AttemptEnd>,
    /// Why its worker was given up, if it ever was.
    pub reason: Option<LoseReason>,
    /// What its outcome was, superseded or not.
    pub verdict: Option<Verdict>,
    /// Whether the outcome came too late to count.
    pub superseded: bool,
    /// When the outcome came.
    pub reported_at: Option<Time>,
    /// The outcome's details.
    pub report: Payload,
}

/// One event of a task's story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventView {
    /// When, as the leader of then saw it.
    pub at: Time,
    /// By which term; 0 for a submission.
    pub epoch: Epoch,
    /// `submitted`, `claimed`, `started`, `undone`, `lost`, `kept`, `ended`, `superseded`, `cancel_asked`, `lifted`.
    pub what: String,
    /// The task's status after it.
    pub status: Status,
    /// The attempt that it is about.
    pub attempt: Option<Attempt>,
    /// The worker of it.
    pub worker: Option<Arc<str>>,
    /// Why lost, or which verdict.
    pub detail: Option<String>,
}

/// A worker that ever registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerView {
    /// Its name.
    pub name: Arc<str>,
    /// Its current incarnation.
    pub incarnation: Incarnation,
    /// Since when.
    pub since: Time,
    /// The incarnations before it, oldest first, and when each was replaced.
    pub replaced: Vec<(Incarnation, Time)>,
}

/// How many tasks there are of each status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// PENDING.
    pub pending: u64,
    /// RUNNING.
    pub running: u64,
    /// COMPLETED.
    pub completed: u64,
    /// FAILED.
    pub failed: u64,
    /// CANCELLED.
    pub cancelled: u64,
}
