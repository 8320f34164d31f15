//! `tenure show`: a task with its attempts and its story.

use clap::Args;
use tenure_adapters::http::shapes::{Attempt, Event, TaskDetail};

use super::{Context, describe};
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Options of `show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The task
    #[arg(value_name = "TASK")]
    id: String,
}

/// Shows the task.
pub(crate) fn run(args: &ShowArgs, context: &Context) -> Result<Exit, Failure> {
    let task = Client::of(&context.settings)?.task(&args.id)?;
    if context.format == Format::Json {
        output::json(&task);
        return Ok(Exit::Done);
    }
    output::data(&facts(&task).join("\n"));
    output::data("");
    let attempts: Vec<_> = task.attempts.iter().map(attempt_row).collect();
    output::table(&["TRY", "WORKER", "EPOCH", "STATE", "CLAIMED", "ENDED", "OUTCOME"], &attempts);
    output::data("");
    let events: Vec<_> = task.events.iter().map(event_row).collect();
    output::table(&["AT", "WHAT", "STATUS", "TRY", "WORKER", "EPOCH", "DETAIL"], &events);
    Ok(Exit::Done)
}

fn facts(detail: &TaskDetail) -> Vec<String> {
    let task = &detail.task;
    let mut lines = vec![
        format!("task       {}", task.id),
        format!("status     {}", describe::status(task)),
        format!("command    {}", output::printable(&describe::command_line(&task.command))),
        format!("submitted  {}", task.submitted_at),
        format!("changed    {}", task.changed_at),
        format!(
            "limits     {} failures of {}, {} lost workers of {}, priority {}, {} slots, {} gpus",
            task.failures,
            task.max_attempts,
            task.lost,
            task.max_lost,
            task.priority,
            task.slots,
            task.gpus
        ),
    ];
    if !task.name.is_empty() {
        lines.insert(1, format!("name       {}", output::printable(&task.name)));
    }
    if let Some(said) = &task.progress {
        let (text, ago) = (output::printable(&said.text), describe::ago(&said.at));
        lines.push(format!("progress   {text} ({ago} ago)"));
    }
    if let Some(at) = &task.not_before_at {
        lines.push(format!("not before {at}"));
    }
    if let Some(outcome) = &detail.outcome {
        lines.push(format!("outcome    {}", output::printable(&describe::outcome(outcome))));
        if let Some(result) = &outcome.result {
            lines.push(format!("result     {result}"));
        }
    }
    lines
}

fn attempt_row(attempt: &Attempt) -> Vec<String> {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let outcome = attempt.outcome.as_ref().map(describe::outcome);
    vec![
        attempt.attempt.to_string(),
        text(&attempt.worker),
        text(&attempt.epoch),
        attempt.state.clone(),
        text(&attempt.claimed_at),
        text(&attempt.ended_at),
        outcome.or_else(|| attempt.reason.clone()).unwrap_or_default(),
    ]
}

fn event_row(event: &Event) -> Vec<String> {
    vec![
        event.at.clone(),
        event.what.clone(),
        event.status.clone(),
        event.attempt.map(|attempt| attempt.to_string()).unwrap_or_default(),
        event.worker.clone().unwrap_or_default(),
        event.epoch.clone(),
        event.detail.clone().unwrap_or_default(),
    ]
}
