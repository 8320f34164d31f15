//! `tenure retry`: hands in the same task once more. What is over stays over, so it is a new task.

use clap::Args;
use tenure_adapters::http::submission::random_text;

use super::Context;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Options of `retry`.
#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    /// The task to do once more
    #[arg(value_name = "TASK")]
    id: String,
}

/// Hands it in.
pub(crate) fn run(args: &RetryArgs, context: &Context) -> Result<Exit, Failure> {
    let submitted = Client::of(&context.settings)?.retry(&args.id, &random_text())?;
    match context.format {
        Format::Json => output::json(&submitted),
        Format::Table => output::data(&submitted.id),
    }
    output::note(&format!(
        "task {} does the same as {}, which keeps its status and log",
        submitted.id, args.id
    ));
    Ok(Exit::Done)
}
