//! `tenure wait`: waits until tasks are over.

use std::time::{Duration, Instant};

use clap::Args;
use tenure_adapters::http::shapes::Task;
use tenure_core::time::Millis;

use super::{Context, describe, interrupt};
use crate::client::Client;
use crate::duration;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Options of `wait`.
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// The tasks
    #[arg(required = true, value_name = "TASK")]
    ids: Vec<String>,
    /// Give up after this time, with exit code 124
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Millis>,
}

/// Waits. The exit code is that of the first task that did not complete.
pub(crate) fn run(args: &WaitArgs, context: &Context) -> Result<Exit, Failure> {
    let client = Client::of(&context.settings)?;
    interrupt::end_on_signal(String::new())?;
    let end = args.timeout.map(|limit| Instant::now() + Duration::from_millis(limit.0));
    let mut exit = Exit::Done;
    let mut over: Vec<Task> = Vec::new();
    for id in &args.ids {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let Some(task) = client.wait(id, left)? else {
            return Err(Failure::new(Exit::Timeout, format!("task {id} is not over yet")));
        };
        if exit == Exit::Done {
            exit = describe::exit_of(&task.task.status);
        }
        if context.format == Format::Table {
            output::data(&format!("{} {}", task.task.id, task.task.status));
        }
        over.push(task.task);
    }
    if context.format == Format::Json {
        output::json(&serde_json::json!({ "tasks": over }));
    }
    Ok(exit)
}
