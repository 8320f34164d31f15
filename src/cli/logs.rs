//! `tenure logs`: prints a task's log; follows it to its end.

use clap::Args;
use tenure_adapters::http::shapes::{LogLine, LogRecord};

use super::{Context, interrupt};
use crate::client::{Client, LogPosition};
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Options of `logs`.
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The task
    #[arg(value_name = "TASK")]
    id: String,
    /// Go on until the task is over and its log complete
    #[arg(short, long)]
    follow: bool,
    /// Only this attempt [default: all, one after the other]
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
    /// Begin at this line, as ATTEMPT.LINE
    #[arg(long, value_name = "POSITION")]
    from: Option<String>,
    /// Put time, attempt and stream before each line
    #[arg(short, long)]
    timestamps: bool,
}

/// Prints the log.
pub(crate) fn run(args: &LogsArgs, context: &Context) -> Result<Exit, Failure> {
    let client = Client::of(&context.settings)?;
    if args.follow {
        interrupt::end_on_signal(String::new())?;
    }
    let from = args.from.clone();
    let position = LogPosition { from, attempt: args.attempt, follow: args.follow };
    let mut records = Vec::new();
    client.logs(&args.id, position, |record| match (context.format, record) {
        (Format::Table, LogRecord::Line(line)) => output::bytes(&bytes(line, args.timestamps)),
        (Format::Table, LogRecord::End(end)) => {
            if args.follow && !end.complete {
                output::note("the last lines of this log never arrived");
            }
        }
        // A log that is followed has no end yet: one document a line.
        (Format::Json, record) if args.follow => {
            output::data(&serde_json::to_string(record).expect("texts and numbers are JSON"));
        }
        (Format::Json, LogRecord::Line(line)) => records.push(line.clone()),
        (Format::Json, LogRecord::End(_)) => {}
    })?;
    if context.format == Format::Json && !args.follow {
        output::json(&serde_json::json!({ "lines": records }));
    }
    Ok(Exit::Done)
}

fn bytes(line: &LogLine, timestamps: bool) -> Vec<u8> {
    if timestamps {
        return format!("{} {} {} {}\n", line.at, line.attempt, line.stream, line.text).into();
    }
    line.bytes()
}
