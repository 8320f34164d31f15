//! A worker: its agent's loop, and all that the agent's commands need.
//!
//! | file | what |
//! |---|---|
//! | `options` | how a worker is set up, how its start and end may come out |
//! | `start` | from the options to a running loop |
//! | `run` | the loop: one event, its commands |
//! | `input` | what reaches the loop |
//! | `disk` | the thread that writes records |
//! | `attempts`, `attempt`, `output`, `report`, `gpus`, `routes` | running commands |
//! | `shipper` | their log lines, from the disk to the master |
//! | `progress` | what they say of themselves, until a heartbeat takes it along |
//! | `leftovers` | processes of an earlier start |
//! | `fault` | a hook for tests |

mod attempt;
mod attempts;
mod disk;
mod fault;
mod gpus;
mod input;
mod leftovers;
mod options;
mod output;
mod progress;
mod report;
mod routes;
mod run;
mod shipper;
mod start;

use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::{mpsc, watch};

use input::Input;

pub use options::{StartError, WorkerEnd, WorkerOptions, WorkerState, hostname};

/// A worker that runs in this process. Dropping the handles does not end it.
#[derive(Debug, Clone)]
pub struct WorkerHandle {
    inbox: mpsc::Sender<Input>,
    state: watch::Receiver<WorkerState>,
    end: watch::Receiver<Option<WorkerEnd>>,
}

impl WorkerHandle {
    /// Starts a worker: takes its directory, ends what an earlier start of it left, then looks for a master.
    ///
    /// Returns before it has found one; [`WorkerHandle::changes`] tells.
    ///
    /// # Errors
    /// [`StartError`] says what to change.
    pub async fn start(options: WorkerOptions) -> Result<WorkerHandle, StartError> {
        start::start(options).await
    }

    /// It takes no more tasks, finishes those it has, and ends. Asked again: gives back what still runs.
    pub async fn drain(&self) {
        // A worker that has ended needs no order to.
        let _ = self.inbox.send(Input::Drain).await;
    }

    /// What it is doing.
    #[must_use]
    pub fn state(&self) -> WorkerState {
        *self.state.borrow()
    }

    /// Tells each time that [`WorkerHandle::state`] has changed.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<WorkerState> {
        self.state.clone()
    }

    /// Waits until it has ended: no process of its tasks runs any more, every record is on the disk.
    pub async fn closed(&self) -> WorkerEnd {
        let mut end = self.end.clone();
        match end.wait_for(Option::is_some).await {
            Ok(end) => end.clone().unwrap_or(WorkerEnd::Broken),
            Err(_) => WorkerEnd::Broken,
        }
    }
}

/// Milliseconds since 1970 by the machine's clock, for people.
fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
