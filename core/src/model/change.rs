//! What a change does to a row: the one place where a task's status is decided.
//!
//! Every arm compares what it was decided from (attempt, incarnation, status) with the row as it is, so a
//! late, repeated or mistaken change is harmless.

use crate::ids::{Attempt, Epoch, Holder, Incarnation};
use crate::outcome::{Outcome, Verdict};
use crate::rules::{Rule, Rules};
use crate::store::{AttemptEnd, Change, Row, Status, Wrote};
use crate::time::Time;

/// Applies a change to its row, if the row is still what the change was decided from.
pub fn apply(rules: Rules, row: &mut Row, epoch: Epoch, change: &Change) -> Wrote {
    match change {
        Change::Claim { newest, holder } => claim(rules, row, epoch, *newest, *holder),
        Change::Undo { attempt, incarnation } => undo(rules, row, *attempt, *incarnation),
        Change::Lose { attempt, incarnation, counted, reason: _ } => {
            lose(rules, row, *attempt, *incarnation, *counted)
        }
        Change::Keep { attempt, holder } => keep(rules, row, *attempt, *holder),
        Change::Commit { outcome, retry_at } => commit(rules, row, outcome, *retry_at),
        Change::Cancel { force } => cancel(row, *force),
        Change::MarkStarted { attempt, incarnation } => mark_started(row, *attempt, *incarnation),
        Change::Lift { attempt, holder } => lift(row, *attempt, *holder),
    }
}

fn claim(
    rules: Rules,
    row: &mut Row,
    epoch: Epoch,
    newest: Option<Attempt>,
    holder: Holder,
) -> Wrote {
    let stale = rules.hold(Rule::AttemptCompared) && row.attempt != newest;
    let cancelled = rules.hold(Rule::CancelFlagRead) && row.cancel_requested;
    if row.status != Status::Pending || stale || cancelled {
        return Wrote::Refused;
    }
    row.status = Status::Running;
    row.attempt = Some(Attempt::after(row.attempt));
    row.holder = Some(holder);
    row.epoch = epoch;
    row.end = None;
    row.started = false;
    Wrote::Applied
}

fn undo(rules: Rules, row: &mut Row, attempt: Attempt, incarnation: Incarnation) -> Wrote {
    if !is_open(row, attempt, incarnation) {
        return Wrote::Refused;
    }
    row.end = Some(AttemptEnd::Undone);
    wait_again(rules, row);
    Wrote::Applied
}

fn lose(
    rules: Rules,
    row: &mut Row,
    attempt: Attempt,
    incarnation: Incarnation,
    counted: bool,
) -> Wrote {
    if !is_open(row, attempt, incarnation) {
        return Wrote::Refused;
    }
    row.end = Some(AttemptEnd::Lost { counted });
    if counted {
        row.lost = row.lost.saturating_add(1);
    }
    wait_again(rules, row);
    if row.status == Status::Pending && row.lost >= row.limits.max_lost {
        row.status = Status::Failed;
    }
    Wrote::Applied
}

fn keep(rules: Rules, row: &mut Row, attempt: Attempt, holder: Holder) -> Wrote {
    let counted = match row.end {
        Some(AttemptEnd::Lost { counted }) => counted,
        Some(AttemptEnd::Undone | AttemptEnd::Outcome) if !rules.hold(Rule::KeepOnlyLost) => false,
        Some(AttemptEnd::Undone | AttemptEnd::Outcome) | None => return Wrote::Refused,
    };
    if row.status != Status::Pending || row.attempt != Some(attempt) || row.holder != Some(holder) {
        return Wrote::Refused;
    }
    row.status = Status::Running;
    row.end = None;
    row.started = true;
    if counted {
        row.lost -= 1;
    }
    Wrote::Applied
}

fn commit(rules: Rules, row: &mut Row, outcome: &Outcome, retry_at: Time) -> Wrote {
    let attempt = outcome.at.attempt;
    if row.attempt < Some(attempt) {
        return Wrote::Ahead;
    }
    if rules.hold(Rule::AttemptCompared) && row.attempt != Some(attempt) {
        return Wrote::Superseded;
    }
    let ran = row.holder.map(|holder| holder.incarnation);
    if rules.hold(Rule::IncarnationCompared) && ran != Some(outcome.ran_by) {
        return Wrote::Superseded;
    }
    if rules.hold(Rule::OneOutcome) && row.end == Some(AttemptEnd::Outcome) {
        return Wrote::Repeat;
    }
    if rules.hold(Rule::TerminalIsFinal) && row.status.is_terminal() {
        return Wrote::Superseded;
    }
    row.end = Some(AttemptEnd::Outcome);
    settle_outcome(rules, row, outcome.verdict, retry_at);
    Wrote::Applied
}

/// The first outcome of the newest attempt of a task that is not over decides its status.
fn settle_outcome(rules: Rules, row: &mut Row, verdict: Verdict, retry_at: Time) {
    match verdict {
        Verdict::Succeeded => row.status = Status::Completed,
        Verdict::Failed | Verdict::TimedOut => {
            row.failures = row.failures.saturating_add(1);
            row.not_before = retry_at;
            wait_again(rules, row);
            if row.status == Status::Pending && row.failures >= row.limits.max_attempts {
                row.status = Status::Failed;
            }
        }
        Verdict::FailedForGood => {
            row.failures = row.failures.saturating_add(1);
            row.status = if row.cancel_requested { Status::Cancelled } else { Status::Failed };
        }
        Verdict::Stopped | Verdict::HandedBack => wait_again(rules, row),
    }
}

fn cancel(row: &mut Row, force: bool) -> Wrote {
    match row.status {
        Status::Pending => {
            row.cancel_requested = true;
            row.status = Status::Cancelled;
            Wrote::Applied
        }
        Status::Running if force => {
            row.cancel_requested = true;
            row.status = Status::Cancelled;
            Wrote::Applied
        }
        Status::Running if row.cancel_requested => Wrote::Repeat,
        Status::Running => {
            row.cancel_requested = true;
            Wrote::Applied
        }
        Status::Completed | Status::Failed | Status::Cancelled => Wrote::Refused,
    }
}

fn mark_started(row: &mut Row, attempt: Attempt, incarnation: Incarnation) -> Wrote {
    if !is_open(row, attempt, incarnation) {
        return Wrote::Refused;
    }
    if row.started {
        return Wrote::Repeat;
    }
    row.started = true;
    Wrote::Applied
}

/// The store lost commits (a failover): the attempt exists, whatever the row says. A row that is over stays over.
fn lift(row: &mut Row, attempt: Attempt, holder: Holder) -> Wrote {
    if row.status.is_terminal() || row.attempt >= Some(attempt) {
        return Wrote::Refused;
    }
    row.status = Status::Pending;
    row.attempt = Some(attempt);
    row.holder = Some(holder);
    row.end = Some(AttemptEnd::Lost { counted: false });
    row.started = true;
    Wrote::Applied
}

/// RUNNING with this attempt of this incarnation, which has not ended.
fn is_open(row: &Row, attempt: Attempt, incarnation: Incarnation) -> bool {
    row.status == Status::Running
        && row.attempt == Some(attempt)
        && row.holder.is_some_and(|holder| holder.incarnation == incarnation)
        && row.end.is_none()
}

fn wait_again(rules: Rules, row: &mut Row) {
    let cancelled = row.cancel_requested && rules.hold(Rule::CancelFlagRead);
    row.status = if cancelled { Status::Cancelled } else { Status::Pending };
}
