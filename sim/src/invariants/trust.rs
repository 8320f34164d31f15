//! docs/fencing.md, "Leaders": a leader that could not renew for one TTL decides nothing more. It may believe in its
//! lease from the sending of the order that took or renewed it, for one TTL, and no longer.

use tenure_core::ids::{EffectId, Incarnation};
use tenure_core::time::{Millis, Time};

use super::Checked;

/// Until when each master may believe that it leads.
#[derive(Debug, Default)]
pub struct Trust {
    orders: Vec<(Incarnation, EffectId, Time)>,
    until: Vec<(Incarnation, Time)>,
}

impl Trust {
    /// Forgets the history.
    pub fn reset(&mut self) {
        self.orders.clear();
        self.until.clear();
    }

    /// A master decides to look at, take or renew the term.
    pub fn on_order(&mut self, master: Incarnation, effect: EffectId, now: Time) {
        self.orders.push((master, effect, now));
    }

    /// The answer to such an order reached the master: its lease holds for so long from the order on.
    pub fn on_answer(&mut self, master: Incarnation, effect: EffectId, holds: Option<Millis>) {
        let Some(place) =
            self.orders.iter().position(|(by, order, _)| (*by, *order) == (master, effect))
        else {
            return;
        };
        let (_, _, sent) = self.orders.swap_remove(place);
        let Some(holds) = holds else { return };
        match self.until.iter_mut().find(|(of, _)| *of == master) {
            Some((_, until)) => *until = (*until).max(sent + holds),
            None => self.until.push((master, sent + holds)),
        }
    }

    /// A master decides something that only a leader may.
    pub fn on_decision(&self, master: Incarnation, now: Time) -> Checked {
        let until = self.until.iter().find(|(of, _)| *of == master);
        if until.is_some_and(|(_, until)| *until >= now) {
            Ok(())
        } else {
            Err("a leader decided after its lease may have run out")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_after_the_lease_is_seen() {
        let mut trust = Trust::default();
        let me = Incarnation(1);
        assert!(trust.on_decision(me, Time(0)).is_err());
        trust.on_order(me, EffectId(1), Time(100));
        trust.on_answer(me, EffectId(1), Some(Millis(3_500)));
        assert_eq!(trust.on_decision(me, Time(3_600)), Ok(()));
        assert!(trust.on_decision(me, Time(3_601)).is_err());
    }
}
