//! From what the store tells to the documents of the API.

use jiff::Timestamp;
use tenure_core::ids::{Epoch, TaskId};
use tenure_core::outcome::Verdict;
use tenure_core::spec::Payload;
use tenure_core::store::{AttemptEnd, LoseReason, Status};
use tenure_core::time::Time;
use tenure_proto::messages::{OutcomeReport, TaskBody};

use super::shapes::{Attempt, Event, Outcome, Progress, Task, TaskDetail};
use crate::convert;
use crate::sql::{AttemptView, EventView, TaskView};

/// A time as the API writes it.
pub(super) fn time(at: Time) -> String {
    let ms = i64::try_from(at.0).unwrap_or(i64::MAX);
    let at = Timestamp::from_millisecond(ms).unwrap_or(Timestamp::MAX);
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// A time of a worker, who says 0 for none.
fn worker_time(ms: u64) -> Option<String> {
    (ms != 0).then(|| time(Time(ms)))
}

pub(super) fn status(status: Status) -> &'static str {
    match status {
        Status::Pending => "PENDING",
        Status::Running => "RUNNING",
        Status::Completed => "COMPLETED",
        Status::Failed => "FAILED",
        Status::Cancelled => "CANCELLED",
    }
}

/// The status of this name.
pub(super) fn status_of(name: &str) -> Option<Status> {
    let all =
        [Status::Pending, Status::Running, Status::Completed, Status::Failed, Status::Cancelled];
    all.into_iter().find(|known| status(*known).eq_ignore_ascii_case(name))
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Succeeded => "succeeded",
        Verdict::Failed => "failed",
        Verdict::FailedForGood => "failed_for_good",
        Verdict::TimedOut => "timed_out",
        Verdict::Stopped => "stopped",
        Verdict::HandedBack => "handed_back",
    }
}

fn reason(reason: LoseReason) -> &'static str {
    match reason {
        LoseReason::Disconnected => "disconnected",
        LoseReason::Silent => "silent",
        LoseReason::WorkerRestarted => "worker_restarted",
        LoseReason::NoAnswer => "no_answer",
        LoseReason::NotInInventory => "not_in_inventory",
        LoseReason::NotAdopted => "not_adopted",
    }
}

/// A task without its story.
pub(super) fn task(
    view: &TaskView,
    body: &TaskBody,
    waits_for: Option<&str>,
    progress: Option<convert::Progress>,
) -> Task {
    let row = &view.row;
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Task {
        id: row.task.0.to_string(),
        name: body.name.clone(),
        status: status(row.status).to_owned(),
        waits_for: waits_for.map(str::to_owned),
        command: body.command.clone(),
        cwd: text(&body.cwd),
        attempt: row.attempt.map(tenure_core::ids::Attempt::number),
        worker: view.worker.as_deref().map(str::to_owned),
        epoch: row.attempt.map(|_| epoch(row.epoch)),
        priority: row.limits.priority,
        slots: row.shape.slots,
        gpus: row.shape.gpus,
        labels: view.labels.iter().map(|label| label.to_string()).collect(),
        timeout_ms: row.limits.timeout.map(|length| length.0),
        patience_ms: row.limits.patience.map(|length| length.0),
        max_attempts: row.limits.max_attempts,
        max_lost: row.limits.max_lost,
        resumable: body.resumable,
        failures: row.failures,
        lost: row.lost,
        cancel_requested: row.cancel_requested,
        submitted_at: time(row.submitted_at),
        changed_at: time(view.changed_at),
        not_before_at: (row.status == Status::Pending && row.not_before > row.submitted_at)
            .then(|| time(row.not_before)),
        progress: progress
            .map(|said| Progress { text: said.text.to_string(), at: time(Time(said.at_ms)) }),
    }
}

/// A task with its story.
pub(super) fn detail(
    task: Task,
    body: TaskBody,
    attempts: &[AttemptView],
    events: &[EventView],
) -> TaskDetail {
    let committed = attempts
        .iter()
        .rev()
        .find(|attempt| attempt.end == Some(AttemptEnd::Outcome) && !attempt.superseded);
    let is_over = status_of(&task.status).is_some_and(Status::is_terminal);
    TaskDetail {
        outcome: committed.filter(|_| is_over).and_then(outcome),
        env: body.env,
        attempts: attempts.iter().map(attempt).collect(),
        events: events.iter().map(event).collect(),
        task,
    }
}

/// What a task runs. Bytes that this version cannot read show as nothing.
pub(super) fn body(task: TaskId, payload: &Payload) -> TaskBody {
    TaskBody::from_bytes(payload.bytes()).unwrap_or_else(|error| {
        tracing::warn!(%task, %error, "what the task runs cannot be read");
        TaskBody::default()
    })
}

fn epoch(epoch: Epoch) -> String {
    epoch.0.to_string()
}

fn attempt(view: &AttemptView) -> Attempt {
    let state = match (view.superseded, view.end) {
        (true, _) => "SUPERSEDED",
        (false, None) => "OPEN",
        (false, Some(AttemptEnd::Undone)) => "UNDONE",
        (false, Some(AttemptEnd::Lost { .. })) => "LOST",
        (false, Some(AttemptEnd::Outcome)) => "ENDED",
    };
    Attempt {
        attempt: view.attempt.number(),
        worker: view.worker.as_deref().map(str::to_owned),
        incarnation: format!("{:016x}", view.incarnation.0),
        epoch: view.epoch.map(epoch),
        state: state.to_owned(),
        reason: view.reason.map(|why| reason(why).to_owned()),
        claimed_at: view.claimed_at.map(time),
        started_at: view.started_at.map(time),
        ended_at: view.ended_at.map(time),
        outcome: outcome(view),
    }
}

/// The details of an attempt's outcome, if it has one.
pub(super) fn report(view: &AttemptView) -> Option<OutcomeReport> {
    view.verdict?;
    let read = OutcomeReport::from_bytes(view.report.bytes());
    Some(read.unwrap_or_else(|error| {
        tracing::warn!(attempt = %view.attempt, %error, "the report of an attempt cannot be read");
        OutcomeReport::default()
    }))
}

fn outcome(view: &AttemptView) -> Option<Outcome> {
    let report = report(view)?;
    let text = |text: String| (!text.is_empty()).then_some(text);
    Some(Outcome {
        verdict: verdict(view.verdict?).to_owned(),
        exit_code: report.exit_code,
        signal: report.signal,
        cause: report.cause,
        message: report.message,
        reward: text(report.reward),
        result: serde_json::from_slice(&report.result_json).ok(),
        log_lines: report.log_lines,
        started_at: worker_time(report.started_at_ms),
        ended_at: worker_time(report.ended_at_ms),
    })
}

fn event(view: &EventView) -> Event {
    Event {
        at: time(view.at),
        what: view.what.clone(),
        status: status(view.status).to_owned(),
        attempt: view.attempt.map(tenure_core::ids::Attempt::number),
        worker: view.worker.as_deref().map(str::to_owned),
        epoch: epoch(view.epoch),
        detail: view.detail.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rfc_3339_in_utc_with_milliseconds() {
        assert_eq!(time(Time(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(time(Time(1_772_323_200_007)), "2026-03-01T00:00:00.007Z");
        assert!(time(Time(u64::MAX)).starts_with("9999-12-3"), "{}", time(Time(u64::MAX)));
    }

    #[test]
    fn statuses_are_found_whatever_their_case() {
        assert_eq!(status_of("pending"), Some(Status::Pending));
        assert_eq!(status_of("RUNNIG"), None);
    }
}
