//! Property 9: A cancelled task does not complete after the cancel was confirmed; and a stored wish to cancel is
//! never forgotten: the task is not claimed again.

use tenure_core::ids::TaskId;
use tenure_core::store::{Change, Status, Wrote};

use super::{Checked, RowChange};

/// What clients were told of their cancels.
#[derive(Debug, Default)]
pub struct Cancel {
    confirmed: Vec<TaskId>,
}

impl Cancel {
    /// Forgets the history.
    pub fn reset(&mut self) {
        self.confirmed.clear();
    }

    /// A client was told that its task is cancelled.
    pub fn on_confirmed(&mut self, task: TaskId, stored: Status) -> Checked {
        self.confirmed.push(task);
        if stored == Status::Cancelled {
            Ok(())
        } else {
            Err("a client was told of a cancel that the store does not have")
        }
    }

    /// A row was changed.
    pub fn on_change(&self, seen: &RowChange<'_>) -> Checked {
        if seen.after.status != Status::Cancelled && self.confirmed.contains(&seen.after.task) {
            return Err("a task left CANCELLED after its client was told");
        }
        if !seen.before.cancel_requested {
            return Ok(());
        }
        if !seen.after.cancel_requested {
            return Err("a stored wish to cancel was forgotten");
        }
        let claims = matches!(seen.change, Change::Claim { .. }) && seen.wrote == Wrote::Applied;
        if claims { Err("a task was claimed although a cancel is stored") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::outcome::Verdict;
    use tenure_core::store::Row;

    use super::super::samples::{TASK, applied, claim, commit, pending, running};
    use super::*;

    #[test]
    fn a_completion_after_the_confirmation_is_seen() {
        let mut cancel = Cancel::default();
        assert_eq!(cancel.on_confirmed(TASK, Status::Cancelled), Ok(()));
        let after = Row { status: Status::Completed, ..running() };
        assert!(
            cancel.on_change(&applied(&running(), &after, &commit(Verdict::Succeeded))).is_err()
        );
    }

    #[test]
    fn a_claim_over_the_flag_is_seen() {
        let flagged = Row { cancel_requested: true, ..pending() };
        let after = Row { cancel_requested: true, ..running() };
        assert!(Cancel::default().on_change(&applied(&flagged, &after, &claim())).is_err());
    }

    #[test]
    fn a_confirmation_that_the_store_does_not_have_is_seen() {
        assert!(Cancel::default().on_confirmed(TASK, Status::Running).is_err());
    }
}
