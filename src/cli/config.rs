//! `tenure config`: what the settings are and where they came from.

use clap::Subcommand;

use super::Context;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Commands of `config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every setting with its value and origin
    Show,
}

/// Prints them.
pub(crate) fn run(command: &ConfigCommand, context: &Context) -> Result<Exit, Failure> {
    let ConfigCommand::Show = command;
    let all = context.settings.all()?;
    match context.format {
        Format::Table => {
            let rows: Vec<_> = all
                .into_iter()
                .map(|(name, value)| vec![name.to_owned(), value.text, value.origin.to_string()])
                .collect();
            output::table(&["SETTING", "VALUE", "ORIGIN"], &rows);
        }
        Format::Json => {
            let settings: serde_json::Map<_, _> = all
                .into_iter()
                .map(|(name, value)| {
                    let origin = value.origin.to_string();
                    (name.to_owned(), serde_json::json!({ "value": value.text, "origin": origin }))
                })
                .collect();
            output::json(&serde_json::json!({ "settings": settings }));
        }
    }
    Ok(Exit::Done)
}
