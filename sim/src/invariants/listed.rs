//! DESIGN.md section 4, "Every heartbeat": a mismatch is one only if the attempt is in neither part of the
//! inventory. What a worker's last inventory lists is not taken back as never begun or as not there.

use tenure_core::ids::{AttemptRef, Holder, Incarnation};
use tenure_core::message::Inventory;
use tenure_core::store::{Change, LoseReason};

use super::Checked;

/// The last inventory that each master heard of each process of a worker.
#[derive(Debug, Default)]
pub struct Listed {
    last: Vec<(usize, Holder, Vec<AttemptRef>)>,
}

impl Listed {
    /// Forgets the history.
    pub fn reset(&mut self) {
        self.last.clear();
    }

    /// A master hears an inventory.
    pub fn on_heard(&mut self, master: usize, holder: Holder, inventory: &Inventory) {
        let finished = inventory.finished.iter();
        let mine = finished.filter(|finished| finished.ran_by == holder.incarnation);
        let listed = inventory.running.iter().copied().chain(mine.map(|finished| finished.at));
        match self.last.iter_mut().find(|(by, of, _)| (*by, *of) == (master, holder)) {
            Some((_, _, last)) => {
                last.clear();
                last.extend(listed);
            }
            None => self.last.push((master, holder, listed.collect())),
        }
    }

    /// A master decides a change of an attempt.
    pub fn on_decision(&self, master: usize, at: AttemptRef, change: &Change) -> Checked {
        let of: Incarnation = match change {
            Change::Undo { incarnation, .. } => *incarnation,
            Change::Lose { incarnation, reason: LoseReason::NotInInventory, .. } => *incarnation,
            _ => return Ok(()),
        };
        let listed = self.last.iter().any(|(by, holder, last)| {
            *by == master && holder.incarnation == of && last.contains(&at)
        });
        if listed { Err("an attempt was taken back that its worker's inventory lists") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::ids::Attempt;
    use tenure_core::message::Finished;

    use super::super::samples::{AT, HOLDER};
    use super::*;

    #[test]
    fn taking_back_what_is_listed_as_finished_is_seen() {
        let undo = Change::Undo { attempt: Attempt::FIRST, incarnation: HOLDER.incarnation };
        let mut listed = Listed::default();
        let finished = vec![Finished { at: AT, ran_by: HOLDER.incarnation }];
        listed.on_heard(0, HOLDER, &Inventory { running: Vec::new(), finished });
        assert!(listed.on_decision(0, AT, &undo).is_err());
        assert_eq!(listed.on_decision(1, AT, &undo), Ok(()));
        listed.on_heard(0, HOLDER, &Inventory::default());
        assert_eq!(listed.on_decision(0, AT, &undo), Ok(()));
    }
}
