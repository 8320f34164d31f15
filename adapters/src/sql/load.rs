//! Reads the part of the store that a batch touches.

use std::sync::Arc;

use serde::Serialize;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, SqliteConnection};
use tenure_core::ids::{Epoch, Incarnation, TaskId, Term};
use tenure_core::spec::{IdempotencyKey, Payload};
use tenure_core::time::Time;

use super::batch::{Batch, Known, Needs};
use super::{code, row, statements};
use crate::names::Names;

/// Everything that the orders name, as it stands in this transaction.
pub(super) async fn load(
    conn: &mut SqliteConnection,
    mut needs: Needs,
    now: Time,
    names: &Names,
) -> Result<Batch, sqlx::Error> {
    let mut batch = Batch { now, ..Batch::default() };
    load_term(conn, &mut batch).await?;
    if !needs.keys.is_empty() {
        load_keys(conn, &mut batch, &mut needs).await?;
    }
    load_rows(conn, &mut batch, &needs, names).await?;
    load_stretches(conn, &mut batch, &needs, names).await?;
    if !needs.payloads.is_empty() {
        load_payloads(conn, &mut batch, &needs).await?;
    }
    load_workers(conn, &mut batch, &needs, names).await?;
    Ok(batch)
}

async fn load_term(conn: &mut SqliteConnection, batch: &mut Batch) -> Result<(), sqlx::Error> {
    let found = sqlx::query(statements::LOAD_TERM).fetch_one(conn).await?;
    batch.term = Term {
        epoch: Epoch(code::count(found.try_get(0)?)),
        leader: Incarnation(code::bits(found.try_get(1)?)),
    };
    batch.term_until = Time(code::count(found.try_get(2)?));
    batch.last_task = TaskId(code::count(found.try_get(3)?));
    Ok(())
}

async fn load_keys(
    conn: &mut SqliteConnection,
    batch: &mut Batch,
    needs: &mut Needs,
) -> Result<(), sqlx::Error> {
    let keys: Vec<&str> = needs.keys.iter().map(|key| &**key).collect();
    for found in select(conn, statements::LOAD_KEYS, &keys).await? {
        let key = IdempotencyKey(Arc::from(found.try_get::<&str, _>(0)?));
        let task = TaskId(code::count(found.try_get(1)?));
        batch.keys.insert(key, (task, code::bits(found.try_get(2)?)));
        needs.tasks.insert(task);
    }
    Ok(())
}

async fn load_rows(
    conn: &mut SqliteConnection,
    batch: &mut Batch,
    needs: &Needs,
    names: &Names,
) -> Result<(), sqlx::Error> {
    let mut found = Vec::new();
    if needs.all {
        found.extend(sqlx::query(statements::LOAD_OPEN_ROWS).fetch_all(&mut *conn).await?);
    }
    if !needs.tasks.is_empty() {
        found.extend(select(conn, statements::LOAD_ROWS, &ids(&needs.tasks)).await?);
    }
    for found in found {
        let (row, _) = row::decode(&found, names)?;
        batch.rows.insert(row.task, row);
    }
    Ok(())
}

async fn load_stretches(
    conn: &mut SqliteConnection,
    batch: &mut Batch,
    needs: &Needs,
    names: &Names,
) -> Result<(), sqlx::Error> {
    for (after, limit) in &needs.scans {
        let found = sqlx::query(statements::LOAD_STRETCH)
            .bind(code::of_count(after.0))
            .bind(*limit)
            .fetch_all(&mut *conn)
            .await?;
        let is_full = u32::try_from(found.len()).is_ok_and(|count| count == *limit);
        let mut last = None;
        for found in found {
            let (row, _) = row::decode(&found, names)?;
            last = Some(row.task);
            batch.rows.insert(row.task, row);
        }
        batch.scans.insert((*after, *limit), last.filter(|_| is_full));
    }
    Ok(())
}

async fn load_payloads(
    conn: &mut SqliteConnection,
    batch: &mut Batch,
    needs: &Needs,
) -> Result<(), sqlx::Error> {
    for found in select(conn, statements::LOAD_PAYLOADS, &ids(&needs.payloads)).await? {
        let task = TaskId(code::count(found.try_get(0)?));
        batch.payloads.insert(task, payload(found.try_get(1)?));
    }
    Ok(())
}

async fn load_workers(
    conn: &mut SqliteConnection,
    batch: &mut Batch,
    needs: &Needs,
    names: &Names,
) -> Result<(), sqlx::Error> {
    if needs.workers.is_empty() && !needs.all {
        return Ok(());
    }
    let wanted: Vec<Arc<str>> = needs.workers.iter().map(|id| names.worker_name(*id)).collect();
    let wanted: Vec<&str> = wanted.iter().map(|name| &**name).collect();
    let current = if needs.all {
        sqlx::query(statements::LOAD_ALL_WORKERS).fetch_all(&mut *conn).await?
    } else {
        select(conn, statements::LOAD_WORKERS, &wanted).await?
    };
    for found in current {
        let worker = names.worker(found.try_get(0)?);
        let current = Incarnation(code::bits(found.try_get(1)?));
        batch.workers.insert(worker, Known { current, ..Known::default() });
    }
    for found in select(conn, statements::LOAD_REPLACED, &wanted).await? {
        let known = batch.workers.entry(names.worker(found.try_get(0)?)).or_default();
        known.replaced.insert(Incarnation(code::bits(found.try_get(1)?)));
    }
    Ok(())
}

async fn select<T: Serialize>(
    conn: &mut SqliteConnection,
    statement: &'static str,
    wanted: &[T],
) -> Result<Vec<SqliteRow>, sqlx::Error> {
    let wanted = serde_json::to_string(wanted).expect("ids and texts are JSON");
    sqlx::query(statement).bind(wanted).fetch_all(conn).await
}

fn ids(tasks: &std::collections::BTreeSet<TaskId>) -> Vec<i64> {
    tasks.iter().map(|task| code::of_count(task.0)).collect()
}

/// No bytes and an empty string of bytes are two things.
pub(super) fn payload(body: Option<&[u8]>) -> Payload {
    body.map_or(Payload::NONE, Payload::of)
}
