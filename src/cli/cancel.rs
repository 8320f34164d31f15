//! `tenure cancel`: ends a task.

use clap::Args;

use super::Context;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Options of `cancel`.
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// The task
    #[arg(value_name = "TASK")]
    id: String,
    /// End it at once in the store, even if its worker cannot be told
    #[arg(long)]
    force: bool,
}

/// Asks for the end.
pub(crate) fn run(args: &CancelArgs, context: &Context) -> Result<Exit, Failure> {
    let answer = Client::of(&context.settings)?.cancel(&args.id, args.force)?;
    match context.format {
        Format::Json => output::json(&answer),
        Format::Table if answer.status == "CANCELLED" => {
            output::data(&format!("{} CANCELLED", answer.id));
        }
        Format::Table => {
            output::data(&format!("{} {} (cancelling)", answer.id, answer.status));
            output::note(&format!(
                "its worker is being told; `tenure wait {}` waits for the end",
                answer.id
            ));
        }
    }
    Ok(Exit::Done)
}
