//! What can go wrong at one action of one node, as a closed list.
//!
//! An action is one effect of a command list. A crash after an effect is the same history as a crash
//! before the next effect of the same list, so "before" is offered at the first effect only.

use std::fmt;

/// One fault at one action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Fault {
    /// The node's process is killed before the action; peers see the end of their connections. It is back
    /// well within every TTL.
    KillBefore,
    /// The same, but it is back only when every TTL is over.
    KillBeforeSlow,
    /// The process is killed right after the action, so its answer is lost. Back well within every TTL.
    KillAfter,
    /// The same, but it is back only when every TTL is over.
    KillAfterSlow,
    /// The node loses power right after the action: peers see silence, the last unsynced records of its
    /// disk are gone. It is back when every TTL is over.
    PowerCut,
    /// The node stands still before the action for longer than every TTL, then goes on as if nothing was.
    Pause,
    /// The order was carried out, and the answer is "unknown".
    UnknownApplied,
    /// The order was not carried out, and the answer is "unknown".
    UnknownLost,
    /// The answer is "unknown", and the order is carried out after it.
    UnknownLate,
    /// The store does not take the order, and says so.
    Refuse,
    /// The order and its answer take longer than a restart and than the disconnect grace.
    Slow,
    /// The connection breaks and loses what is said (a reply, a dial) with it.
    Break,
    /// The connection breaks at the sender's side; the message arrives late in the session that is over.
    Late,
    /// The connection goes silent: nothing arrives any more, and nobody is told.
    Silence,
    /// The message arrives, and once more when the attempt is over.
    Repeat,
    /// The disk does not take the record, and says so.
    DiskFails,
    /// The disk takes the record and answers only when every TTL is over.
    DiskHangs,
}

/// How many kinds there are.
pub const FAULTS: usize = 17;

impl Fault {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Fault; FAULTS] = [
        Fault::KillBefore,
        Fault::KillBeforeSlow,
        Fault::KillAfter,
        Fault::KillAfterSlow,
        Fault::PowerCut,
        Fault::Pause,
        Fault::UnknownApplied,
        Fault::UnknownLost,
        Fault::UnknownLate,
        Fault::Refuse,
        Fault::Slow,
        Fault::Break,
        Fault::Late,
        Fault::Silence,
        Fault::Repeat,
        Fault::DiskFails,
        Fault::DiskHangs,
    ];

    /// Its name in files and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fault::KillBefore => "kill-before",
            Fault::KillBeforeSlow => "kill-before-slow",
            Fault::KillAfter => "kill-after",
            Fault::KillAfterSlow => "kill-after-slow",
            Fault::PowerCut => "power-cut",
            Fault::Pause => "pause",
            Fault::UnknownApplied => "unknown-applied",
            Fault::UnknownLost => "unknown-lost",
            Fault::UnknownLate => "unknown-late",
            Fault::Refuse => "refuse",
            Fault::Slow => "slow",
            Fault::Break => "break",
            Fault::Late => "late",
            Fault::Silence => "silence",
            Fault::Repeat => "repeat",
            Fault::DiskFails => "disk-fails",
            Fault::DiskHangs => "disk-hangs",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Fault> {
        Fault::ALL.into_iter().find(|fault| fault.name() == name)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FaultSet(u32);

impl FaultSet {
    /// No kind.
    pub const NONE: FaultSet = FaultSet(0);
    /// Every kind.
    pub const ALL: FaultSet = FaultSet((1 << FAULTS) - 1);
    /// The kinds that hit a process: offered at every effect.
    pub const PROCESS: FaultSet = FaultSet::of(&[
        Fault::KillBefore,
        Fault::KillBeforeSlow,
        Fault::KillAfter,
        Fault::KillAfterSlow,
        Fault::PowerCut,
        Fault::Pause,
    ]);

    /// These kinds.
    #[must_use]
    pub const fn of(kinds: &[Fault]) -> FaultSet {
        let mut bits = 0;
        let mut i = 0;
        while i < kinds.len() {
            bits |= 1 << kinds[i] as u32;
            i += 1;
        }
        FaultSet(bits)
    }

    /// Those in either.
    #[must_use]
    pub const fn and(self, other: FaultSet) -> FaultSet {
        FaultSet(self.0 | other.0)
    }

    /// Those in both.
    #[must_use]
    pub const fn within(self, other: FaultSet) -> FaultSet {
        FaultSet(self.0 & other.0)
    }

    /// Those that are not in the other.
    #[must_use]
    pub const fn but(self, other: FaultSet) -> FaultSet {
        FaultSet(self.0 & !other.0)
    }

    /// Whether it has this kind.
    #[must_use]
    pub fn has(self, fault: Fault) -> bool {
        self.0 & (1 << fault as u32) != 0
    }

    /// How many there are.
    #[must_use]
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The kind at this place, in the order of their numbers.
    #[must_use]
    pub fn nth(self, place: u32) -> Option<Fault> {
        let mut bits = self.0;
        for _ in 0..place {
            bits &= bits.wrapping_sub(1);
        }
        Fault::ALL.get(bits.trailing_zeros() as usize).copied()
    }

    /// Its kinds.
    pub fn iter(self) -> impl Iterator<Item = Fault> {
        Fault::ALL.into_iter().filter(move |fault| self.has(*fault))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_a_place_lead_back_to_their_kind() {
        for (place, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, place);
            assert_eq!(Fault::of_name(fault.name()), Some(fault));
            assert_eq!(FaultSet::ALL.nth(place as u32), Some(fault));
        }
        assert_eq!(FaultSet::ALL.nth(FAULTS as u32), None);
    }

    #[test]
    fn the_place_counts_only_what_is_in_the_set() {
        let set = FaultSet::of(&[Fault::Pause, Fault::Repeat]);
        assert_eq!((set.nth(0), set.nth(1)), (Some(Fault::Pause), Some(Fault::Repeat)));
        assert_eq!(set.nth(2), None);
    }
}
