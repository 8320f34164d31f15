//! The orders that the task store takes and the answers it gives.
//!
//! Every answer to a change carries the row as it stands after it, applied or not, so a refusal
//! needs no second look. What a change does to a row is decided by [`crate::model::task_table`]
//! alone; a database adapter either calls it or is tested against it.

use alloc::vec::Vec;

use crate::ids::{Attempt, AttemptRef, Epoch, Holder, Incarnation, TaskId, Term};
use crate::outcome::Outcome;
use crate::spec::{Limits, Payload, Shape, Submission};
use crate::time::{Millis, Time};

/// A task's public status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// Waits to be claimed.
    Pending,
    /// Claimed for one attempt on one worker.
    Running,
    /// Succeeded, for good.
    Completed,
    /// Failed, for good.
    Failed,
    /// Cancelled, for good.
    Cancelled,
}

impl Status {
    /// Whether nothing can change it any more.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Status::Completed | Status::Failed | Status::Cancelled)
    }
}

/// How the newest attempt of a task ended. Only [`AttemptEnd::Outcome`] is an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptEnd {
    /// Its claim was taken back before it began.
    Undone,
    /// Its worker was lost. A late outcome may still replace this.
    Lost {
        /// Whether this loss counts against the task's `max_lost`.
        counted: bool,
    },
    /// It has its one outcome.
    Outcome,
}

/// Why a task is over or waits again, for its story.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoseReason {
    /// Its worker's connection closed and did not come back in time.
    Disconnected,
    /// Its worker fell silent.
    Silent,
    /// A later start of its worker came without it.
    WorkerRestarted,
    /// Its worker never answered the order to run it.
    NoAnswer,
    /// Its worker says that it neither runs it nor has finished it.
    NotInInventory,
    /// Its worker did not come back after a change of leader.
    NotAdopted,
}

/// What the store knows of a task, as far as decisions need it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Row {
    /// The task.
    pub task: TaskId,
    /// What it takes of a worker.
    pub shape: Shape,
    /// Its limits.
    pub limits: Limits,
    /// When it was submitted.
    pub submitted_at: Time,
    /// Its status.
    pub status: Status,
    /// The newest attempt ever claimed.
    pub attempt: Option<Attempt>,
    /// Who held the newest attempt.
    pub holder: Option<Holder>,
    /// The term that claimed the newest attempt.
    pub epoch: Epoch,
    /// How the newest attempt ended, if it did.
    pub end: Option<AttemptEnd>,
    /// Whether the newest attempt is known to have started.
    pub started: bool,
    /// Whether a client asked to cancel it.
    pub cancel_requested: bool,
    /// Attempts that failed.
    pub failures: u16,
    /// Workers that were lost while they ran it.
    pub lost: u16,
    /// Not to be claimed before this.
    pub not_before: Time,
}

impl Row {
    /// The newest attempt by name.
    #[must_use]
    pub fn newest(&self) -> Option<AttemptRef> {
        self.attempt.map(|attempt| AttemptRef::new(self.task, attempt))
    }
}

/// A change of one task's row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// PENDING with newest attempt `newest` becomes RUNNING with the next one.
    Claim {
        /// The newest attempt that the leader knows of.
        newest: Option<Attempt>,
        /// Who is to run it.
        holder: Holder,
    },
    /// RUNNING goes back to PENDING: the attempt never began. Counted nowhere.
    Undo {
        /// Which attempt.
        attempt: Attempt,
        /// Whose.
        incarnation: Incarnation,
    },
    /// RUNNING goes back to PENDING (or to its end): its worker is gone.
    Lose {
        /// Which attempt.
        attempt: Attempt,
        /// Whose.
        incarnation: Incarnation,
        /// Whether the loss counts against `max_lost`: the incarnation ended and had started it.
        counted: bool,
        /// Why, for the story.
        reason: LoseReason,
    },
    /// PENDING after a loss becomes RUNNING again with the same attempt: its process still runs it.
    Keep {
        /// Which attempt.
        attempt: Attempt,
        /// Who still runs it.
        holder: Holder,
    },
    /// The attempt's outcome.
    Commit {
        /// The outcome.
        outcome: Outcome,
        /// If it leads to a retry: not before this.
        retry_at: Time,
    },
    /// A client wants it to end.
    Cancel {
        /// End it at once, whatever its worker does.
        force: bool,
    },
    /// The attempt is known to have started.
    MarkStarted {
        /// Which attempt.
        attempt: Attempt,
        /// Whose.
        incarnation: Incarnation,
    },
    /// The store has gone back in time: this attempt exists although the row is older than it.
    Lift {
        /// The attempt that a worker showed.
        attempt: Attempt,
        /// Who ran it.
        holder: Holder,
    },
}

/// An order to the task store. Those with a term are leader writes: they count only while the
/// store's own term is the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StoreOp {
    /// A submission. With a claim it is a leader write as well, else any node may do it.
    Insert {
        /// What was submitted.
        submission: Submission,
        /// When.
        at: Time,
        /// Claim it at once for this worker, under this term.
        claim: Option<(Holder, Term)>,
    },
    /// A change of one row.
    Change {
        /// Which task.
        task: TaskId,
        /// By which leader.
        term: Term,
        /// When, for the story.
        at: Time,
        /// What.
        change: Change,
    },
    /// This incarnation is now the worker; the one before is refused from here on.
    Register {
        /// Who.
        holder: Holder,
        /// By which leader.
        term: Term,
        /// When.
        at: Time,
    },
    /// Tell one row.
    Read(TaskId),
    /// Tell everything a new leader must know.
    ReadAll(Term),
    /// Tell the tasks that are not over, in pages: for a comparison that must not read everything at once.
    Scan {
        /// By which leader.
        term: Term,
        /// Those above this.
        after: TaskId,
        /// So many at most.
        limit: u32,
    },
    /// Tell who leads.
    ReadTerm,
    /// Take the term after `after`.
    TakeTerm {
        /// The newest epoch that the taker saw in the store.
        after: Epoch,
        /// The new epoch must be above this too (seen at workers).
        floor: Epoch,
        /// Who takes it.
        leader: Incarnation,
        /// For how long without renewal.
        ttl: Millis,
        /// Take it although its lease has not run out: the taker knows that no other can lead.
        seize: bool,
    },
    /// Renew the term's lease.
    RenewTerm {
        /// Whose.
        term: Term,
        /// For how long.
        ttl: Millis,
    },
    /// Give the term's lease up.
    ReleaseTerm(Term),
}

/// What a change came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wrote {
    /// It took effect.
    Applied,
    /// It had taken effect before; nothing was changed.
    Repeat,
    /// The row had moved on; nothing was changed.
    Refused,
    /// For a commit: a later attempt, another incarnation or an end came first. Kept in the attempts.
    Superseded,
    /// For a commit: the attempt is above what the row shows, so the store has gone back in time.
    Ahead,
}

/// The term as the store has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TermRow {
    /// Who took it last.
    pub term: Term,
    /// How much longer its lease runs, by the store's clock; zero when it has run out.
    pub left: Millis,
}

/// The task store's answer to one order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StoreAnswer {
    /// To `Insert`: stored. The row says whether it was claimed too.
    Inserted {
        /// The new row.
        row: Row,
        /// Whether the key named it already; then nothing was stored.
        existed: bool,
    },
    /// To `Insert`: the key belongs to another submission.
    KeyTaken(TaskId),
    /// To `Change`: what it came to, and the row after it.
    Changed {
        /// What it came to.
        wrote: Wrote,
        /// The row after it.
        row: Row,
        /// What to run, after an applied claim.
        payload: Payload,
    },
    /// To `Change` and `Read`: there is no such task.
    NoTask(TaskId),
    /// To `Read`.
    Read(Row),
    /// To `Register`: done; `replaced` was the worker before.
    Registered {
        /// The incarnation that this one replaces, if any.
        replaced: Option<Incarnation>,
    },
    /// To `Register`: a later incarnation has replaced this one.
    WasReplaced,
    /// To `ReadAll`.
    All {
        /// Every task that is not over, ascending.
        rows: Vec<Row>,
        /// The current incarnation of every known worker, ascending.
        workers: Vec<Holder>,
    },
    /// To `Scan`.
    Page {
        /// Every task that is not over in this stretch, ascending.
        rows: Vec<Row>,
        /// Where the stretch ends; none if nothing lies behind it.
        until: Option<TaskId>,
    },
    /// To `ReadTerm`.
    TermIs(TermRow),
    /// To `TakeTerm`: taken.
    Taken(Term),
    /// To `TakeTerm`: somebody else has it.
    NotTaken(TermRow),
    /// To `RenewTerm`: renewed.
    Renewed,
    /// To `ReleaseTerm`: given up.
    Released,
    /// To any leader write: another term is current, and nothing was changed.
    Deposed(TermRow),
}

/// What became of an order to a store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum StoreResult {
    /// It answered.
    Answer(StoreAnswer),
    /// It did not take the order: nothing was changed.
    Failed,
    /// No answer came: it may have been carried out, or may still be.
    Unknown,
}
