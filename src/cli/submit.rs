//! `tenure submit`: hands in a task and prints its id.

use clap::Args;

use super::Context;
use super::task_args::{Defaults, TaskArgs};
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Options of `submit`.
#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    task: TaskArgs,
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Hands the task in.
pub(crate) fn run(args: &SubmitArgs, context: &Context) -> Result<Exit, Failure> {
    let client = Client::of(&context.settings)?;
    let defaults = Defaults { max_attempts: None, here: client.is_local(), resumable: false };
    let submitted = client.submit(&args.task.new_task(&args.command, defaults)?)?;
    match context.format {
        Format::Json => output::json(&submitted),
        Format::Table => output::data(&submitted.id),
    }
    Ok(Exit::Done)
}
