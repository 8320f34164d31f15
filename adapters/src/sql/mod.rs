//! The task store in an SQLite file.
//!
//! [`SqliteStore::submit`] takes core's orders; their answers come in order on the channel given at
//! opening, and they are those of `tenure_core::model::task_table::TaskTable`. Reads for people go to
//! connections of their own, which never hold up a writer.
//!
//! | a file | what |
//! |---|---|
//! | `writer` | batches by arrival, one transaction each, and what a failure means |
//! | `batch` | the touched part of the store in memory; answers come from here |
//! | `load`, `save`, `statements`, `row`, `code` | between memory and SQL |
//! | `story` | attempts and events, for people |
//! | `read`, `view` | questions of people |
//! | `schema` | versions of the file |

mod batch;
mod code;
mod error;
mod load;
mod read;
mod row;
mod save;
mod schema;
mod statements;
mod story;
mod view;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, SqliteConnection};
use tenure_core::ids::EffectId;
use tenure_core::store::{StoreOp, StoreResult};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

pub use error::StoreError;
pub use view::{AttemptView, Counts, EventView, ListFilter, TaskView, WorkerView};

use crate::names::Names;
use crate::wall::{WallClock, machine_clock};
use writer::{Order, Shown, Writer};

/// When a commit is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Before it is answered: survives a power cut.
    #[default]
    Full,
    /// Soon after: survives a kill of the process only. For tests.
    Process,
}

/// How a store is opened.
#[derive(Clone)]
pub struct StoreOptions {
    /// When a commit is on the disk.
    pub durability: Durability,
    /// How long another process's write is waited for. Default 5 s, SQLite's customary value.
    pub busy_timeout: Duration,
    /// Connections for reads of people. Default 4.
    pub readers: u32,
    /// The file grows to so many pages of 4 KiB at most; then writes fail as on a full disk. Default: no limit.
    pub max_pages: Option<u32>,
    /// The store's own clock; only it judges the term's lease. Default: the machine's.
    pub clock: WallClock,
}

impl Default for StoreOptions {
    fn default() -> StoreOptions {
        StoreOptions {
            durability: Durability::Full,
            busy_timeout: Duration::from_secs(5),
            readers: 4,
            max_pages: None,
            clock: machine_clock(),
        }
    }
}

/// The task store in a file.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    orders: Mutex<Option<UnboundedSender<Order>>>,
    answers: UnboundedSender<(EffectId, StoreResult)>,
    writer: tokio::sync::Mutex<Option<JoinHandle<()>>>,
    shown: Arc<Shown>,
    names: Arc<Names>,
    pool: SqlitePool,
}

impl SqliteStore {
    /// Opens the file, makes it if need be and brings it to the newest schema. Answers to orders go to
    /// `answers`, in the order in which they were submitted.
    ///
    /// The caller holds the directory's lock ([`crate::data_dir::DataDir`]).
    ///
    /// # Errors
    /// [`StoreError`] if the file is damaged, another program's, of a newer version, or cannot be written.
    pub async fn open(
        path: &Path,
        names: Arc<Names>,
        options: StoreOptions,
        answers: UnboundedSender<(EffectId, StoreResult)>,
    ) -> Result<SqliteStore, StoreError> {
        let connect = connect_options(path, &options);
        let conn = open_checked(path, &connect).await?;
        let pool = SqlitePoolOptions::new()
            .max_connections(options.readers)
            .connect_lazy_with(connect.clone().read_only(true).create_if_missing(false));
        let shown = Arc::new(Shown::default());
        let writer = Writer {
            path: path.to_owned(),
            // A file that was moved away is not made anew behind the master's back.
            options: connect.create_if_missing(false),
            conn: Some(conn),
            names: Arc::clone(&names),
            clock: options.clock,
            shown: Arc::clone(&shown),
            answers: answers.clone(),
        };
        let (orders, arrived) = unbounded_channel();
        Ok(SqliteStore {
            path: path.to_owned(),
            orders: Mutex::new(Some(orders)),
            answers,
            writer: tokio::sync::Mutex::new(Some(tokio::spawn(writer.run(arrived)))),
            shown,
            names,
            pool,
        })
    }

    /// Orders something; never waits. A store that was closed answers that it failed.
    pub fn submit(&self, effect: EffectId, order: StoreOp) {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = orders.as_ref().is_some_and(|orders| orders.send((effect, order)).is_ok());
        if !taken {
            // Whoever asked may have ended; then nobody waits for the answer.
            let _ = self.answers.send((effect, StoreResult::Failed));
        }
    }

    /// Carries out and answers what was ordered, then closes the file.
    pub async fn close(&self) {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = self.writer.lock().await.take() {
            // It ends by itself once no more orders can come.
            let _ = writer.await;
        }
        self.pool.close().await;
    }

    /// Transactions committed since opening.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.shown.commits.load(Ordering::Relaxed)
    }

    /// Why the last write failed, with the remedy; none if it did not.
    #[must_use]
    pub fn trouble(&self) -> Option<Arc<str>> {
        self.shown.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

async fn open_checked(
    path: &Path,
    options: &SqliteConnectOptions,
) -> Result<SqliteConnection, StoreError> {
    let mut conn = options.connect().await.map_err(|error| StoreError::of(path, error))?;
    schema::migrate(path, &mut conn).await?;
    Ok(conn)
}

fn connect_options(path: &Path, options: &StoreOptions) -> SqliteConnectOptions {
    let synchronous = match options.durability {
        Durability::Full => SqliteSynchronous::Full,
        Durability::Process => SqliteSynchronous::Normal,
    };
    let connect = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(synchronous)
        .foreign_keys(true)
        .busy_timeout(options.busy_timeout)
        // A whole batch of rows crosses from SQLite's thread at once.
        .row_buffer_size(1024)
        .disable_statement_logging();
    match options.max_pages {
        Some(pages) => connect.pragma("max_page_count", pages.to_string()),
        None => connect,
    }
}

#[cfg(test)]
mod tests {
    use sqlx::Row as _;

    use super::*;

    async fn pragmas(durability: Durability) -> (String, i64, i64) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let options = StoreOptions { durability, ..StoreOptions::default() };
        let connect = connect_options(&dir.path().join("tenure.db"), &options);
        let mut conn = connect.connect().await.expect("the file opens");
        let ask = "SELECT journal_mode, synchronous, foreign_keys \
                   FROM pragma_journal_mode, pragma_synchronous, pragma_foreign_keys";
        let row = sqlx::query(ask).fetch_one(&mut conn).await.expect("pragmas are readable");
        (row.get(0), row.get(1), row.get(2))
    }

    #[tokio::test]
    async fn a_commit_is_on_the_disk_before_it_is_answered_unless_a_test_says_otherwise() {
        // 2 is FULL: in WAL mode a sync for each commit. 1 is NORMAL: at checkpoints only.
        assert_eq!(StoreOptions::default().durability, Durability::Full);
        assert_eq!(pragmas(Durability::Full).await, ("wal".to_owned(), 2, 1));
        assert_eq!(pragmas(Durability::Process).await, ("wal".to_owned(), 1, 1));
    }
}
