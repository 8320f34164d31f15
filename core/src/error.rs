//! Events that cannot be: the caller broke the contract. Stale and repeated things are no errors.

use thiserror::Error;

use crate::ids::EffectId;

/// An event that core did not expect; its state is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refused {
    /// An answer to an effect that was never ordered, or was answered before.
    #[error(
        "effect {0} is not under way; answer each effect once, under the id it was ordered with"
    )]
    NotUnderWay(EffectId),
    /// An answer of the wrong kind.
    #[error("effect {0} was answered by something that does not answer it")]
    WrongAnswer(EffectId),
    /// An agent that has not booted, or was booted twice.
    #[error("the agent must be booted first, and once")]
    BootOrder,
}
