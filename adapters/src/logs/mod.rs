//! Output of tasks, line by line: the master's files, and what a worker keeps until a master has it.
//!
//! A line's offset is its number in the attempt, over both streams, from 0. Lines are only ever added at the
//! end, so one number says where a log goes on, whoever asks.

mod archive;
mod file;
mod line;
mod piles;
mod spool;
mod store;

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

pub use line::{Line, StoredLine};
pub use spool::Spool;
pub use store::{LogOptions, LogStore};

/// Log lines that cannot be read or written.
#[derive(Debug, Error)]
pub enum LogError {
    /// A file cannot be read or written.
    #[error(
        "{}: {error}; free space on that disk or check that this user may write there",
        path.display()
    )]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The store was closed, or its thread ended.
    #[error("the log store is closed; start the process again")]
    Closed,
}

impl LogError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> LogError {
        let path = path.to_owned();
        move |error| LogError::Io { path, error }
    }
}
