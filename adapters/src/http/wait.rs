//! Waiting for a task's end: answered when its row changes, never by looking again and again.

use std::time::Duration;

use axum::Json;
use axum::extract::Path;
use axum::http::Uri;
use serde::Deserialize;
use tenure_core::ids::TaskId;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout_at};

use super::problem::Problem;
use super::served::Master;
use super::shapes::TaskDetail;
use super::{request, tasks, view};

/// Below what proxies and clients give up after.
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitQuery {
    timeout_ms: Option<u64>,
}

/// The task once it is over; or as it is, when time is up.
pub(super) async fn get(
    Master(master): Master,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Json<TaskDetail>, Problem> {
    let task = request::task_id(&id)?;
    let query: WaitQuery = request::query(&uri)?;
    let limit = query.timeout_ms.map_or(LONGEST, Duration::from_millis).min(LONGEST);
    let end = Instant::now() + limit;
    // Before the first look, so that no change is missed in between.
    let mut changes = master.changes();
    loop {
        let detail = tasks::detail(&master, task).await?;
        let over = view::status_of(&detail.task.status).is_some_and(|status| status.is_terminal());
        if over || timeout_at(end, changed(&mut changes, task)).await.is_err() {
            return Ok(Json(detail));
        }
    }
}

/// Returns when the task's row may have changed.
pub(super) async fn changed(changes: &mut Receiver<TaskId>, task: TaskId) {
    loop {
        match changes.recv().await {
            Ok(other) if other != task => {}
            // Those that were missed may have been ours.
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            // The master is ending, and with it this request.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
