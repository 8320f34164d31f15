//! `tenure workers`: lists the connected workers.

use tenure_adapters::http::shapes::Worker;

use super::{Context, describe};
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Lists them.
pub(crate) fn run(context: &Context) -> Result<Exit, Failure> {
    let list = Client::of(&context.settings)?.workers()?;
    if context.format == Format::Json {
        output::json(&list);
        return Ok(Exit::Done);
    }
    let rows: Vec<_> = list.workers.iter().map(row).collect();
    output::table(&["NAME", "STATE", "SLOTS", "GPUS", "LABELS", "HOST", "ADDRESS", "HEARD"], &rows);
    if rows.is_empty() {
        output::note("no worker is connected; start one with `tenure worker`");
    }
    Ok(Exit::Done)
}

fn row(worker: &Worker) -> Vec<String> {
    let heard = worker.last_heard_at.as_deref().map(describe::ago);
    vec![
        worker.name.clone(),
        worker.state.clone(),
        format!("{}/{}", worker.slots_used, worker.slots),
        format!("{}/{}", worker.gpus_used, worker.gpus),
        worker.labels.join(","),
        worker.hostname.clone().unwrap_or_default(),
        worker.address.clone().unwrap_or_default(),
        heard.map(|heard| format!("{heard} ago")).unwrap_or_default(),
    ]
}
