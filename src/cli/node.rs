//! Masters and workers as parts of this process, for `master`, `worker`, `dev` and `run`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tenure_adapters::data_dir::DirError;
use tenure_adapters::driver::master::{self, MasterHandle, MasterOptions};
use tenure_adapters::driver::worker::{self, WorkerEnd, WorkerHandle, WorkerOptions};
use tenure_adapters::http;
use tenure_adapters::process::GuardianCommand;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::exit::{Exit, Failure};
use crate::output;
use crate::settings::{Settings, keys};

/// The runtime of a process that serves.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::unavailable(format!("no threads for this process: {error}")))
}

/// Log lines to stderr: `TENURE_LOG` says how much, as `debug` or `tenure_adapters=trace`.
pub(crate) fn start_logging(default: &str) {
    let filter = std::env::var("TENURE_LOG").unwrap_or_else(|_| default.to_owned());
    let filter = tracing_subscriber::EnvFilter::new(filter);
    let started = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(output::colours())
        .with_target(false)
        .try_init();
    if let Err(error) = started {
        output::note(&format!("no log: {error}"));
    }
}

/// A master with its API.
pub(crate) struct Master {
    handle: MasterHandle,
    http: SocketAddr,
    stop: watch::Sender<bool>,
    api: JoinHandle<std::io::Result<()>>,
    // The API reads it for as long as it lives.
    _started: watch::Sender<Option<MasterHandle>>,
}

impl Master {
    /// Starts the one that the settings describe, with its data in `dir`; returns when it leads.
    pub(crate) async fn start(settings: &Settings, dir: PathBuf) -> Result<Master, Failure> {
        let listen = settings.listener(keys::LISTEN)?;
        let http = settings.listener(keys::HTTP)?;
        Master::start_at(settings, dir, listen, http).await
    }

    /// The same, listening elsewhere than the settings say.
    pub(crate) async fn start_at(
        settings: &Settings,
        dir: PathBuf,
        listen: SocketAddr,
        http: SocketAddr,
    ) -> Result<Master, Failure> {
        let frame_limit = settings.parse(keys::FRAME_LIMIT, "a number of bytes")?;
        let options = MasterOptions {
            policy: settings.policy()?,
            listen,
            frame_limit,
            ..MasterOptions::new(dir)
        };
        // First, so that people can ask how it is while it starts.
        let listener = bind(http).await?;
        let http = listener
            .local_addr()
            .map_err(|error| Failure::unavailable(format!("{http}: {error}")))?;
        let (started, served) = watch::channel(None);
        let (stop, mut stopped) = watch::channel(false);
        let api = tokio::spawn(http::serve(listener, served, async move {
            let _ = stopped.wait_for(|stop| *stop).await;
        }));
        let handle = MasterHandle::start(options).await.map_err(|error| match error {
            master::StartError::Dir(error) => dir_failure(&error),
            error => Failure::unavailable(error.to_string()),
        })?;
        started.send_replace(Some(handle.clone()));
        Ok(Master { handle, http, stop, api, _started: started })
    }

    /// Where workers connect.
    pub(crate) fn address(&self) -> SocketAddr {
        self.handle.address()
    }

    /// Where the API is.
    pub(crate) fn http(&self) -> SocketAddr {
        self.http
    }

    /// Hands over what it leads and ends.
    pub(crate) async fn stop(self) {
        self.handle.stop().await;
        let _ = self.stop.send(true);
        // Followers of logs hold their connections open for as long as they like.
        let _ = tokio::time::timeout(std::time::Duration::from_secs(1), self.api).await;
    }

    /// Returns when it has ended without being asked to.
    pub(crate) async fn closed(&self) {
        self.handle.closed().await;
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| {
        Failure::unavailable(format!(
            "cannot serve the API at {address}: {error}; end what is there, or choose another address \
             with --http (port 0: any free one)"
        ))
    })
}

/// What a worker differs in from what the settings say.
pub(crate) struct WorkerPlan {
    /// Its name.
    pub(crate) name: String,
    /// Its masters.
    pub(crate) masters: Vec<String>,
    /// Where it keeps its records.
    pub(crate) dir: PathBuf,
    /// Where tasks leave checkpoints.
    pub(crate) checkpoint_dir: PathBuf,
    /// What it must have beside what the settings say.
    pub(crate) least: Least,
}

/// What a worker has at least.
#[derive(Debug, Clone, Default)]
pub(crate) struct Least {
    /// Slots.
    pub(crate) slots: u16,
    /// GPUs.
    pub(crate) gpus: u16,
    /// Labels.
    pub(crate) labels: Vec<String>,
}

/// Starts a worker.
pub(crate) async fn start_worker(
    settings: &Settings,
    plan: WorkerPlan,
) -> Result<WorkerHandle, Failure> {
    let mut options = WorkerOptions::new(plan.masters, plan.dir, GuardianCommand::this_program());
    options.name = plan.name;
    options.policy = settings.policy()?;
    options.checkpoint_dir = Some(plan.checkpoint_dir);
    let slots: u16 = settings.parse(keys::SLOTS, "a number from 1 to 65535")?;
    options.slots = slots.max(plan.least.slots);
    let gpus: u16 = settings.parse(keys::GPUS, "a number from 0 to 65535")?;
    options.gpus = gpus.max(plan.least.gpus);
    options.labels = settings.list(keys::LABELS);
    options.labels.extend(plan.least.labels);
    options.line_cap = settings.parse(keys::LINE_CAP, "a number of bytes")?;
    WorkerHandle::start(options).await.map_err(|error| match error {
        worker::StartError::Dir(error) => dir_failure(&error),
        error => Failure::unavailable(error.to_string()),
    })
}

fn dir_failure(error: &DirError) -> Failure {
    let exit = match error {
        DirError::InUse { .. } => Exit::Conflict,
        DirError::Io { .. } => Exit::Unavailable,
    };
    Failure::new(exit, error.to_string())
}

/// Where the settings' workers keep checkpoints.
pub(crate) fn checkpoint_dir(settings: &Settings) -> PathBuf {
    match settings.text(keys::CHECKPOINTS) {
        text if text.is_empty() => settings.data_dir().join("checkpoints"),
        text => PathBuf::from(text),
    }
}

/// Where a worker of this name keeps its records.
pub(crate) fn worker_dir(settings: &Settings, name: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let safe: String = name.chars().map(plain).collect();
    settings.data_dir().join("workers").join(safe.trim_start_matches('.'))
}

/// Where the settings' master keeps its data.
pub(crate) fn master_dir(settings: &Settings) -> PathBuf {
    settings.data_dir().join("master")
}

/// What the end of a worker means for its process.
pub(crate) fn end_of_worker(end: WorkerEnd) -> Result<Exit, Failure> {
    match end {
        WorkerEnd::Drained => Ok(Exit::Done),
        WorkerEnd::NameInUse(detail) => Err(Failure::new(
            Exit::Conflict,
            format!("{detail}; give this worker another name with --name"),
        )),
        WorkerEnd::Replaced(detail) => Err(Failure::new(Exit::Conflict, detail)),
        WorkerEnd::Broken => Err(Failure::unavailable("this worker broke; see its log")),
    }
}

/// What a process that serves says about itself once it does: one JSON document.
#[derive(Debug, Serialize)]
pub(crate) struct Ready<'a> {
    /// The API.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<String>,
    /// Where workers connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worker_address: Option<String>,
    /// Where everything is kept.
    pub(crate) data_dir: &'a Path,
    /// This process.
    pub(crate) pid: u32,
}
