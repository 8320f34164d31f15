//! A master as one process runs it: its state machine, its stores and the port for workers.
//!
//! | a file | what |
//! |---|---|
//! | `options` | how a master is set up, and why it cannot start |
//! | `start` | locks, opens and binds everything, and closes it again |
//! | `run` | the loop: events in, commands out, one task that owns the state machine |
//! | `orders` | orders that the store has not answered |
//! | `connection` | one worker's connection, as its own task reads it |
//! | `peer` | what that task and the loop share |
//! | `logs` | log lines, on a path of their own |
//! | `progress` | what running attempts say of themselves |
//! | `status` | what people see |

mod connection;
mod logs;
mod options;
mod orders;
mod peer;
mod progress;
mod run;
mod start;
mod status;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tenure_core::command::Reply;
use tenure_core::event::Ask;
use tenure_core::ids::{AttemptRef, Incarnation, TaskId};
use tokio::sync::{broadcast, mpsc, oneshot, watch};

pub use options::{MasterOptions, StartError};
pub use status::{MasterStatus, WorkerStatus};

use crate::clock::Clock;
use crate::convert::Progress;
use crate::logs::LogStore;
use crate::names::Names;
use crate::sql::SqliteStore;
use crate::tcp::complaints::Complaints;
use run::Input;

/// A running master. Clones are of the same one; it runs on when all are dropped.
#[derive(Clone)]
pub struct MasterHandle {
    inputs: mpsc::Sender<Input>,
    status: watch::Receiver<MasterStatus>,
    changes: broadcast::Sender<TaskId>,
    shared: Arc<Shared>,
}

/// What does not change while a master runs.
struct Shared {
    address: SocketAddr,
    incarnation: Incarnation,
    data_dir: std::path::PathBuf,
    clock: Clock,
    store: Arc<SqliteStore>,
    logs: Arc<LogStore>,
    names: Arc<Names>,
    complaints: Arc<Complaints>,
    progress: Arc<progress::Board>,
}

impl MasterHandle {
    /// Locks the data directory, opens the stores in it, binds the port and runs. Returns when it leads.
    ///
    /// # Errors
    /// [`StartError`] says what stands in the way and what to do; then nothing of it runs.
    pub async fn start(options: MasterOptions) -> Result<MasterHandle, StartError> {
        start::start(options).await
    }

    /// The port for workers, as bound.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// This start of the process.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        self.shared.incarnation
    }

    /// The data directory.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.shared.data_dir
    }

    /// The clock that [`WorkerStatus::last_heard`] and core's times are of.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// Asks something and waits for the answer. A master that has stopped does not lead.
    pub async fn ask(&self, ask: Ask) -> Reply {
        let (answer, answered) = oneshot::channel();
        if self.inputs.send(Input::Asked(ask, answer)).await.is_err() {
            return self.not_leader();
        }
        // It was taken, and the loop ended before it was answered: perhaps it was done.
        answered.await.unwrap_or(Reply::Unknown)
    }

    fn not_leader(&self) -> Reply {
        Reply::NotLeader(self.status.borrow().seen)
    }

    /// The task store, for what people want to read.
    #[must_use]
    pub fn store(&self) -> &SqliteStore {
        &self.shared.store
    }

    /// The logs.
    #[must_use]
    pub fn logs(&self) -> &LogStore {
        &self.shared.logs
    }

    /// What a running attempt last said of itself, while its worker has a session.
    #[must_use]
    pub fn progress(&self, at: AttemptRef) -> Option<Progress> {
        self.shared.progress.of(at)
    }

    /// The names of workers and labels.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.shared.names
    }

    /// How the master is, as of the last event.
    #[must_use]
    pub fn status(&self) -> MasterStatus {
        *self.status.borrow()
    }

    /// Changes with every batch of events; for who waits for a status.
    #[must_use]
    pub fn status_changes(&self) -> watch::Receiver<MasterStatus> {
        self.status.clone()
    }

    /// What peers did wrong, counted by kind.
    #[must_use]
    pub fn complaints(&self) -> BTreeMap<&'static str, u64> {
        self.shared.complaints.counts()
    }

    /// Every worker that is known, by name; none once the master has stopped.
    pub async fn workers(&self) -> Vec<WorkerStatus> {
        let (answer, answered) = oneshot::channel();
        if self.inputs.send(Input::Workers(answer)).await.is_err() {
            return Vec::new();
        }
        answered.await.unwrap_or_default()
    }

    /// Names each task whose row changed, after the change can be read. Subscribe first, then read the row: so
    /// nothing is missed in between. Who falls behind by thousands is told so and must read again.
    #[must_use]
    pub fn changes(&self) -> broadcast::Receiver<TaskId> {
        self.changes.subscribe()
    }

    /// Hands over and ends: no new claims, the writes under way are waited for, workers are sent away.
    pub async fn stop(&self) {
        // An error means that it has ended already.
        let _ = self.inputs.send(Input::Stop).await;
        self.closed().await;
    }

    /// Waits until the master has ended, for whatever reason, and everything of it is closed.
    pub async fn closed(&self) {
        let mut status = self.status.clone();
        // An error means that the loop is gone, which is what is waited for.
        let _ = status.wait_for(|status| status.stopped).await;
    }
}
