//! The connected workers, and who leads.

use std::sync::Arc;

use axum::Json;

use super::served::Master;
use super::shapes::{Leader, Worker, WorkerList};
use super::view;
use crate::driver::master::WorkerStatus;

pub(super) async fn list(Master(master): Master) -> Json<WorkerList> {
    let workers = master.workers().await.iter().map(worker).collect();
    Json(WorkerList { workers, as_of: view::time(master.clock().now()) })
}

pub(super) async fn leader(Master(master): Master) -> Json<Leader> {
    let leads = master.status().leads;
    Json(Leader {
        leads: leads.is_some(),
        epoch: leads.map(|term| term.epoch.0.to_string()),
        worker_address: master.address().to_string(),
    })
}

fn worker(status: &WorkerStatus) -> Worker {
    let text = |text: &Arc<str>| text.to_string();
    let state = match (status.is_connected(), status.draining) {
        (false, _) => "gone",
        (true, true) => "draining",
        (true, false) => "ready",
    };
    Worker {
        name: text(&status.name),
        incarnation: format!("{:016x}", status.incarnation.0),
        hostname: status.hostname.as_ref().map(text),
        pid: status.pid,
        version: status.version.as_ref().map(text),
        address: status.address.map(|address| address.to_string()),
        state: state.to_owned(),
        slots: status.slots,
        slots_used: status.used_slots,
        gpus: status.gpus,
        gpus_used: status.used_gpus,
        labels: status.labels.iter().map(text).collect(),
        documented: status.documented,
        last_heard_at: status.last_heard.map(view::time),
    }
}
