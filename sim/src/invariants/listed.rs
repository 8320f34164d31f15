//! docs/fencing.md, "Every heartbeat": a mismatch is one only if the attempt is in neither part of the
//! inventory. What a worker's last inventory lists is not taken back as never begun or as not there.

use tenure_core::ids::{AttemptRef, SessionId, WorkerId};
use tenure_core::message::Inventory;
use tenure_core::store::{Change, LoseReason};

use super::Checked;

/// The last inventory that each master heard of each worker.
#[derive(Debug, Default)]
pub struct Listed {
    last: Vec<Heard>,
}

#[derive(Debug)]
struct Heard {
    master: usize,
    worker: WorkerId,
    session: SessionId,
    attempts: Vec<AttemptRef>,
}

impl Listed {
    /// Forgets the history.
    pub fn reset(&mut self) {
        self.last.clear();
    }

    /// A master hears an inventory. One in an older session than the last is late and says nothing.
    pub fn on_heard(
        &mut self,
        master: usize,
        worker: WorkerId,
        session: SessionId,
        inventory: &Inventory,
    ) {
        let finished = inventory.finished.iter().map(|finished| finished.at);
        let attempts = inventory.running.iter().copied().chain(finished);
        let known =
            self.last.iter_mut().find(|last| (last.master, last.worker) == (master, worker));
        match known {
            Some(last) if last.session > session => {}
            Some(last) => {
                last.session = session;
                last.attempts.clear();
                last.attempts.extend(attempts);
            }
            None => {
                let attempts = attempts.collect();
                self.last.push(Heard { master, worker, session, attempts });
            }
        }
    }

    /// Whether the worker's last inventory lists the attempt, whichever of its processes ran it.
    #[must_use]
    pub fn lists(&self, master: usize, worker: WorkerId, at: AttemptRef) -> bool {
        self.last.iter().any(|last| {
            (last.master, last.worker) == (master, worker) && last.attempts.contains(&at)
        })
    }

    /// A master decides a change of an attempt that this worker holds.
    pub fn on_decision(
        &self,
        master: usize,
        worker: WorkerId,
        at: AttemptRef,
        change: &Change,
    ) -> Checked {
        let takes_back = matches!(
            change,
            Change::Undo { .. } | Change::Lose { reason: LoseReason::NotInInventory, .. }
        );
        if takes_back && self.lists(master, worker, at) {
            Err("an attempt was taken back that its worker's inventory lists")
        } else {
            Ok(())
        }
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
        let (worker, mut listed) = (HOLDER.worker, Listed::default());
        let finished = vec![Finished { at: AT, ran_by: HOLDER.incarnation }];
        let with = Inventory { running: Vec::new(), finished };
        listed.on_heard(0, worker, SessionId(2), &with);
        assert!(listed.on_decision(0, worker, AT, &undo).is_err());
        assert_eq!(listed.on_decision(1, worker, AT, &undo), Ok(()));
        listed.on_heard(0, worker, SessionId(1), &Inventory::default());
        assert!(listed.on_decision(0, worker, AT, &undo).is_err());
        listed.on_heard(0, worker, SessionId(3), &Inventory::default());
        assert_eq!(listed.on_decision(0, worker, AT, &undo), Ok(()));
    }
}
