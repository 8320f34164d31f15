//! How an attempt ended.

use crate::ids::{AttemptRef, Incarnation};
use crate::spec::Payload;

/// What an execution came to, as far as decisions need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It ended as it should.
    Succeeded,
    /// It failed; another attempt may do better.
    Failed,
    /// It failed and would fail again: the program does not exist, for one. Not retried.
    FailedForGood,
    /// Its worker ended it because its time was up. Counts as a failure.
    TimedOut,
    /// Its worker ended it because the master asked.
    Stopped,
    /// Its worker gave it back unfinished (a drain). Counts against nothing.
    HandedBack,
}

/// The outcome of one attempt, as its worker keeps it until it is acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// Which attempt.
    pub at: AttemptRef,
    /// The incarnation that ran it, whoever delivers this.
    pub ran_by: Incarnation,
    /// What it came to.
    pub verdict: Verdict,
    /// Exit code, signal, message, result: for people, never for decisions.
    pub report: Payload,
}
