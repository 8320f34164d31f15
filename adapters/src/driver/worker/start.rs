//! From the options to a running loop.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tenure_core::agent::{Agent, AgentConfig};
use tenure_core::event::{AgentEvent, Remembered};
use tenure_core::ids::{AttemptRef, Holder, Incarnation};
use tenure_core::rules::Rules;
use tenure_core::spec::{Labels, Shape};
use tokio::sync::{mpsc, watch};

use super::attempt::Workshop;
use super::attempts::Attempts;
use super::disk::Disk;
use super::input::Input;
use super::progress::Board;
use super::routes::Routes;
use super::run::Worker;
use super::shipper::Shipper;
use super::{StartError, WorkerHandle, WorkerOptions, WorkerState, hostname, leftovers};
use crate::clock::Clock;
use crate::convert::WorkerIdentity;
use crate::data_dir::{DataDir, DirError};
use crate::incarnation::draw;
use crate::logs::Spool;
use crate::names::Names;
use crate::outbox::{Outbox, OutboxOptions};
use crate::process::{Executor, Settings};

/// Events that may wait for the loop. Who sends more waits; the loop itself waits for none of them.
const INBOX: usize = 1024;

pub(super) async fn start(options: WorkerOptions) -> Result<WorkerHandle, StartError> {
    check(&options)?;
    let mut options = options;
    let dir = DataDir::lock(&options.dir)?;
    // Processes are found by the directory's name, which must be one whatever the way there.
    options.dir = std::fs::canonicalize(dir.path())
        .map_err(|error| DirError::Io { path: dir.path().to_owned(), error })?;
    let (outbox, remembered) = Outbox::open(&dir, OutboxOptions::default())?;
    if outbox.recovered().damaged > 0 {
        let bytes = outbox.recovered().damaged;
        tracing::error!(bytes, "the disk lost records of this worker; outcomes in them are lost");
    }
    let (spool, held) = Spool::open(&dir.spool(), options.spool_limit)?;
    leftovers::end(&options.dir).await?;
    let settings = Settings { line_cap: options.line_cap, ..Settings::default() };
    let (executor, events) =
        Executor::start(options.guardian.clone(), settings).await.map_err(StartError::Guardian)?;

    let (sender, inbox) = mpsc::channel(INBOX);
    let unsettled: BTreeSet<AttemptRef> = remembered.outcomes.iter().map(|kept| kept.at).collect();
    let again_after = Duration::from_millis(options.policy.settings().result_timeout.0);
    let shipper = Shipper::start(spool.clone(), held, &unsettled, again_after);
    let progress = Board::new(options.frame_limits);
    let shop = Workshop {
        executor,
        routes: Routes::start(events),
        spool,
        shipper: shipper.clone(),
        progress: progress.clone(),
        scratch_root: empty(&options.dir.join("scratch"))?,
        checkpoint_root: checkpoint_root(&options)?,
        work_dir: work_dir(&options)?,
        dir: options.dir.clone(),
        worker: options.name.clone(),
        stop_grace: options.stop_grace,
        result_limit: result_limit(&options),
    };
    let names = Names::new();
    let incarnation = draw().map_err(no_randomness)?;
    let seed = draw().map_err(no_randomness)?.0;
    let worker = Worker {
        agent: agent(&options, &names, incarnation, seed),
        clock: Clock::start(),
        attempts: Attempts::new(shop, options.gpus, sender.clone()),
        disk: Disk::start(outbox, sender.clone())
            .map_err(system("start the thread that writes records"))?,
        shipper,
        progress,
        waiting: VecDeque::new(),
        links: HashMap::new(),
        next_session: 1,
        identity: identity(&options, incarnation),
        names,
        options,
        sender: sender.clone(),
        drains: 0,
        detail: String::new(),
        end: None,
    };
    Ok(launch(worker, remembered, (sender, inbox), dir))
}

fn launch(
    worker: Worker,
    remembered: Remembered,
    (sender, inbox): (mpsc::Sender<Input>, mpsc::Receiver<Input>),
    dir: DataDir,
) -> WorkerHandle {
    let (state, states) = watch::channel(WorkerState::default());
    let (end, ends) = watch::channel(None);
    tokio::spawn(async move {
        let how = worker.run(AgentEvent::Booted(remembered), inbox, &state).await;
        // Another start may have the directory once nothing here can write to it.
        drop(dir);
        let _ = end.send(Some(how));
    });
    WorkerHandle { inbox: sender, state: states, end: ends }
}

fn check(options: &WorkerOptions) -> Result<(), StartError> {
    if options.masters.is_empty() {
        return Err(StartError::NoMaster);
    }
    if options.slots == 0 {
        return Err(StartError::NoSlots);
    }
    Ok(())
}

fn agent(options: &WorkerOptions, names: &Names, incarnation: Incarnation, seed: u64) -> Agent {
    let labels: Vec<_> = options.labels.iter().map(|label| names.label(label)).collect();
    Agent::new(AgentConfig {
        policy: options.policy,
        rules: Rules::default(),
        holder: Holder { worker: names.worker(&options.name), incarnation },
        capacity: Shape { slots: options.slots, gpus: options.gpus, labels: Labels::of(&labels) },
        masters: options.masters.len(),
        seed,
    })
}

fn identity(options: &WorkerOptions, incarnation: Incarnation) -> WorkerIdentity {
    WorkerIdentity {
        name: options.name.clone(),
        incarnation,
        hostname: hostname(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// An empty directory: what an earlier start left in it belongs to attempts that are over.
fn empty(dir: &Path) -> Result<PathBuf, StartError> {
    let io = |error| DirError::Io { path: dir.to_owned(), error };
    match std::fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error).into()),
        Ok(()) | Err(_) => {}
    }
    std::fs::create_dir_all(dir).map_err(io)?;
    Ok(dir.to_owned())
}

fn no_randomness(error: getrandom::Error) -> StartError {
    StartError::Randomness(error.to_string())
}

fn checkpoint_root(options: &WorkerOptions) -> Result<PathBuf, StartError> {
    let own = || options.dir.join("checkpoints");
    let root = options.checkpoint_dir.clone().unwrap_or_else(own);
    let io = |error| DirError::Io { path: root.clone(), error };
    std::fs::create_dir_all(&root).map_err(io)?;
    Ok(std::fs::canonicalize(&root).map_err(io)?)
}

fn work_dir(options: &WorkerOptions) -> Result<PathBuf, StartError> {
    let dir = match &options.work_dir {
        Some(dir) => std::path::absolute(dir),
        None => std::env::current_dir(),
    };
    dir.map_err(system("find the directory that commands start in; name one with work_dir"))
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> StartError {
    move |error| StartError::System { what, error }
}

/// An outcome must fit into a frame, whatever its task wrote.
fn result_limit(options: &WorkerOptions) -> usize {
    options.frame_limits.max_frame() as usize / 2
}
