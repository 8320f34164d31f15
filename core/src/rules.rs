//! The rules of the fenced protocol that a test can take out one by one.
//!
//! The bug bank of `tenure-sim` takes each out and demands that the explorer sees the damage. In a
//! build without the feature `bugs`, [`Rules::hold`] is constant and the switches do not exist.

/// A rule whose absence a small world can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Rule {
    /// A terminal status never changes (protocol case 1.1).
    TerminalIsFinal,
    /// An attempt has one outcome (1.2).
    OneOutcome,
    /// Requeue, retry and claim read the cancel flag in the same statement (1.2b).
    CancelFlagRead,
    /// A leader write compares the epoch and the leader (1.3).
    TermCompared,
    /// A commit compares the attempt.
    AttemptCompared,
    /// A commit compares the incarnation that ran it (1.5, ruling 1).
    IncarnationCompared,
    /// A command or answer counts only in the session it came on (1.5).
    SessionFenced,
    /// A claim is undone when the session that it was made for is over (1.6).
    ClaimBound,
    /// One write per task at a time (1.0).
    OneWrite,
    /// A worker never starts an attempt that it was given before (1.7).
    NeverStartedAgain,
    /// A worker refuses an epoch lower than the highest it has seen (ruling 5).
    HighestEpoch,
    /// An outcome is acknowledged only after the store answered (ruling 4).
    AckAfterCommit,
    /// A worker keeps an outcome until it is acknowledged.
    OutcomeKept,
    /// An outcome is on the disk before it is told.
    OutcomePersisted,
    /// A start is on the disk before it happens.
    StartPersisted,
    /// A heartbeat's "neither" counts only if the outcome is not in its finished part (1.0).
    FinishedListed,
    /// A refused or unknown write is followed by reading the row (ruling 8).
    UnknownReread,
    /// A lease's release compares its fence and holder (1.18).
    LeaseReleaseCompared,
    /// A new incarnation of a worker releases what the old one held.
    IncarnationReleases,
    /// A new leader waits for the workers of running tasks before it gives them up.
    AdoptGrace,
    /// A leader that cannot renew stops deciding when its lease may have run out (1.16).
    TrustLapses,
    /// A kept attempt must have ended as lost (1.19).
    KeepOnlyLost,
    /// The same idempotency key gives the same task.
    KeyUnique,
    /// An order that is never answered is sent again and then given up (1.17).
    AcceptTimeout,
}

impl Rule {
    /// All of them.
    pub const EVERY: [Rule; 24] = [
        Rule::TerminalIsFinal,
        Rule::OneOutcome,
        Rule::CancelFlagRead,
        Rule::TermCompared,
        Rule::AttemptCompared,
        Rule::IncarnationCompared,
        Rule::SessionFenced,
        Rule::ClaimBound,
        Rule::OneWrite,
        Rule::NeverStartedAgain,
        Rule::HighestEpoch,
        Rule::AckAfterCommit,
        Rule::OutcomeKept,
        Rule::OutcomePersisted,
        Rule::StartPersisted,
        Rule::FinishedListed,
        Rule::UnknownReread,
        Rule::LeaseReleaseCompared,
        Rule::IncarnationReleases,
        Rule::AdoptGrace,
        Rule::TrustLapses,
        Rule::KeepOnlyLost,
        Rule::KeyUnique,
        Rule::AcceptTimeout,
    ];
}

/// Which rules hold. All, outside the bug bank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rules {
    #[cfg(feature = "bugs")]
    broken: Option<Rule>,
}

impl Rules {
    /// Every rule holds.
    pub const ALL: Rules = Rules {
        #[cfg(feature = "bugs")]
        broken: None,
    };

    /// Every rule but this one holds.
    #[cfg(feature = "bugs")]
    #[must_use]
    pub fn without(rule: Rule) -> Rules {
        Rules { broken: Some(rule) }
    }

    /// Whether this rule holds.
    #[must_use]
    #[inline]
    pub fn hold(self, rule: Rule) -> bool {
        #[cfg(feature = "bugs")]
        return self.broken != Some(rule);
        #[cfg(not(feature = "bugs"))]
        {
            let _ = rule;
            true
        }
    }
}

impl Default for Rules {
    fn default() -> Rules {
        Rules::ALL
    }
}
