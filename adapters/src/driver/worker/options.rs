//! What a worker is told at its start, and what its start and end may come to.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tenure_core::policy::Policy;
use tenure_proto::Limits;
use thiserror::Error;

use crate::data_dir::DirError;
use crate::logs::LogError;
use crate::outbox::OutboxError;
use crate::process::GuardianCommand;

/// How a worker is set up.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// The name that it goes by; one live process at a time. Default: the name of its host.
    pub name: String,
    /// Timings; the same as its masters'.
    pub policy: Policy,
    /// The masters that it knows, each as `host:port`. At least one.
    pub masters: Vec<String>,
    /// Where it keeps what must survive it: records, outcomes, log lines. One process at a time.
    pub dir: PathBuf,
    /// Where tasks leave checkpoints, in a directory for each task. Workers that are to go on with each
    /// other's tasks must share it. Default: `checkpoints` below `dir`.
    pub checkpoint_dir: Option<PathBuf>,
    /// Where commands start that name no directory. Default: where the worker was started.
    pub work_dir: Option<PathBuf>,
    /// How many tasks it takes at once, if each takes one slot. Default 1.
    pub slots: u16,
    /// How many GPUs it hands out: the indexes in `CUDA_VISIBLE_DEVICES`, or else from 0 on. Default 0: tasks
    /// see what the worker sees.
    pub gpus: u16,
    /// What it can do; tasks may ask for labels.
    pub labels: Vec<String>,
    /// How to start the process that holds the tasks' processes.
    pub guardian: GuardianCommand,
    /// A longer line of output is passed on in pieces. Default 64 KiB.
    pub line_cap: usize,
    /// Log lines on its disk that no master has taken, in bytes; above that the oldest are dropped and
    /// counted. Default 1 GiB.
    pub spool_limit: u64,
    /// Time between TERM and KILL for tasks that say nothing of their own. Default 5 s.
    pub stop_grace: Duration,
    /// Frames of its masters and its own. Default 16 MiB.
    pub frame_limits: Limits,
}

impl WorkerOptions {
    /// The defaults for a worker of these masters that keeps its records here.
    #[must_use]
    pub fn new(masters: Vec<String>, dir: PathBuf, guardian: GuardianCommand) -> WorkerOptions {
        WorkerOptions {
            name: hostname(),
            policy: Policy::default(),
            masters,
            dir,
            checkpoint_dir: None,
            work_dir: None,
            slots: 1,
            gpus: 0,
            labels: Vec::new(),
            guardian,
            line_cap: 64 << 10,
            spool_limit: 1 << 30,
            stop_grace: Duration::from_secs(5),
            frame_limits: Limits::default(),
        }
    }
}

/// The name of this host, the default name of its worker.
#[must_use]
pub fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "worker".to_owned(),
        name => name.to_owned(),
    }
}

/// Why a worker did not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// Its directory is another process's, or cannot be used.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// Its records cannot be read or written.
    #[error(transparent)]
    Records(#[from] OutboxError),
    /// Its log lines cannot be read or written.
    #[error(transparent)]
    Logs(#[from] LogError),
    /// The system gives no thread, or no current directory.
    #[error("cannot {what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        error: io::Error,
    },
    /// It cannot hold processes.
    #[error(transparent)]
    Guardian(io::Error),
    /// Processes of an earlier start do not die.
    #[error(
        "processes that the last start of this worker left do not end: {pids:?}; they may hang in the kernel (a network file system that is away, for one) or belong to another user: end them, then start again"
    )]
    Leftovers {
        /// Their ids.
        pids: Vec<i32>,
    },
    /// An incarnation must be drawn.
    #[error("the system gives no random numbers: {0}; a worker cannot do without")]
    Randomness(String),
    /// There is nobody to work for.
    #[error("no master is named; give at least one as host:port")]
    NoMaster,
    /// It could do nothing.
    #[error("slots is 0; a worker that is to run tasks has at least 1")]
    NoSlots,
}

/// How a worker ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkerEnd {
    /// As its operator asked; every outcome is acknowledged or on its disk.
    Drained,
    /// Another live process goes by its name: details for people.
    NameInUse(String),
    /// A later start goes by its name: details for people.
    Replaced(String),
    /// It broke: a fault of the program, or its runtime ended.
    Broken,
}

/// What a worker is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerState {
    /// Whether a master has acknowledged its session.
    pub connected: bool,
    /// Whether it takes no new tasks.
    pub draining: bool,
    /// How many attempts run here.
    pub running: usize,
    /// How many outcomes wait for an acknowledgement.
    pub unacknowledged: usize,
}
