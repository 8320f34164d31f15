//! Property 13: No attempt is started twice. And what leads to it (docs/fencing.md, "Accept", "Session", "Claim"): a start
//! is on the disk before it happens; an attempt that was taken back as never begun does not begin after
//! that ("neither" means never); and only the process that an attempt was claimed for starts it.

use tenure_core::ids::{AttemptRef, Holder};
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
    pub fn on_change(&mut self, seen: &RowChange<'_>, executions: &[Execution]) -> Checked {
        let (Change::Undo { attempt, .. }, Wrote::Applied) = (seen.change, seen.wrote) else {
            return Ok(());
        };
        let at = AttemptRef::new(seen.after.task, *attempt);
        self.undone.push(at);
        if executions.iter().any(|run| run.at == at) {
            return Err("an attempt was taken back as never begun although it had begun");
        }
        Ok(())
    }

    /// A worker decides to start an attempt; it may stand still before it does.
    pub fn on_decision(&self, at: AttemptRef, by: Holder, row: Option<&Row>) -> Checked {
        if self.undone.contains(&at) {
            return Err("an attempt was started after it had been taken back as never begun");
        }
        let newest = row.filter(|row| row.newest() == Some(at));
        if newest.is_some_and(|row| row.holder != Some(by)) {
            return Err("an attempt was started by a process that it was not claimed for");
        }
        Ok(())
    }
}

/// Checks one start against every start before it; `given` tells whether the worker's disk knows it.
pub fn check(start: &Execution, executions: &[Execution], given: bool) -> Checked {
    if executions.iter().any(|run| run.at == start.at) {
        return Err("an attempt was started a second time");
    }
    if !given {
        return Err("an attempt was started that the worker's disk does not know");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tenure_core::ids::{Attempt, Incarnation};

    use super::super::Fate;
    use super::super::samples::{AT, HOLDER, applied, execution, pending, running};
    use super::*;

    #[test]
    fn a_second_start_and_an_unrecorded_one_are_seen() {
        let start = execution(Fate::Runs);
        assert_eq!(check(&start, &[], true), Ok(()));
        assert!(check(&start, &[execution(Fate::Killed)], true).is_err());
        assert!(check(&start, &[], false).is_err());
    }

    #[test]
    fn a_start_of_what_was_taken_back_is_seen_in_either_order() {
        let incarnation = HOLDER.incarnation;
        let undo = Change::Undo { attempt: Attempt::FIRST, incarnation };
        let (before, after) = (running(), pending());
        let seen = applied(&before, &after, &undo);
        let mut once = StartedOnce::default();
        assert_eq!(once.on_decision(AT, HOLDER, None), Ok(()));
        assert_eq!(once.on_change(&seen, &[]), Ok(()));
        assert!(once.on_decision(AT, HOLDER, None).is_err());
        assert!(once.on_change(&seen, &[execution(Fate::Runs)]).is_err());
    }

    #[test]
    fn a_start_by_another_process_is_seen() {
        let once = StartedOnce::default();
        let mut row = running();
        assert_eq!(once.on_decision(AT, HOLDER, Some(&row)), Ok(()));
        row.holder.as_mut().expect("a running row has one").incarnation = Incarnation(99);
        assert!(once.on_decision(AT, HOLDER, Some(&row)).is_err());
    }
}
