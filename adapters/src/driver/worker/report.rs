//! What an attempt's end comes to, and what people read about it.

use tenure_core::outcome::Verdict;
use tenure_proto::messages::OutcomeReport;

use nix::sys::signal::Signal;

use crate::process::result::TaskResult;
use crate::process::{Exit, Fault};

/// Why its worker ended an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopCause {
    /// Its task was cancelled.
    Cancelled,
    /// Its task has a later attempt, or is over.
    Superseded,
    /// It ran for this many milliseconds, which was all it had.
    TimedOut(u64),
    /// The worker is leaving.
    HandedBack,
}

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum End {
    /// There was a process.
    Exited {
        exit: Exit,
        /// Descendants that outlived the command and were killed.
        killed: u32,
        /// Processes that could not be killed.
        survivors: u32,
    },
    /// Its program did not run.
    NotStarted { fault: Fault, error: String },
    /// What it should run cannot be read.
    Unreadable(String),
    /// It was ended before its program ran.
    NeverRan,
}

/// The verdict, and the parts of the report that follow from the end alone.
pub(super) fn judge(end: &End, stop: Option<StopCause>) -> (Verdict, OutcomeReport) {
    let (verdict, cause, how) = outcome(end);
    let mut report = OutcomeReport { cause: cause.to_owned(), message: how, ..Default::default() };
    if let End::Exited { exit, killed, survivors } = end {
        match exit {
            Exit::Code(code) => report.exit_code = Some(*code),
            Exit::Signal(signal) => report.signal = Some(*signal),
            Exit::Lost => {}
        }
        // After a stop, descendants are killed because that was asked.
        if *killed > 0 && stop.is_none() {
            add(&mut report.message, &left(*killed, "was still running and was killed"));
        }
        if *survivors > 0 {
            add(&mut report.message, &left(*survivors, "cannot be killed and still runs"));
        }
    }
    if let Some(stop) = stop {
        explain_stop(verdict, stop, &mut report);
    }
    (verdict, report)
}

/// What an attempt comes to that met a fault of the worker's own.
pub(super) fn broken() -> (Verdict, OutcomeReport) {
    let message =
        "the worker's program failed at this attempt and killed it; its log has the panic";
    let (cause, message) = ("worker_fault".to_owned(), message.to_owned());
    (Verdict::Failed, OutcomeReport { cause, message, ..Default::default() })
}

/// Adds what the task left, within `most` bytes of JSON.
pub(super) fn add_result(result: TaskResult, most: usize, report: &mut OutcomeReport) {
    report.reward = result.reward.unwrap_or_default();
    if let Some(error) = result.result_error {
        add(&mut report.message, &error);
    }
    let Some(json) = result.result_json else { return };
    let bytes = json.to_string().into_bytes();
    if bytes.len() > most {
        let length = bytes.len();
        add(
            &mut report.message,
            &format!(
                "the result has {length} bytes, over the {most} that a message may carry, and was dropped; write the data elsewhere and its path to $TENURE_RESULT"
            ),
        );
    } else {
        report.result_json = bytes.into();
    }
}

fn outcome(end: &End) -> (Verdict, &'static str, String) {
    match end {
        End::Exited { exit: Exit::Code(0), .. } => {
            (Verdict::Succeeded, "exit_code", String::new())
        }
        End::Exited { exit: Exit::Code(code), .. } => {
            (Verdict::Failed, "exit_code", format!("exited with code {code}"))
        }
        End::Exited { exit: Exit::Signal(signal), .. } => {
            (Verdict::Failed, "signal", format!("killed by signal {}", signal_text(*signal)))
        }
        End::Exited { exit: Exit::Lost, .. } => (
            Verdict::Failed,
            "supervisor_lost",
            "the process that supervised it was killed, and it was killed for that; how far it came is not known".to_owned(),
        ),
        End::NotStarted { fault: Fault::Command, error } => {
            (Verdict::FailedForGood, "spawn_failed", error.clone())
        }
        End::NotStarted { fault: Fault::Worker, error } => {
            (Verdict::Failed, "spawn_failed", error.clone())
        }
        End::Unreadable(error) => (Verdict::FailedForGood, "bad_body", error.clone()),
        End::NeverRan => {
            (Verdict::Failed, "never_ran", "ended before its program was started".to_owned())
        }
    }
}

fn explain_stop(verdict: Verdict, stop: StopCause, report: &mut OutcomeReport) {
    let (cause, why) = match stop {
        StopCause::Cancelled => ("stopped", "stopped because its task was cancelled".to_owned()),
        StopCause::Superseded => {
            ("superseded", "stopped because its task has a later attempt or is over".to_owned())
        }
        StopCause::TimedOut(after) => {
            ("timeout", format!("stopped because it ran longer than its timeout of {after} ms"))
        }
        StopCause::HandedBack => {
            ("handed_back", "given back unfinished because its worker is leaving".to_owned())
        }
    };
    // It had succeeded before it could be ended; its own end is then what counts, but for these two.
    let counts = matches!(stop, StopCause::TimedOut(_) | StopCause::HandedBack);
    if verdict == Verdict::Succeeded && !counts {
        return;
    }
    report.cause = cause.to_owned();
    let how = std::mem::replace(&mut report.message, why);
    add(&mut report.message, &how);
}

/// `9 (SIGKILL)`, or the number alone where it has no name.
fn signal_text(signal: i32) -> String {
    match Signal::try_from(signal) {
        Ok(named) => format!("{signal} ({named})"),
        Err(_) => signal.to_string(),
    }
}

fn left(count: u32, what: &str) -> String {
    match count {
        1 => format!("a process that it started {what}"),
        _ => format!("{count} processes that it started: each {what}"),
    }
}

fn add(message: &mut String, more: &str) {
    if !message.is_empty() && !more.is_empty() {
        message.push_str("; ");
    }
    message.push_str(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exited(exit: Exit) -> End {
        End::Exited { exit, killed: 0, survivors: 0 }
    }

    #[test]
    fn a_signal_is_named_and_fails_the_attempt() {
        let (verdict, report) = judge(&exited(Exit::Signal(9)), None);
        assert_eq!(verdict, Verdict::Failed);
        assert_eq!(report.message, "killed by signal 9 (SIGKILL)");
        assert_eq!((report.exit_code, report.signal), (None, Some(9)));
        assert_eq!(judge(&exited(Exit::Signal(40)), None).1.message, "killed by signal 40");
    }

    #[test]
    fn only_exit_code_0_succeeds() {
        assert_eq!(judge(&exited(Exit::Code(0)), None).0, Verdict::Succeeded);
        let (verdict, report) = judge(&exited(Exit::Code(3)), None);
        assert_eq!((verdict, report.exit_code), (Verdict::Failed, Some(3)));
        assert_eq!(report.message, "exited with code 3");
    }

    #[test]
    fn a_command_that_cannot_run_fails_for_good_and_a_worker_that_cannot_does_not() {
        let end = |fault| End::NotStarted { fault, error: "why".to_owned() };
        assert_eq!(judge(&end(Fault::Command), None).0, Verdict::FailedForGood);
        assert_eq!(judge(&end(Fault::Worker), None).0, Verdict::Failed);
    }

    #[test]
    fn a_stop_says_why_and_how_it_went() {
        let (_, report) = judge(&exited(Exit::Signal(15)), Some(StopCause::TimedOut(50)));
        assert_eq!(report.cause, "timeout");
        assert_eq!(
            report.message,
            "stopped because it ran longer than its timeout of 50 ms; killed by signal 15 (SIGTERM)"
        );
        let (verdict, report) = judge(&exited(Exit::Code(0)), Some(StopCause::Cancelled));
        assert_eq!((verdict, report.cause.as_str()), (Verdict::Succeeded, "exit_code"));
    }

    #[test]
    fn a_result_that_no_message_could_carry_is_dropped_and_said() {
        let result = TaskResult {
            result_json: Some(serde_json::json!("x".repeat(100))),
            ..TaskResult::default()
        };
        let mut report = OutcomeReport::default();
        add_result(result.clone(), 50, &mut report);
        assert!(report.result_json.is_empty() && report.message.contains("102 bytes"));
        add_result(result, 102, &mut report);
        assert_eq!(report.result_json.len(), 102);
    }
}
