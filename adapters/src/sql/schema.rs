//! The schema: which versions there are, and how a file is brought to the newest.

use std::path::Path;

use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};

use super::error::StoreError;
use super::statements;

/// Every version in order; the first makes an empty file version 1. One that was released never changes.
const MIGRATIONS: &[&str] = &[include_str!("migrations/0001_tables.sql")];

/// In the file's header, so that another program's database is not taken for ours: "TENU".
const APPLICATION: i64 = 0x5445_4e55;

/// Brings the file to the newest schema. The transaction that looks also writes, so of two programs that
/// start at once the second finds the work done.
pub(super) async fn migrate(path: &Path, conn: &mut SqliteConnection) -> Result<(), StoreError> {
    let of = |error| StoreError::of(path, error);
    run(conn, statements::BEGIN).await.map_err(of)?;
    let done = advance(path, conn).await;
    let end = if done.is_ok() { statements::COMMIT } else { statements::ROLLBACK };
    let ended = run(conn, end).await.map_err(of);
    done.and(ended)
}

async fn advance(path: &Path, conn: &mut SqliteConnection) -> Result<(), StoreError> {
    let of = |error| StoreError::of(path, error);
    let known = i64::try_from(MIGRATIONS.len()).expect("there are few migrations");
    let application = number(conn, "PRAGMA application_id").await.map_err(of)?;
    let found = number(conn, "PRAGMA user_version").await.map_err(of)?;
    let tables = number(conn, "SELECT count(*) FROM sqlite_schema").await.map_err(of)?;
    if application != APPLICATION && (tables > 0 || found > 0 || application != 0) {
        return Err(StoreError::Foreign { path: path.to_owned() });
    }
    if found > known {
        return Err(StoreError::NewerSchema { path: path.to_owned(), found, known });
    }
    let applied = usize::try_from(found).unwrap_or(0);
    for migration in &MIGRATIONS[applied..] {
        run(conn, migration).await.map_err(of)?;
    }
    if found < known {
        let mark = format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {known}");
        sqlx::raw_sql(AssertSqlSafe(mark)).execute(conn).await.map_err(of)?;
    }
    Ok(())
}

async fn run(conn: &mut SqliteConnection, sql: &'static str) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(sql).execute(conn).await.map(|_| ())
}

async fn number(conn: &mut SqliteConnection, sql: &'static str) -> Result<i64, sqlx::Error> {
    sqlx::query(sql).fetch_one(conn).await?.try_get(0)
}
