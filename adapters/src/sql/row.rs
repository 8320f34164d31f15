//! A task's row between core and the database.

use std::num::NonZeroU32;

use serde::Serialize;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;
use tenure_core::ids::{Attempt, Epoch, Holder, Incarnation, TaskId};
use tenure_core::spec::{Labels, Limits, Shape};
use tenure_core::store::Row;
use tenure_core::time::{Millis, Time};

use super::code;
use super::error::BadValue;
use crate::names::Names;

/// A row as the statements take it, field names as columns.
#[derive(Debug, Serialize)]
pub(super) struct RowOut {
    id: i64,
    status: i64,
    attempt: Option<u32>,
    worker: Option<String>,
    incarnation: Option<i64>,
    epoch: i64,
    ended_as: Option<i64>,
    started: u8,
    cancel_requested: u8,
    failures: u16,
    lost: u16,
    not_before: i64,
    slots: u16,
    gpus: u16,
    labels: Option<String>,
    priority: i16,
    max_attempts: u16,
    max_lost: u16,
    patience: Option<i64>,
    timeout: Option<i64>,
    submitted_at: i64,
    changed_at: i64,
}

pub(super) fn encode(row: &Row, changed_at: Time, names: &Names) -> RowOut {
    RowOut {
        id: code::of_count(row.task.0),
        status: code::of_status(row.status),
        attempt: row.attempt.map(Attempt::number),
        worker: row.holder.map(|holder| names.worker_name(holder.worker).to_string()),
        incarnation: row.holder.map(|holder| code::of_bits(holder.incarnation.0)),
        epoch: code::of_count(row.epoch.0),
        ended_as: row.end.map(code::of_end),
        started: u8::from(row.started),
        cancel_requested: u8::from(row.cancel_requested),
        failures: row.failures,
        lost: row.lost,
        not_before: code::of_count(row.not_before.0),
        slots: row.shape.slots,
        gpus: row.shape.gpus,
        labels: label_list(&row.shape.labels, names),
        priority: row.limits.priority,
        max_attempts: row.limits.max_attempts,
        max_lost: row.limits.max_lost,
        patience: row.limits.patience.map(|length| code::of_count(length.0)),
        timeout: row.limits.timeout.map(|length| code::of_count(length.0)),
        submitted_at: code::of_count(row.submitted_at.0),
        changed_at: code::of_count(changed_at.0),
    }
}

/// A row of `statements::row_columns`, and when it last changed.
pub(super) fn decode(from: &SqliteRow, names: &Names) -> Result<(Row, Time), sqlx::Error> {
    let task = TaskId(code::count(from.try_get(0)?));
    let row = Row {
        task,
        status: code::status(from.try_get(1)?).map_err(undecodable)?,
        attempt: from.try_get::<Option<i64>, _>(2)?.map(attempt).transpose()?,
        holder: holder(from, names)?,
        epoch: Epoch(code::count(from.try_get(5)?)),
        end: code::end(from.try_get(6)?).map_err(undecodable)?,
        started: from.try_get(7)?,
        cancel_requested: from.try_get(8)?,
        failures: small(from, 9, "tasks.failures")?,
        lost: small(from, 10, "tasks.lost")?,
        not_before: Time(code::count(from.try_get(11)?)),
        shape: Shape {
            slots: small(from, 12, "tasks.slots")?,
            gpus: small(from, 13, "tasks.gpus")?,
            labels: labels(from.try_get(14)?, names)?,
        },
        limits: Limits {
            priority: small(from, 15, "tasks.priority")?,
            max_attempts: small(from, 16, "tasks.max_attempts")?,
            max_lost: small(from, 17, "tasks.max_lost")?,
            patience: length(from.try_get(18)?),
            timeout: length(from.try_get(19)?),
        },
        submitted_at: Time(code::count(from.try_get(20)?)),
    };
    Ok((row, Time(code::count(from.try_get(21)?))))
}

/// A value that no version of this program writes, as an error of the database's own kind.
pub(super) fn undecodable(bad: BadValue) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(bad))
}

pub(super) fn attempt(number: i64) -> Result<Attempt, sqlx::Error> {
    u32::try_from(number)
        .ok()
        .and_then(NonZeroU32::new)
        .map(Attempt)
        .ok_or_else(|| undecodable(BadValue { what: "attempt", value: number.to_string() }))
}

fn holder(from: &SqliteRow, names: &Names) -> Result<Option<Holder>, sqlx::Error> {
    let worker: Option<&str> = from.try_get(3)?;
    let incarnation: Option<i64> = from.try_get(4)?;
    Ok(worker.zip(incarnation).map(|(worker, incarnation)| Holder {
        worker: names.worker(worker),
        incarnation: Incarnation(code::bits(incarnation)),
    }))
}

fn small<T: TryFrom<i64>>(
    from: &SqliteRow,
    at: usize,
    what: &'static str,
) -> Result<T, sqlx::Error> {
    let value: i64 = from.try_get(at)?;
    T::try_from(value).map_err(|_| undecodable(BadValue { what, value: value.to_string() }))
}

fn length(value: Option<i64>) -> Option<Millis> {
    value.map(|value| Millis(code::count(value)))
}

fn label_list(labels: &Labels, names: &Names) -> Option<String> {
    let texts: Vec<_> = labels.as_slice().iter().map(|label| names.label_text(*label)).collect();
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    (!texts.is_empty()).then(|| serde_json::to_string(&texts).expect("a list of texts is JSON"))
}

fn labels(list: Option<&str>, names: &Names) -> Result<Labels, sqlx::Error> {
    let Some(list) = list else {
        return Ok(Labels::NONE);
    };
    let texts: Vec<String> = serde_json::from_str(list)
        .map_err(|_| undecodable(BadValue { what: "tasks.labels", value: list.to_owned() }))?;
    let numbers: Vec<_> = texts.iter().map(|text| names.label(text)).collect();
    Ok(Labels::of(&numbers))
}
