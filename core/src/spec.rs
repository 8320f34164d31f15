//! What a client asks for: a task's needs, its limits and what it runs.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::ids::LabelId;
use crate::time::Millis;

/// Bytes that core carries and never reads: what a task runs, or how an attempt ended in detail.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Payload(pub Option<Arc<[u8]>>);

impl Payload {
    /// No bytes.
    pub const NONE: Payload = Payload(None);

    /// These bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Payload {
        Payload(Some(Arc::from(bytes)))
    }

    /// The bytes, none if empty.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// A set of labels, ascending.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Labels(Option<Arc<[LabelId]>>);

impl Labels {
    /// No labels.
    pub const NONE: Labels = Labels(None);

    /// The set of these labels.
    #[must_use]
    pub fn of(labels: &[LabelId]) -> Labels {
        let mut sorted: Vec<LabelId> = labels.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.is_empty() { Labels::NONE } else { Labels(Some(Arc::from(sorted))) }
    }

    /// Its members, ascending.
    #[must_use]
    pub fn as_slice(&self) -> &[LabelId] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Whether every label of `wanted` is among these.
    #[must_use]
    pub fn contain(&self, wanted: &Labels) -> bool {
        wanted.as_slice().iter().all(|label| self.as_slice().binary_search(label).is_ok())
    }
}

/// What a task takes of a worker, or what a worker has to give.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// Places for tasks; a task takes one unless it says more.
    pub slots: u16,
    /// GPUs, each given to one task at a time.
    pub gpus: u16,
    /// Labels that the worker must have, or has.
    pub labels: Labels,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { slots: 1, gpus: 0, labels: Labels::NONE }
    }
}

/// The limits of a task that decide what happens when things go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Higher goes first. One step is worth [`crate::policy::Settings::ageing_step`] of waiting.
    pub priority: i16,
    /// After this many failed attempts the task is FAILED.
    pub max_attempts: u16,
    /// After this many workers were lost while they ran it the task is FAILED.
    pub max_lost: u16,
    /// How long its worker may be unreachable before the task moves. None: the disconnect grace.
    pub patience: Option<Millis>,
    /// How long one attempt may run, counted from its start. None: for ever.
    pub timeout: Option<Millis>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { priority: 0, max_attempts: 3, max_lost: 3, patience: None, timeout: None }
    }
}

/// A client's key for one submission: the same key gives the same task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IdempotencyKey(pub Arc<str>);

/// A task as a client submits it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Submission {
    /// What it takes of a worker.
    pub shape: Shape,
    /// Its limits.
    pub limits: Limits,
    /// What to run.
    pub payload: Payload,
    /// The client's key.
    pub key: IdempotencyKey,
    /// Hash of what was asked for; the same key with another fingerprint is refused.
    pub fingerprint: u64,
}
