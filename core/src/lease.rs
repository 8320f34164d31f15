//! The orders that the lease store takes and the answers it gives.
//!
//! Leases follow the claim and never decide. Their key names are the documented ones; adapters
//! know them. A lease of a task is kept under both names, `worker:{id}:task` and
//! `task:{id}:workerId`, all or nothing, with its fence in companion keys.

use crate::ids::{AttemptRef, Epoch, Fence, Holder, TaskId, WorkerId};
use crate::time::Millis;
use alloc::vec::Vec;

/// An order to the lease store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LeaseOp {
    /// The holder has this task. Overwrites a lower fence; refused only before a higher one.
    Grant {
        /// Who has it.
        holder: Holder,
        /// Which task.
        task: TaskId,
        /// Under which epoch and attempt.
        fence: Fence,
        /// For how long.
        ttl: Millis,
    },
    /// The holder lives: its heartbeat key is written, its tasks' keys are extended where they are its own.
    Renew {
        /// Who lives.
        holder: Holder,
        /// By which leader's hand.
        epoch: Epoch,
        /// What it runs.
        tasks: Vec<AttemptRef>,
        /// For how long the heartbeat key holds.
        heartbeat_ttl: Millis,
        /// For how long the task keys hold.
        task_ttl: Millis,
    },
    /// The holder has the task no more. Compares epoch, attempt and incarnation.
    Release {
        /// Who had it.
        holder: Holder,
        /// Which task.
        task: TaskId,
        /// Under which epoch and attempt.
        fence: Fence,
    },
    /// Tell whether a worker's heartbeat key lives.
    IsAlive(WorkerId),
}

/// The lease store's answer to one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LeaseAnswer {
    /// Written.
    Granted,
    /// To `Grant`: a higher fence holds it.
    Higher(Fence),
    /// Extended; so many of the tasks' keys were the holder's own.
    Renewed(u32),
    /// Deleted.
    Released,
    /// To `Release`: somebody else's.
    NotYours,
    /// To `Release`: there is none.
    Gone,
    /// To `IsAlive`.
    Alive(bool),
    /// The store did not answer. Nothing is decided from it.
    Unreachable,
}
