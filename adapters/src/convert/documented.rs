//! What documented workers say: text ids, no incarnation, no inventory.

use tenure_core::ids::{Attempt, TaskId};
use tenure_core::message::ToMaster;
use tenure_core::outcome::Verdict;
use tenure_core::spec::Payload;
use tenure_proto::{Message, messages as pb};

use super::ConvertError;
use super::parts::{at, signed_attempt, to_signed};
use crate::names::Names;

/// What the training script prints before its reward.
const REWARD_LINE: &str = "FINAL_REWARD:";

/// A task that was never given by this store: what a worker runs that came with another master's id.
const FOREIGN: TaskId = TaskId(u64::MAX);

/// The reward that a line of output tells, as decimal text.
#[must_use]
pub fn reward_in(line: &str) -> Option<&str> {
    let told = line.trim().strip_prefix(REWARD_LINE)?.trim();
    told.parse::<f64>().ok().filter(|reward| reward.is_finite()).map(|_| told)
}

/// What a documented worker's log told on this connection; its report leaves that out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DocumentedLog {
    /// The last reward, as decimal text.
    pub reward: Option<String>,
    /// How many lines were taken.
    pub lines: u64,
}

/// Reads what a worker said that says no hello. `None`: nothing that core decides from: log lines, or words
/// about a task that was never given by this store.
///
/// # Errors
/// [`ConvertError`] if the worker broke the protocol.
pub fn read_documented(
    message: &Message,
    log: &DocumentedLog,
    names: &Names,
) -> Result<Option<ToMaster>, ConvertError> {
    match message {
        Message::Heartbeat(beat) => heartbeat(beat, names).map(Some),
        Message::ExecuteAnswer(said) => Ok(answer(said)),
        Message::Report(said) => report(said, log),
        Message::Log(_) => Ok(None),
        other => Err(ConvertError::WrongSide { name: other.name() }),
    }
}

fn heartbeat(beat: &pb::HeartbeatRequest, names: &Names) -> Result<ToMaster, ConvertError> {
    if beat.worker_id.is_empty() {
        return Err(at("HeartbeatRequest", "workerId").missing());
    }
    let current = beat.current_task_id.as_str();
    let busy = (!current.is_empty()).then(|| task(current).unwrap_or(FOREIGN));
    Ok(ToMaster::DocumentedHeartbeat { worker: names.worker(&beat.worker_id), busy })
}

fn answer(answer: &pb::ExecuteTaskResponse) -> Option<ToMaster> {
    let task = task(&answer.task_id)?;
    Some(ToMaster::DocumentedAnswer { task, accepted: answer.accepted })
}

fn report(
    report: &pb::TaskStatusReport,
    log: &DocumentedLog,
) -> Result<Option<ToMaster>, ConvertError> {
    let verdict = match report.status.as_str() {
        "COMPLETED" => Some(Verdict::Succeeded),
        "FAILED" => Some(Verdict::Failed),
        "RUNNING" => None,
        other => return Err(at("TaskStatusReport", "status").cannot_be(other)),
    };
    let attempt = match report.attempt {
        0 => None,
        number => Some(signed_attempt(at("TaskStatusReport", "attempt"), number)?),
    };
    let Some(task) = task(&report.task_id) else {
        return Ok(None);
    };
    Ok(Some(match verdict {
        // A sign that it runs, which is what its answer says too.
        None => ToMaster::DocumentedAnswer { task, accepted: true },
        Some(verdict) => {
            let report = Payload::of(&details(report, log).to_bytes());
            ToMaster::DocumentedReport { task, attempt, verdict, report }
        }
    }))
}

/// What it says, and what its log told.
fn details(report: &pb::TaskStatusReport, log: &DocumentedLog) -> pb::OutcomeReport {
    let own = (report.final_reward != 0.0).then(|| report.final_reward.to_string());
    let failed = report.status == "FAILED";
    pb::OutcomeReport {
        message: report.error_message.clone(),
        reward: own.or_else(|| log.reward.clone()).unwrap_or_default(),
        log_lines: log.lines,
        cause: if failed { "reported" } else { "" }.to_owned(),
        ..Default::default()
    }
}

/// Masters of Tenure name tasks by their number in decimal.
fn task(id: &str) -> Option<TaskId> {
    id.parse().ok().filter(|number| *number != 0).map(TaskId)
}

/// The documented word for how an attempt ended.
pub(super) fn status(verdict: Verdict) -> &'static str {
    if verdict == Verdict::Succeeded { "COMPLETED" } else { "FAILED" }
}

pub(super) fn write_heartbeat(
    worker: &str,
    hostname: &str,
    busy: Option<TaskId>,
) -> pb::HeartbeatRequest {
    pb::HeartbeatRequest {
        worker_id: worker.to_owned(),
        hostname: hostname.to_owned(),
        current_task_id: busy.map(|task| task.0.to_string()).unwrap_or_default(),
        ..Default::default()
    }
}

pub(super) fn write_answer(task: TaskId, accepted: bool) -> pb::ExecuteTaskResponse {
    pb::ExecuteTaskResponse { task_id: task.0.to_string(), accepted, ..Default::default() }
}

pub(super) fn write_report(
    task: TaskId,
    attempt: Option<Attempt>,
    verdict: Verdict,
    report: &Payload,
) -> pb::TaskStatusReport {
    let details = pb::OutcomeReport::from_bytes(report.bytes()).unwrap_or_default();
    pb::TaskStatusReport {
        task_id: task.0.to_string(),
        status: status(verdict).to_owned(),
        final_reward: details.reward.parse().unwrap_or_default(),
        error_message: details.message,
        attempt: attempt.map(to_signed).unwrap_or_default(),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reward_is_taken_from_its_line_only() {
        assert_eq!(reward_in("FINAL_REWARD:94.73"), Some("94.73"));
        assert_eq!(reward_in("  FINAL_REWARD: -1e3 \r"), Some("-1e3"));
        for line in [
            "reward 3",
            "FINAL_REWARD:",
            "FINAL_REWARD:high",
            "FINAL_REWARD:NaN",
            "x FINAL_REWARD:1",
        ] {
            assert_eq!(reward_in(line), None, "{line}");
        }
    }

    #[test]
    fn a_reward_in_the_report_goes_before_the_one_in_the_log() {
        let log = DocumentedLog { reward: Some("1.50".to_owned()), lines: 7 };
        let report = pb::TaskStatusReport { final_reward: 2.5, ..Default::default() };
        assert_eq!(details(&report, &log).reward, "2.5");
        let silent = pb::TaskStatusReport::default();
        assert_eq!(details(&silent, &log).reward, "1.50");
        assert_eq!(details(&silent, &log).log_lines, 7);
        assert_eq!(details(&silent, &DocumentedLog::default()).reward, "");
    }
}
