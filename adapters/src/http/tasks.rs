//! Tasks: submit, list, get, cancel, retry.

use axum::Json;
use axum::body::Bytes;
use axum::extract::Path;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tenure_core::command::Reply;
use tenure_core::event::Ask;
use tenure_core::ids::{AttemptRef, TaskId};
use tenure_core::spec::{IdempotencyKey, Payload, Submission};
use tenure_core::store::Status;

use super::health::{not_leader, store_failed};
use super::problem::{Kind, Problem};
use super::served::Master;
use super::shapes::{Cancel, NewTask, Submitted, Task, TaskDetail, TaskList};
use super::submission::random_text;
use super::{request, view};
use crate::convert::Progress;
use crate::driver::master::{MasterHandle, WorkerStatus};
use crate::sql::{ListFilter, StoreError, TaskView};

/// The header that names a submission.
const KEY: &str = "idempotency-key";
/// Tasks on a page, unless the client says otherwise; and at most.
const PAGE: u32 = 50;
const LONGEST_PAGE: u32 = 1_000;

pub(super) async fn submit(
    Master(master): Master,
    headers: HeaderMap,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    let mut task: NewTask = request::body(&headers, bytes)?;
    let header = headers.get(KEY).and_then(|key| key.to_str().ok());
    let key = task.key(header)?;
    let submission = task.submission(&key, master.names())?;
    hand_in(&master, submission, key).await
}

async fn hand_in(
    master: &MasterHandle,
    submission: Submission,
    idempotency_key: String,
) -> Result<Response, Problem> {
    match master.ask(Ask::Submit(submission)).await {
        Reply::Submitted { task, existed } => {
            let code = if existed { StatusCode::OK } else { StatusCode::CREATED };
            let id = task.0.to_string();
            Ok((code, Json(Submitted { id, existed, idempotency_key })).into_response())
        }
        other => Err(refusal(master, &other)),
    }
}

/// What a reply that is no success says to a client.
fn refusal(master: &MasterHandle, reply: &Reply) -> Problem {
    match reply {
        Reply::KeyTaken(task) => Problem::new(
            Kind::KeyTaken,
            format!(
                "this idempotency key belongs to task {}, which asks for something else; use a new key",
                task.0
            ),
        ),
        Reply::AlreadyOver(task, status) => {
            let status = view::status(*status);
            Problem::new(Kind::TaskOver, format!("task {} is {status}, and stays so", task.0))
        }
        Reply::NoTask(task) => Problem::no_task(&task.0.to_string()),
        Reply::NotLeader(_) => not_leader(),
        Reply::StoreFailed => store_failed(master),
        // The others are successes of something that was not asked.
        Reply::Unknown | Reply::Submitted { .. } | Reply::Cancelled(_) | Reply::Cancelling(_) => {
            Problem::new(
                Kind::Unknown,
                "the store gave no answer, so it may have been done; ask again with the same key",
            )
        }
    }
}

/// A question to the store that it could not answer.
pub(super) fn unreadable(error: &StoreError) -> Problem {
    Problem::new(Kind::StoreFailed, error.to_string())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    status: Option<String>,
    worker: Option<String>,
    cursor: Option<u64>,
    limit: Option<u32>,
}

pub(super) async fn list(Master(master): Master, uri: Uri) -> Result<Json<TaskList>, Problem> {
    let query: ListQuery = request::query(&uri)?;
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=LONGEST_PAGE).contains(&limit) {
        return Err(Problem::new(
            Kind::Invalid,
            format!("limit is {limit}; it must be from 1 to {LONGEST_PAGE}"),
        ));
    }
    let filter = ListFilter {
        statuses: statuses(query.status.as_deref().unwrap_or_default())?,
        worker: query.worker,
        after: query.cursor.map(TaskId),
        // One more tells whether there is a next page.
        limit: limit + 1,
    };
    let mut views = master.store().list(&filter).await.map_err(|error| unreadable(&error))?;
    let is_cut = views.len() > limit as usize;
    views.truncate(limit as usize);
    let last = views.last().map(|view| view.row.task.0.to_string());
    let mut tasks = Vec::with_capacity(views.len());
    for view in views {
        tasks.push(shown(&master, &view).await?);
    }
    Ok(Json(TaskList { tasks, next_cursor: last.filter(|_| is_cut) }))
}

fn statuses(list: &str) -> Result<Vec<Status>, Problem> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    names
        .map(|name| {
            view::status_of(name).ok_or_else(|| {
                let known = "PENDING, RUNNING, COMPLETED, FAILED, CANCELLED";
                Problem::new(Kind::Invalid, format!("status `{name}` is none of {known}"))
            })
        })
        .collect()
}

async fn shown(master: &MasterHandle, view: &TaskView) -> Result<Task, Problem> {
    let body = view::body(view.row.task, &payload(master, view.row.task).await?);
    Ok(view::task(view, &body, waits_for(master, view).await, progress(master, view)))
}

async fn payload(master: &MasterHandle, task: TaskId) -> Result<Payload, Problem> {
    let found = master.store().payload(task).await.map_err(|error| unreadable(&error))?;
    Ok(found.unwrap_or(Payload::NONE))
}

/// Why a task waits, as far as one can see from outside.
async fn waits_for(master: &MasterHandle, view: &TaskView) -> Option<&'static str> {
    if view.row.status != Status::Pending {
        return None;
    }
    if view.row.not_before > master.clock().now() {
        return Some("backoff");
    }
    let workers = master.workers().await;
    let mut live = workers.iter().filter(|worker| worker.is_connected()).peekable();
    if live.peek().is_none() {
        return Some("no_worker");
    }
    let mut fitting = live.filter(|worker| fits(worker, view)).peekable();
    if fitting.peek().is_none() {
        return Some("no_fitting_worker");
    }
    Some(if fitting.any(|worker| has_room(worker, view)) { "dispatching" } else { "busy" })
}

/// What the running attempt of a task last said of itself.
fn progress(master: &MasterHandle, view: &TaskView) -> Option<Progress> {
    let attempt = view.row.attempt.filter(|_| view.row.status == Status::Running)?;
    master.progress(AttemptRef::new(view.row.task, attempt))
}

/// Whether an idle worker of this kind could run the task.
fn fits(worker: &WorkerStatus, view: &TaskView) -> bool {
    let shape = &view.row.shape;
    worker.slots >= shape.slots
        && worker.gpus >= shape.gpus
        && view.labels.iter().all(|label| worker.labels.contains(label))
}

fn has_room(worker: &WorkerStatus, view: &TaskView) -> bool {
    let shape = &view.row.shape;
    let free = |all: u16, used: u32| u32::from(all).saturating_sub(used);
    !worker.draining
        && free(worker.slots, worker.used_slots) >= shape.slots.into()
        && free(worker.gpus, worker.used_gpus) >= shape.gpus.into()
}

pub(super) async fn get(
    Master(master): Master,
    Path(id): Path<String>,
) -> Result<Json<TaskDetail>, Problem> {
    let task = request::task_id(&id)?;
    detail(&master, task).await.map(Json)
}

/// A task with its story.
pub(super) async fn detail(master: &MasterHandle, task: TaskId) -> Result<TaskDetail, Problem> {
    let store = master.store();
    let found = store.task(task).await.map_err(|error| unreadable(&error))?;
    let found = found.ok_or_else(|| Problem::no_task(&task.0.to_string()))?;
    let body = view::body(task, &payload(master, task).await?);
    let attempts = store.attempts(task).await.map_err(|error| unreadable(&error))?;
    let events = store.events(task).await.map_err(|error| unreadable(&error))?;
    let waits_for = waits_for(master, &found).await;
    let shown = view::task(&found, &body, waits_for, progress(master, &found));
    Ok(view::detail(shown, body, &attempts, &events))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelQuery {
    #[serde(default)]
    force: bool,
}

pub(super) async fn cancel(
    Master(master): Master,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let task = request::task_id(&id)?;
    let query: CancelQuery = request::query(&uri)?;
    let answer = |code: StatusCode, status| {
        let status = view::status(status).to_owned();
        Ok((code, Json(Cancel { id: task.0.to_string(), status })).into_response())
    };
    match master.ask(Ask::Cancel { task, force: query.force }).await {
        Reply::Cancelled(row) => answer(StatusCode::OK, row.status),
        // What is wished for is so.
        Reply::AlreadyOver(_, Status::Cancelled) => answer(StatusCode::OK, Status::Cancelled),
        Reply::Cancelling(row) => answer(StatusCode::ACCEPTED, row.status),
        other => Err(refusal(&master, &other)),
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RetryQuery {
    idempotency_key: Option<String>,
}

/// What is over stays over, so this makes a new task of the same description.
pub(super) async fn retry(
    Master(master): Master,
    Path(id): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let task = request::task_id(&id)?;
    let query: RetryQuery = request::query(&uri)?;
    let mut named = NewTask { idempotency_key: query.idempotency_key, ..NewTask::default() };
    let key = named.key(headers.get(KEY).and_then(|key| key.to_str().ok()))?;
    let found = master.store().task(task).await.map_err(|error| unreadable(&error))?;
    let found = found.ok_or_else(|| Problem::no_task(&id))?;
    if !found.row.status.is_terminal() {
        let status = view::status(found.row.status);
        return Err(Problem::new(
            Kind::TaskOver,
            format!(
                "task {} is {status} and not over; cancel it first, or wait for its end",
                task.0
            ),
        ));
    }
    let mut body = view::body(task, &payload(&master, task).await?);
    body.trace_id = random_text();
    let submission = Submission {
        shape: found.row.shape,
        limits: found.row.limits,
        payload: Payload::of(&body.to_bytes()),
        key: IdempotencyKey(key.as_str().into()),
        // The same key for a retry of another task is another submission.
        fingerprint: !task.0,
    };
    hand_in(&master, submission, key).await
}
