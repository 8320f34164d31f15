//! Property 2: At most one commit per task; one outcome per attempt; a terminal status never changes; attempts only
//! grow; the committed attempt is the newest claimed.

use tenure_core::store::{AttemptEnd, Change, Wrote};

use super::{Checked, RowChange};

/// Checks one change.
pub fn check(seen: &RowChange<'_>) -> Checked {
    let RowChange { before, after, change, wrote } = *seen;
    if before.status.is_terminal() && after.status != before.status {
        return Err("a terminal status was changed");
    }
    if after.attempt < before.attempt {
        return Err("the newest attempt went down");
    }
    if wrote != Wrote::Applied {
        return Ok(());
    }
    match change {
        Change::Commit { outcome, .. } => {
            if Some(outcome.at.attempt) != before.attempt {
                return Err("an outcome of an older attempt was committed");
            }
            if before.end == Some(AttemptEnd::Outcome) {
                return Err("an attempt got a second outcome");
            }
            let holder = before.holder.map(|holder| holder.incarnation);
            if holder != Some(outcome.ran_by) {
                return Err("an outcome was credited that another incarnation ran");
            }
            Ok(())
        }
        Change::Keep { .. } if !matches!(before.end, Some(AttemptEnd::Lost { .. })) => {
            Err("an attempt was kept that had not ended as lost")
        }
        Change::Claim { .. }
        | Change::Undo { .. }
        | Change::Lose { .. }
        | Change::Keep { .. }
        | Change::Cancel { .. }
        | Change::MarkStarted { .. }
        | Change::Lift { .. } => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::ids::{Attempt, Incarnation};
    use tenure_core::outcome::Verdict;
    use tenure_core::store::{Row, Status};

    use super::super::samples::{HOLDER, applied, commit, running};
    use super::*;

    #[test]
    fn a_changed_end_is_seen() {
        let before = Row { status: Status::Cancelled, ..running() };
        let after = Row { status: Status::Completed, ..running() };
        assert!(check(&applied(&before, &after, &commit(Verdict::Succeeded))).is_err());
    }

    #[test]
    fn a_second_outcome_and_a_foreign_one_are_seen() {
        let twice = Row { end: Some(AttemptEnd::Outcome), ..running() };
        assert!(check(&applied(&twice, &twice, &commit(Verdict::Failed))).is_err());
        let mut foreign = running();
        foreign.holder.as_mut().expect("a running row has one").incarnation = Incarnation(99);
        assert!(check(&applied(&foreign, &foreign, &commit(Verdict::Failed))).is_err());
    }

    #[test]
    fn an_older_attempt_and_a_falling_one_are_seen() {
        let newer = Row { attempt: Attempt::new(2), ..running() };
        assert!(check(&applied(&newer, &newer, &commit(Verdict::Succeeded))).is_err());
        assert!(check(&applied(&newer, &running(), &super::super::samples::claim())).is_err());
    }

    #[test]
    fn keeping_what_was_undone_is_seen() {
        let undone = Row { status: Status::Pending, end: Some(AttemptEnd::Undone), ..running() };
        let keep = Change::Keep { attempt: Attempt::FIRST, holder: HOLDER };
        assert!(check(&applied(&undone, &running(), &keep)).is_err());
    }

    #[test]
    fn an_ordinary_commit_is_fine() {
        let (before, after) = (running(), Row { status: Status::Completed, ..running() });
        assert_eq!(check(&applied(&before, &after, &commit(Verdict::Succeeded))), Ok(()));
    }
}
