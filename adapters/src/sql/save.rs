//! Writes what a batch changed: one statement for each table, however many rows.

use serde::Serialize;
use sqlx::SqliteConnection;
use tenure_core::ids::Attempt;
use tenure_core::spec::Payload;

use super::batch::{Batch, Changes, NewTask};
use super::row::{self, RowOut};
use super::story::{AttemptKey, AttemptPatch, Report, Told};
use super::{code, statements};
use crate::names::Names;

/// Writes the changes into the transaction under way.
pub(super) async fn save(
    conn: &mut SqliteConnection,
    batch: &Batch,
    names: &Names,
) -> Result<(), sqlx::Error> {
    let changes = &batch.changes;
    save_rows(conn, batch, names).await?;
    save_made(conn, &changes.made).await?;
    save_story(conn, changes, names).await?;
    save_workers(conn, batch, names).await?;
    if changes.term {
        sqlx::query(statements::UPDATE_TERM)
            .bind(code::of_count(batch.term.epoch.0))
            .bind(code::of_bits(batch.term.leader.0))
            .bind(code::of_count(batch.term_until.0))
            .execute(conn)
            .await?;
    }
    Ok(())
}

async fn save_rows(
    conn: &mut SqliteConnection,
    batch: &Batch,
    names: &Names,
) -> Result<(), sqlx::Error> {
    // Ids ascend, so whatever is from the first made task on is new.
    let first_made = batch.changes.made.first().map(|made| made.task);
    let (mut made, mut changed): (Vec<RowOut>, Vec<RowOut>) = (Vec::new(), Vec::new());
    for (task, changed_at) in &batch.changes.rows {
        let is_new = first_made.is_some_and(|first| *task >= first);
        let out = row::encode(&batch.rows[task], *changed_at, names);
        if is_new { made.push(out) } else { changed.push(out) }
    }
    write(conn, statements::INSERT_TASKS, &made).await?;
    write(conn, statements::UPDATE_TASKS, &changed).await
}

#[derive(Serialize)]
struct KeyOut<'a> {
    key: &'a str,
    task: i64,
    fingerprint: i64,
}

#[derive(Serialize)]
struct PayloadOut {
    task: i64,
    #[serde(flatten)]
    piece: Piece,
}

async fn save_made(conn: &mut SqliteConnection, made: &[NewTask]) -> Result<(), sqlx::Error> {
    let mut bytes = Bytes::default();
    let (mut keys, mut payloads) = (Vec::new(), Vec::new());
    for new in made {
        let task = code::of_count(new.task.0);
        let fingerprint = code::of_bits(new.fingerprint);
        keys.push(KeyOut { key: &new.key.0, task, fingerprint });
        payloads.push(PayloadOut { task, piece: bytes.add(&new.payload) });
    }
    write(conn, statements::INSERT_KEYS, &keys).await?;
    write_with(conn, statements::INSERT_PAYLOADS, &payloads, bytes).await
}

#[derive(Serialize)]
struct AttemptOut {
    task: i64,
    attempt: u32,
    incarnation: i64,
    worker: Option<String>,
    epoch: Option<i64>,
    claimed_at: Option<i64>,
    started_at: Option<i64>,
    ended_at: Option<i64>,
    ended_as: Option<i64>,
    reason: Option<&'static str>,
    verdict: Option<&'static str>,
    superseded: Option<u8>,
    reported_at: Option<i64>,
    #[serde(flatten)]
    piece: Piece,
}

#[derive(Serialize)]
struct EventOut {
    task: i64,
    at: i64,
    epoch: i64,
    what: &'static str,
    status: i64,
    attempt: Option<u32>,
    worker: Option<String>,
    detail: Option<&'static str>,
}

async fn save_story(
    conn: &mut SqliteConnection,
    changes: &Changes,
    names: &Names,
) -> Result<(), sqlx::Error> {
    let mut bytes = Bytes::default();
    let attempts: Vec<AttemptOut> = changes
        .story
        .attempts
        .iter()
        .map(|(key, patch)| attempt_out(*key, patch, names, &mut bytes))
        .collect();
    write_with(conn, statements::UPSERT_ATTEMPTS, &attempts, bytes).await?;
    let events: Vec<EventOut> =
        changes.story.events.iter().map(|told| event_out(told, names)).collect();
    write(conn, statements::INSERT_EVENTS, &events).await
}

fn attempt_out(
    (task, attempt, incarnation): AttemptKey,
    patch: &AttemptPatch,
    names: &Names,
    bytes: &mut Bytes,
) -> AttemptOut {
    let report: Option<&Report> = patch.report.as_ref();
    let time = |time: Option<tenure_core::time::Time>| time.map(|time| code::of_count(time.0));
    AttemptOut {
        task: code::of_count(task.0),
        attempt: attempt.number(),
        incarnation: code::of_bits(incarnation.0),
        worker: patch.worker.map(|worker| names.worker_name(worker).to_string()),
        epoch: patch.epoch.map(|epoch| code::of_count(epoch.0)),
        claimed_at: time(patch.claimed_at),
        started_at: time(patch.started_at),
        ended_at: time(patch.ended_at),
        ended_as: patch.ended_as,
        reason: patch.reason.map(code::of_reason),
        verdict: report.map(|report| report.verdict),
        superseded: report.map(|report| u8::from(report.superseded)),
        reported_at: time(report.map(|report| report.at)),
        piece: report.map_or(Piece::NONE, |report| bytes.add(&report.bytes)),
    }
}

fn event_out(told: &Told, names: &Names) -> EventOut {
    EventOut {
        task: code::of_count(told.task.0),
        at: code::of_count(told.at.0),
        epoch: code::of_count(told.epoch.0),
        what: told.what,
        status: code::of_status(told.status),
        attempt: told.attempt.map(Attempt::number),
        worker: told.worker.map(|worker| names.worker_name(worker).to_string()),
        detail: told.detail,
    }
}

#[derive(Serialize)]
struct WorkerOut {
    name: String,
    incarnation: i64,
    at: i64,
}

async fn save_workers(
    conn: &mut SqliteConnection,
    batch: &Batch,
    names: &Names,
) -> Result<(), sqlx::Error> {
    let out = |worker, incarnation: tenure_core::ids::Incarnation, at: tenure_core::time::Time| {
        WorkerOut {
            name: names.worker_name(worker).to_string(),
            incarnation: code::of_bits(incarnation.0),
            at: code::of_count(at.0),
        }
    };
    let changed = batch.changes.workers.iter();
    let changed: Vec<WorkerOut> =
        changed.map(|(worker, at)| out(*worker, batch.workers[worker].current, *at)).collect();
    write(conn, statements::UPSERT_WORKERS, &changed).await?;
    let replaced = batch.changes.replaced.iter();
    let replaced: Vec<WorkerOut> =
        replaced.map(|(holder, at)| out(holder.worker, holder.incarnation, *at)).collect();
    write(conn, statements::INSERT_REPLACED, &replaced).await
}

/// Byte strings of a batch, one after the other, since JSON carries none.
#[derive(Debug)]
struct Bytes(Vec<u8>);

impl Default for Bytes {
    /// One byte that belongs to nobody: SQLite's `substr` makes NULL of every piece of an empty blob.
    fn default() -> Bytes {
        Bytes(vec![0])
    }
}

/// Where one byte string begins and how long it is; neither if there is none.
#[derive(Debug, Serialize)]
struct Piece {
    start: Option<usize>,
    length: Option<usize>,
}

impl Piece {
    const NONE: Piece = Piece { start: None, length: None };
}

impl Bytes {
    fn add(&mut self, payload: &Payload) -> Piece {
        let Some(bytes) = &payload.0 else {
            return Piece::NONE;
        };
        let start = self.0.len();
        self.0.extend_from_slice(bytes);
        Piece { start: Some(start), length: Some(bytes.len()) }
    }
}

async fn write<T: Serialize>(
    conn: &mut SqliteConnection,
    statement: &'static str,
    rows: &[T],
) -> Result<(), sqlx::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    sqlx::query(statement).bind(json(rows)).execute(conn).await?;
    Ok(())
}

async fn write_with<T: Serialize>(
    conn: &mut SqliteConnection,
    statement: &'static str,
    rows: &[T],
    bytes: Bytes,
) -> Result<(), sqlx::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    sqlx::query(statement).bind(json(rows)).bind(bytes.0).execute(conn).await?;
    Ok(())
}

fn json<T: Serialize>(rows: &[T]) -> String {
    serde_json::to_string(rows).expect("numbers and texts are JSON")
}
