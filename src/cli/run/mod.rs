//! `tenure run`: one command to its end, with its output and its exit code.

mod embedded;
mod follow;
mod private_dir;

use std::path::PathBuf;

use clap::Args;

use super::task_args::{Defaults, TaskArgs};
use super::{Context, interrupt};
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::settings::keys;

/// Options of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    task: TaskArgs,
    /// Go on with an earlier run that was interrupted
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    resume: Option<PathBuf>,
    /// The command and its arguments
    #[arg(required_unless_present = "resume", last = true, value_name = "CMD")]
    command: Vec<String>,
}

/// Runs it on the server that is configured, or here if none is.
pub(crate) fn run(args: RunArgs, context: &Context) -> Result<Exit, Failure> {
    match &args.resume {
        Some(dir) => embedded::resume(context, dir),
        None if context.settings.is_given(keys::SERVER) => on_server(&args, context),
        None => embedded::run(&args, context),
    }
}

fn on_server(args: &RunArgs, context: &Context) -> Result<Exit, Failure> {
    let client = Client::of(&context.settings)?;
    // A failure is told at once; somebody watches.
    let defaults = Defaults { max_attempts: Some(1), here: client.is_local(), resumable: false };
    let task = args.task.new_task(&args.command, defaults)?;
    let id = client.submit(&task)?.id;
    output::note(&format!("task {id} on {}", client.base()));
    interrupt::end_on_signal(format!(
        "detached; task {id} goes on. Back to it: tenure --server {base} logs -f {id}; end it: tenure \
         --server {base} cancel {id}",
        base = client.base()
    ))?;
    follow::to_the_end(&client, &id, None)
}
