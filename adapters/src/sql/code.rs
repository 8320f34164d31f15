//! How enums of core stand in the database. A code is never given a second meaning.

use tenure_core::outcome::Verdict;
use tenure_core::store::{AttemptEnd, LoseReason, Status};

use super::error::BadValue;

/// In `attempts.ended_as`: an attempt that had ended as lost is kept and runs on.
pub(super) const OPEN: i64 = 0;

pub(super) fn of_status(status: Status) -> i64 {
    match status {
        Status::Pending => 0,
        Status::Running => 1,
        Status::Completed => 2,
        Status::Failed => 3,
        Status::Cancelled => 4,
    }
}

pub(super) fn status(code: i64) -> Result<Status, BadValue> {
    Ok(match code {
        0 => Status::Pending,
        1 => Status::Running,
        2 => Status::Completed,
        3 => Status::Failed,
        4 => Status::Cancelled,
        _ => return Err(BadValue { what: "tasks.status", value: code.to_string() }),
    })
}

pub(super) fn of_end(end: AttemptEnd) -> i64 {
    match end {
        AttemptEnd::Undone => 1,
        AttemptEnd::Lost { counted: false } => 2,
        AttemptEnd::Lost { counted: true } => 3,
        AttemptEnd::Outcome => 4,
    }
}

pub(super) fn end(code: Option<i64>) -> Result<Option<AttemptEnd>, BadValue> {
    Ok(match code {
        None | Some(OPEN) => None,
        Some(1) => Some(AttemptEnd::Undone),
        Some(2) => Some(AttemptEnd::Lost { counted: false }),
        Some(3) => Some(AttemptEnd::Lost { counted: true }),
        Some(4) => Some(AttemptEnd::Outcome),
        Some(code) => return Err(BadValue { what: "ended_as", value: code.to_string() }),
    })
}

pub(super) fn of_reason(reason: LoseReason) -> &'static str {
    match reason {
        LoseReason::Disconnected => "disconnected",
        LoseReason::Silent => "silent",
        LoseReason::WorkerRestarted => "worker_restarted",
        LoseReason::NoAnswer => "no_answer",
        LoseReason::NotInInventory => "not_in_inventory",
        LoseReason::NotAdopted => "not_adopted",
    }
}

pub(super) fn reason(text: &str) -> Result<LoseReason, BadValue> {
    Ok(match text {
        "disconnected" => LoseReason::Disconnected,
        "silent" => LoseReason::Silent,
        "worker_restarted" => LoseReason::WorkerRestarted,
        "no_answer" => LoseReason::NoAnswer,
        "not_in_inventory" => LoseReason::NotInInventory,
        "not_adopted" => LoseReason::NotAdopted,
        other => return Err(BadValue { what: "attempts.reason", value: other.to_owned() }),
    })
}

pub(super) fn of_verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Succeeded => "succeeded",
        Verdict::Failed => "failed",
        Verdict::FailedForGood => "failed_for_good",
        Verdict::TimedOut => "timed_out",
        Verdict::Stopped => "stopped",
        Verdict::HandedBack => "handed_back",
    }
}

pub(super) fn verdict(text: &str) -> Result<Verdict, BadValue> {
    Ok(match text {
        "succeeded" => Verdict::Succeeded,
        "failed" => Verdict::Failed,
        "failed_for_good" => Verdict::FailedForGood,
        "timed_out" => Verdict::TimedOut,
        "stopped" => Verdict::Stopped,
        "handed_back" => Verdict::HandedBack,
        other => return Err(BadValue { what: "attempts.verdict", value: other.to_owned() }),
    })
}

/// Unsigned numbers of 64 random bits are kept as the signed number of the same bits.
pub(super) fn of_bits(bits: u64) -> i64 {
    bits.cast_signed()
}

pub(super) fn bits(code: i64) -> u64 {
    code.cast_unsigned()
}

/// Times, lengths, epochs and ids keep their order; what no clock reaches is cut.
pub(super) fn of_count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn count(code: i64) -> u64 {
    u64::try_from(code).unwrap_or(0)
}
