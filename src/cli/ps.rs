//! `tenure ps`: lists tasks.

use clap::Args;
use tenure_adapters::http::shapes::Task;

use super::{Context, describe};
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Options of `ps`.
#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    /// Only tasks of this status; may be repeated
    #[arg(long, value_name = "STATUS", ignore_case = true,
          value_parser = ["PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"])]
    status: Vec<String>,
    /// At most so many
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Go on after the page that gave this
    #[arg(long, value_parser = cursor)]
    cursor: Option<u64>,
}

fn cursor(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no cursor; use the next_cursor of a page"))
}

/// Lists tasks.
pub(crate) fn run(args: &PsArgs, context: &Context) -> Result<Exit, Failure> {
    let mut query = format!("limit={}", args.limit);
    if !args.status.is_empty() {
        query.push_str(&format!("&status={}", args.status.join(",")));
    }
    if let Some(cursor) = args.cursor {
        query.push_str(&format!("&cursor={cursor}"));
    }
    let list = Client::of(&context.settings)?.tasks(&query)?;
    if context.format == Format::Json {
        output::json(&list);
        return Ok(Exit::Done);
    }
    let mut heading = vec!["ID", "STATUS", "TRY", "WORKER", "SUBMITTED", "CHANGED", "TASK"];
    let mut rows: Vec<Vec<String>> = list.tasks.iter().map(row).collect();
    if output::is_wide() && list.tasks.iter().any(|task| task.progress.is_some()) {
        heading.push("PROGRESS");
        rows.iter_mut().zip(&list.tasks).for_each(|(row, task)| row.push(progress(task)));
    }
    output::table(&heading, &rows);
    if let Some(cursor) = list.next_cursor {
        output::note(&format!("there are more: tenure ps --cursor {cursor}"));
    }
    Ok(Exit::Done)
}

fn row(task: &Task) -> Vec<String> {
    let what = if task.name.is_empty() {
        describe::command_line(&task.command)
    } else {
        task.name.clone()
    };
    vec![
        task.id.clone(),
        describe::status(task),
        task.attempt.map(|attempt| attempt.to_string()).unwrap_or_default(),
        task.worker.clone().unwrap_or_default(),
        format!("{} ago", describe::ago(&task.submitted_at)),
        format!("{} ago", describe::ago(&task.changed_at)),
        what,
    ]
}

fn progress(task: &Task) -> String {
    task.progress.as_ref().map(|said| said.text.clone()).unwrap_or_default()
}
