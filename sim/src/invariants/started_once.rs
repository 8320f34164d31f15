//! 13. No attempt is started twice. And what leads to it (DESIGN.md section 4, "Accept", "Session", "Claim"): a start
//! is on the disk before it happens; an attempt that was taken back as never begun does not begin after
//! that ("neither" means never); and only the process that an attempt was claimed for starts it.

use tenure_core::ids::AttemptRef;
use tenure_core::store::{Change, Row, Wrote};

use super::{Checked, Execution, RowChange};

/// The attempts that were taken back.
#[derive(Debug, Default)]
pub struct StartedOnce {
    undone: Vec<AttemptRef>,
}

impl StartedOnce {
    /// Forgets the history.
    pub fn reset(&mut self) {
        self.undone.clear();
    }

    /// A row was changed.
    pub fn on_change(&mut self, seen: &RowChange<'_>) {
        if let (Change::Undo { attempt, .. }, Wrote::Applied) = (seen.change, seen.wrote) {
            self.undone.push(AttemptRef::new(seen.after.task, *attempt));
        }
    }

    /// Checks one start against every start before it and against the row; `given` tells whether the
    /// worker's disk knows it.
    pub fn on_start(
        &self,
        start: &Execution,
        executions: &[Execution],
        given: bool,
        row: Option<&Row>,
    ) -> Checked {
        if executions.iter().any(|run| run.at == start.at) {
            return Err("an attempt was started a second time");
        }
        if !given {
            return Err("an attempt was started that the worker's disk does not know");
        }
        if self.undone.contains(&start.at) {
            return Err("an attempt was started after it had been taken back as never begun");
        }
        let newest = row.filter(|row| row.newest() == Some(start.at));
        if newest.is_some_and(|row| row.holder != Some(start.holder)) {
            return Err("an attempt was started by a process that it was not claimed for");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::ids::{Attempt, Incarnation};

    use super::super::Fate;
    use super::super::samples::{HOLDER, applied, execution, pending, running};
    use super::*;

    #[test]
    fn a_second_start_and_an_unrecorded_one_are_seen() {
        let (once, start) = (StartedOnce::default(), execution(Fate::Runs));
        assert_eq!(once.on_start(&start, &[], true, None), Ok(()));
        assert!(once.on_start(&start, &[execution(Fate::Killed)], true, None).is_err());
        assert!(once.on_start(&start, &[], false, None).is_err());
    }

    #[test]
    fn a_start_of_what_was_taken_back_is_seen() {
        let mut once = StartedOnce::default();
        let incarnation = HOLDER.incarnation;
        let undo = Change::Undo { attempt: Attempt::FIRST, incarnation };
        once.on_change(&applied(&running(), &pending(), &undo));
        assert!(once.on_start(&execution(Fate::Runs), &[], true, None).is_err());
    }

    #[test]
    fn a_start_by_another_process_is_seen() {
        let mut row = running();
        let start = execution(Fate::Runs);
        assert_eq!(StartedOnce::default().on_start(&start, &[], true, Some(&row)), Ok(()));
        row.holder.as_mut().expect("a running row has one").incarnation = Incarnation(99);
        assert!(StartedOnce::default().on_start(&start, &[], true, Some(&row)).is_err());
    }
}
