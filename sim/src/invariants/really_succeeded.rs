//! Property 3: COMPLETED only if an execution of that attempt really succeeded; and no failure is counted that did
//! not happen.

use tenure_core::outcome::Verdict;
use tenure_core::store::{Row, Status};

use super::{Checked, Execution, Fate, RowChange};

/// Checks one change.
pub fn check(seen: &RowChange<'_>, executions: &[Execution]) -> Checked {
    let completes =
        seen.after.status == Status::Completed && seen.before.status != Status::Completed;
    if completes && !succeeded(seen.after, executions) {
        return Err("COMPLETED, but no execution of the attempt succeeded");
    }
    if seen.after.failures > seen.before.failures
        && usize::from(seen.after.failures) > failed(seen.after, executions)
    {
        return Err("more failures are counted than executions failed");
    }
    Ok(())
}

fn succeeded(row: &Row, executions: &[Execution]) -> bool {
    executions.iter().any(|run| {
        Some(run.at) == row.newest()
            && Some(run.holder) == row.holder
            && run.fate == Fate::Ended(Verdict::Succeeded)
    })
}

fn failed(row: &Row, executions: &[Execution]) -> usize {
    let failed = executions.iter().filter(|run| {
        let ended = matches!(run.fate, Fate::Ended(Verdict::Failed | Verdict::FailedForGood));
        run.at.task == row.task && ended
    });
    failed.count()
}

#[cfg(test)]
mod tests {
    use super::super::samples::{applied, commit, execution, running};
    use super::*;

    #[test]
    fn a_completion_without_a_success_is_seen() {
        let (before, after) = (running(), Row { status: Status::Completed, ..running() });
        let change = commit(Verdict::Succeeded);
        let seen = applied(&before, &after, &change);
        assert!(check(&seen, &[]).is_err());
        assert!(check(&seen, &[execution(Fate::Killed)]).is_err());
        assert_eq!(check(&seen, &[execution(Fate::Ended(Verdict::Succeeded))]), Ok(()));
    }

    #[test]
    fn a_failure_that_did_not_happen_is_seen() {
        let (before, after) = (Row { failures: 1, ..running() }, Row { failures: 2, ..running() });
        let change = commit(Verdict::Failed);
        let seen = applied(&before, &after, &change);
        assert!(check(&seen, &[execution(Fate::Ended(Verdict::Failed))]).is_err());
    }
}
