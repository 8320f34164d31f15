//! Why a store cannot be opened or read, and what a failed statement means for a batch.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// A store that cannot be opened, or a question that it could not answer.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The file is not a SQLite database, or is damaged.
    #[error(
        "{}: not a usable SQLite database ({why}); restore it from a backup, or move it away to begin with an empty store",
        path.display()
    )]
    Unusable {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        why: String,
    },
    /// A SQLite database of some other program.
    #[error(
        "{}: a database of another program; give tenure a data directory of its own",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Written by a newer version of this program.
    #[error(
        "{}: its schema is version {found}, this program knows up to {known}; use the tenure version that wrote it, or a newer one",
        path.display()
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// The file's version.
        found: i64,
        /// The newest that this program knows.
        known: i64,
    },
    /// Another process writes to it and does not end.
    #[error("{}: locked by another process ({why}); end that one and try again", path.display())]
    Busy {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        why: String,
    },
    /// The disk is full, or the file cannot be read or written.
    #[error(
        "{}: {why}; check free space on that disk and that this user may write the file and its directory",
        path.display()
    )]
    Disk {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        why: String,
    },
    /// A row that this program could not have written.
    #[error("{}: {what} cannot be read: {value}; the database was changed by another program", path.display())]
    BadRow {
        /// The file.
        path: PathBuf,
        /// Which table and column.
        what: &'static str,
        /// What stands there.
        value: String,
    },
    /// Anything else that SQLite said.
    #[error("{}: {why}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What SQLite said.
        why: String,
    },
}

/// What kind of trouble a statement met; decides whether trying its orders one by one makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Another process holds the database.
    Busy,
    /// Disk, rights, memory: every order would meet it.
    Disk,
    /// The file is not a database.
    Unusable,
    /// Something about the statement's own data.
    Data,
}

/// A value in a row that no version of this program writes.
#[derive(Debug, Error)]
#[error("{what}: {value}")]
pub(super) struct BadValue {
    pub(super) what: &'static str,
    pub(super) value: String,
}

/// The trouble behind an error of sqlx, by SQLite's primary result code.
pub(super) fn trouble(error: &sqlx::Error) -> Trouble {
    let sqlx::Error::Database(database) = error else {
        return match error {
            sqlx::Error::Decode(_)
            | sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::Encode(_)
            | sqlx::Error::RowNotFound => Trouble::Data,
            _ => Trouble::Disk,
        };
    };
    let code: Option<i32> = database.code().and_then(|code| code.parse().ok());
    match code.map(|code| code & 0xff) {
        Some(5 | 6) => Trouble::Busy,
        // NOMEM, READONLY, IOERR, FULL, CANTOPEN
        Some(7 | 8 | 10 | 13 | 14) => Trouble::Disk,
        // CORRUPT, NOTADB
        Some(11 | 26) => Trouble::Unusable,
        _ => Trouble::Data,
    }
}

impl StoreError {
    /// The error of this file.
    pub(super) fn of(path: &Path, error: sqlx::Error) -> StoreError {
        let path = path.to_owned();
        let trouble = trouble(&error);
        if let sqlx::Error::Decode(source) = &error
            && let Some(bad) = source.downcast_ref::<BadValue>()
        {
            return StoreError::BadRow { path, what: bad.what, value: bad.value.clone() };
        }
        let why = match error {
            sqlx::Error::Database(database) => database.message().to_owned(),
            other => other.to_string(),
        };
        match trouble {
            Trouble::Busy => StoreError::Busy { path, why },
            Trouble::Disk => StoreError::Disk { path, why },
            Trouble::Unusable => StoreError::Unusable { path, why },
            Trouble::Data => StoreError::Other { path, why },
        }
    }
}
