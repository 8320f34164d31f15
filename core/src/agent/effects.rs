//! What is under way, and what its answer is for.

use alloc::collections::BTreeMap;

use super::outbox::OutcomeId;
use crate::error::Refused;
use crate::ids::{AttemptRef, EffectId};

/// Which record is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Write {
    /// An attempt's start.
    Given(AttemptRef),
    /// An attempt's outcome.
    Outcome(OutcomeId),
    /// The highest term.
    Highest,
    /// An outcome's acknowledgement.
    Acknowledged,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Purpose {
    Dial,
    Write(Write),
}

/// The effects under way.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Effects {
    next: EffectId,
    open: BTreeMap<EffectId, Purpose>,
}

impl Effects {
    /// A new connection is asked for.
    pub(super) fn begin_dial(&mut self) -> EffectId {
        self.begin(Purpose::Dial)
    }

    /// A record is to be written.
    pub(super) fn begin_write(&mut self, write: Write) -> EffectId {
        self.begin(Purpose::Write(write))
    }

    fn begin(&mut self, purpose: Purpose) -> EffectId {
        let effect = self.next;
        self.next.0 += 1;
        self.open.insert(effect, purpose);
        effect
    }

    /// The answer to a dial has come, also to one that was given up.
    pub(super) fn end_dial(&mut self, effect: EffectId) -> Result<(), Refused> {
        match self.open.get(&effect) {
            Some(Purpose::Dial) => {
                self.open.remove(&effect);
                Ok(())
            }
            Some(Purpose::Write(_)) => Err(Refused::WrongAnswer(effect)),
            None => Err(Refused::NotUnderWay(effect)),
        }
    }

    /// The answer to a write has come: which record it was.
    pub(super) fn end_write(&mut self, effect: EffectId) -> Result<Write, Refused> {
        match self.open.get(&effect).copied() {
            Some(Purpose::Write(write)) => {
                self.open.remove(&effect);
                Ok(write)
            }
            Some(Purpose::Dial) => Err(Refused::WrongAnswer(effect)),
            None => Err(Refused::NotUnderWay(effect)),
        }
    }
}
