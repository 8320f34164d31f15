//! Passes a task's output on as it comes, and takes over its exit code.

use std::io::{self, Write};
use std::thread;
use std::time::Duration;

use tenure_adapters::http::shapes::{LogLine, LogRecord, TaskDetail};

use super::super::describe;
use crate::client::{Client, LogPosition};
use crate::exit::{Exit, Failure};
use crate::output;

/// A task that waits longer than this says why.
const PATIENT: Duration = Duration::from_secs(2);

/// Follows the task from there on until it is over; gives its own code.
pub(super) fn to_the_end(client: &Client, id: &str, from: Option<String>) -> Result<Exit, Failure> {
    say_why_it_waits(client.clone(), id.to_owned());
    let position = LogPosition { from, attempt: None, follow: true };
    let mut attempt = None;
    client.logs(id, position, |record| match record {
        LogRecord::Line(line) => {
            let before = attempt.replace(line.attempt);
            if before.is_some_and(|before| before < line.attempt) {
                output::note(&format!("tenure: attempt {}", line.attempt));
            }
            pass_on(line);
        }
        LogRecord::End(end) if !end.complete => {
            output::note("tenure: the last lines of the output never arrived");
        }
        LogRecord::End(_) => {}
    })?;
    let task = client.task(id)?;
    say_how_it_ended(&task);
    Ok(describe::own_code(&task))
}

fn pass_on(line: &LogLine) {
    let written = if line.stream == "stderr" {
        io::stderr().lock().write_all(&line.bytes())
    } else {
        let mut out = io::stdout().lock();
        out.write_all(&line.bytes()).and_then(|()| out.flush())
    };
    // The task goes on whether or not somebody reads.
    let _ = written;
}

/// An exit code speaks for itself; everything else is put in words.
fn say_how_it_ended(task: &TaskDetail) {
    let status = task.task.status.as_str();
    let last = task.attempts.iter().rev().find_map(|attempt| attempt.outcome.as_ref());
    match (status, task.outcome.as_ref().or(last)) {
        ("COMPLETED", _) => {}
        ("CANCELLED", _) => output::note("tenure: cancelled"),
        (_, Some(outcome)) if outcome.exit_code.is_some() => {}
        (_, Some(outcome)) => output::note(&format!("tenure: {}", describe::outcome(outcome))),
        (_, None) => output::note(&format!(
            "tenure: the task is {status}: {} workers were lost while they ran it",
            task.task.lost
        )),
    }
}

fn say_why_it_waits(client: Client, id: String) {
    thread::spawn(move || {
        thread::sleep(PATIENT);
        if let Ok(task) = client.task(&id)
            && let Some(reason) = task.task.waits_for
        {
            output::note(&format!("tenure: task {id} waits: {reason}"));
        }
    });
}
