//! Words and columns for tasks, shared by the commands that show them.

use jiff::Timestamp;
use tenure_adapters::http::shapes::{Outcome, Task, TaskDetail};
use tenure_core::time::Millis;

use crate::duration;
use crate::exit::Exit;

/// How long ago a time of the API was, for a table.
pub(crate) fn ago(at: &str) -> String {
    let Ok(then) = at.parse::<Timestamp>() else {
        return at.to_owned();
    };
    let ms = Timestamp::now().as_millisecond() - then.as_millisecond();
    duration::show(Millis(u64::try_from(ms).unwrap_or(0)))
}

/// A command as one would type it.
pub(crate) fn command_line(command: &[String]) -> String {
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A task's status, and why it waits.
pub(crate) fn status(task: &Task) -> String {
    match (&task.waits_for, task.cancel_requested && task.status == "RUNNING") {
        (Some(reason), _) => format!("{} ({reason})", task.status),
        (None, true) => format!("{} (cancelling)", task.status),
        (None, false) => task.status.clone(),
    }
}

/// How an attempt ended, in a few words.
pub(crate) fn outcome(outcome: &Outcome) -> String {
    let cause = match (outcome.exit_code, outcome.signal) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => outcome.cause.clone(),
    };
    let mut text = format!("{} ({cause})", outcome.verdict);
    if !outcome.message.is_empty() {
        text.push_str(&format!(": {}", outcome.message));
    }
    if let Some(reward) = &outcome.reward {
        text.push_str(&format!(", reward {reward}"));
    }
    text
}

/// What the status of a task that is over means for `wait`.
pub(crate) fn exit_of(status: &str) -> Exit {
    match status {
        "COMPLETED" => Exit::Done,
        "CANCELLED" => Exit::Cancelled,
        _ => Exit::TaskFailed,
    }
}

/// The exit code that the task itself would have given.
pub(crate) fn own_code(task: &TaskDetail) -> Exit {
    let last = || task.attempts.iter().rev().find_map(|attempt| attempt.outcome.as_ref());
    let Some(outcome) = task.outcome.as_ref().or_else(last) else {
        return if task.task.status == "CANCELLED" { Exit::Cancelled } else { Exit::Own };
    };
    match (task.task.status.as_str(), outcome.verdict.as_str()) {
        ("CANCELLED", _) => Exit::Cancelled,
        (_, "timed_out") => Exit::Timeout,
        _ => match (outcome.exit_code, outcome.signal) {
            (Some(code), _) => Exit::Task(u8::try_from(code & 0xff).unwrap_or(1)),
            (None, Some(signal)) => Exit::Task(u8::try_from(128 + signal).unwrap_or(255)),
            (None, None) if outcome.cause == "spawn_failed" => Exit::Task(127),
            (None, None) if task.task.status == "COMPLETED" => Exit::Done,
            (None, None) => Exit::Own,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_can_be_pasted_back() {
        let words = ["sh", "-c", "echo it's $HOME", ""].map(str::to_owned);
        assert_eq!(command_line(&words), r"sh -c 'echo it'\''s $HOME' ''");
    }
}
