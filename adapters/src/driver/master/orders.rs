//! Orders that the store has not answered, so that a lost answer is noticed.

use std::collections::{BTreeSet, HashMap};

use tenure_core::ids::EffectId;
use tenure_core::time::Time;

/// Orders under way, each with the time at which it counts as not answered.
#[derive(Debug, Default)]
pub(super) struct Orders {
    until: HashMap<EffectId, Time>,
    by_time: BTreeSet<(Time, EffectId)>,
}

impl Orders {
    pub(super) fn add(&mut self, effect: EffectId, until: Time) {
        self.until.insert(effect, until);
        self.by_time.insert((until, effect));
    }

    /// Whether this answer is still waited for.
    pub(super) fn answered(&mut self, effect: EffectId) -> bool {
        match self.until.remove(&effect) {
            Some(until) => self.by_time.remove(&(until, effect)),
            None => false,
        }
    }

    /// The next order that went without answer for too long; it is waited for no more.
    pub(super) fn overdue(&mut self, now: Time) -> Option<EffectId> {
        let (until, effect) = *self.by_time.first()?;
        if until > now {
            return None;
        }
        self.answered(effect);
        Some(effect)
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.by_time.first().map(|(until, _)| *until)
    }

    pub(super) fn len(&self) -> usize {
        self.until.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_answered_once_or_overdue_once() {
        let mut orders = Orders::default();
        orders.add(EffectId(1), Time(10));
        orders.add(EffectId(2), Time(5));
        assert_eq!(orders.next_deadline(), Some(Time(5)));
        assert_eq!(orders.overdue(Time(4)), None);
        assert_eq!(orders.overdue(Time(5)), Some(EffectId(2)));
        assert!(!orders.answered(EffectId(2)), "too late");
        assert!(orders.answered(EffectId(1)));
        assert!(!orders.answered(EffectId(1)));
        assert_eq!((orders.overdue(Time(99)), orders.len()), (None, 0));
    }
}
