//! Property 14: An outcome leaves the outbox only when the store has it, or has a later attempt or an end. And what
//! leads to it: an outcome is on the disk before it is told, is acknowledged only after the store has
//! it, and is in every inventory until then.

use tenure_core::ids::{AttemptRef, Incarnation, WorkerId};
use tenure_core::message::Inventory;
use tenure_core::outcome::Outcome;
use tenure_core::store::{AttemptEnd, Row};

use super::Checked;

/// Which outcomes each worker must still list.
#[derive(Debug, Default)]
pub struct Outbox {
    owed: Vec<(WorkerId, AttemptRef, Incarnation)>,
}

impl Outbox {
    /// Forgets the history.
    pub fn reset(&mut self) {
        self.owed.clear();
    }

    /// A worker's agent starts with these outcomes on its disk.
    pub fn on_boot(&mut self, worker: WorkerId, outcomes: &[Outcome]) {
        self.owed.retain(|(owes, _, _)| *owes != worker);
        self.owed.extend(outcomes.iter().map(|outcome| (worker, outcome.at, outcome.ran_by)));
    }

    /// A worker's agent knows that an outcome is on its disk.
    pub fn on_persisted(&mut self, worker: WorkerId, outcome: &Outcome) {
        let owed = (worker, outcome.at, outcome.ran_by);
        if !self.owed.contains(&owed) {
            self.owed.push(owed);
        }
    }

    /// A worker forgets an outcome.
    pub fn on_forgotten(
        &mut self,
        worker: WorkerId,
        at: AttemptRef,
        ran_by: Incarnation,
        row: Option<&Row>,
    ) -> Checked {
        self.owed.retain(|owed| *owed != (worker, at, ran_by));
        if row.is_some_and(|row| settled(row, at, ran_by)) {
            Ok(())
        } else {
            Err("an outcome left the outbox that the store does not have")
        }
    }

    /// A worker tells all that it has.
    pub fn on_inventory(&self, worker: WorkerId, inventory: &Inventory) -> Checked {
        let missing = self.owed.iter().any(|(owes, at, _)| {
            *owes == worker && !inventory.finished(*at) && !inventory.runs(*at)
        });
        if missing {
            Err("an outcome that was not acknowledged is missing in an inventory")
        } else {
            Ok(())
        }
    }
}

/// A worker tells an outcome: its disk must have it.
pub fn on_told(on_disk: bool) -> Checked {
    if on_disk { Ok(()) } else { Err("an outcome was told before it was on the disk") }
}

/// A master acknowledges an outcome: the store must have it, or more.
pub fn on_acknowledged(row: Option<&Row>, at: AttemptRef, ran_by: Incarnation) -> Checked {
    if row.is_some_and(|row| settled(row, at, ran_by)) {
        Ok(())
    } else {
        Err("an outcome was acknowledged that the store does not have")
    }
}

fn settled(row: &Row, at: AttemptRef, ran_by: Incarnation) -> bool {
    let another = row.holder.is_some_and(|holder| holder.incarnation != ran_by);
    row.status.is_terminal()
        || row.attempt > Some(at.attempt)
        || (row.attempt == Some(at.attempt) && (row.end == Some(AttemptEnd::Outcome) || another))
}

#[cfg(test)]
mod tests {
    use tenure_core::outcome::Verdict;

    use super::super::samples::{AT, HOLDER, outcome, running};
    use super::*;

    #[test]
    fn an_outcome_that_is_forgotten_too_early_is_seen() {
        let mut outbox = Outbox::default();
        outbox.on_persisted(HOLDER.worker, &outcome(Verdict::Succeeded));
        let open = running();
        assert!(on_acknowledged(Some(&open), AT, HOLDER.incarnation).is_err());
        assert!(outbox.on_forgotten(HOLDER.worker, AT, HOLDER.incarnation, Some(&open)).is_err());
        let stored = Row { end: Some(AttemptEnd::Outcome), ..running() };
        assert_eq!(on_acknowledged(Some(&stored), AT, HOLDER.incarnation), Ok(()));
    }

    #[test]
    fn an_outcome_that_an_inventory_misses_is_seen() {
        let mut outbox = Outbox::default();
        outbox.on_boot(HOLDER.worker, &[outcome(Verdict::Failed)]);
        assert!(outbox.on_inventory(HOLDER.worker, &Inventory::default()).is_err());
        let listed = Inventory { running: vec![AT], finished: Vec::new() };
        assert_eq!(outbox.on_inventory(HOLDER.worker, &listed), Ok(()));
    }

    #[test]
    fn an_outcome_that_is_told_before_it_is_kept_is_seen() {
        assert!(on_told(false).is_err());
        assert_eq!(on_told(true), Ok(()));
    }
}
