//! A run without a server: a master, a worker and the API in this process, for one task.
//!
//! What is on the disk is what a server would have: killed at any point, `run --resume` goes on.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tenure_adapters::driver::worker::WorkerHandle;
use tokio::runtime::Runtime;

use super::super::Context;
use super::super::interrupt::Signals;
use super::super::node::{self, Least, Master, WorkerPlan};
use super::super::task_args::Defaults;
use super::private_dir::PrivateDir;
use super::{RunArgs, follow};
use crate::client::{Client, is_over};
use crate::exit::{Exit, Failure};
use crate::output;

/// The worker's name: the same when the run is resumed, so that it takes over from its former self.
const WORKER: &str = "run";
/// Our own master is there; it only may have to answer first.
const RETRY_FOR: Duration = Duration::from_secs(10);

/// What is told and stored by then needs no orderly end.
const END_LIMIT: Duration = Duration::from_secs(2);

/// A master and a worker that live as long as one task.
struct Node {
    runtime: Runtime,
    master: Master,
    worker: WorkerHandle,
    client: Client,
    signals: Option<Signals>,
}

/// Runs a new task.
pub(super) fn run(args: &RunArgs, context: &Context) -> Result<Exit, Failure> {
    // A failure is told at once; somebody watches.
    let defaults = Defaults { max_attempts: Some(1), here: true, resumable: true };
    let task = args.task.new_task(&args.command, defaults)?;
    let data_dir = context.settings.data_dir();
    if let Some(earlier) = PrivateDir::interrupted(&data_dir) {
        let earlier = earlier.display();
        output::note(&format!(
            "tenure: an earlier run was interrupted; go on with it: tenure run --resume {earlier}"
        ));
    }
    let dir = PrivateDir::create(&data_dir)?;
    let least = Least {
        slots: args.task.slots(),
        gpus: args.task.gpus(),
        labels: args.task.labels().to_vec(),
    };
    let node = match Node::start(context, &dir, least) {
        Ok(node) => node,
        Err(failure) => {
            dir.remove();
            return Err(failure);
        }
    };
    let id = node.client.submit(&task)?.id;
    node.finish(dir, &id, None)
}

/// Goes on with the task of an earlier run.
pub(super) fn resume(context: &Context, path: &Path) -> Result<Exit, Failure> {
    let dir = PrivateDir::of(path)?;
    let node = Node::start(context, &dir, Least::default())?;
    let list = node.client.tasks("limit=1")?;
    let Some(task) = list.tasks.into_iter().next() else {
        let place = path.display();
        return Err(Failure::new(Exit::NotFound, format!("{place}: holds no task; remove it")));
    };
    // What earlier attempts printed was seen then; of a task that is over, nothing more will come.
    let from = match (is_over(&task.status), task.attempt) {
        (true, attempt) => format!("{}.0", attempt.unwrap_or(1)),
        (false, attempt) => format!("{}.0", attempt.unwrap_or(0) + 1),
    };
    node.finish(dir, &task.id, Some(from))
}

impl Node {
    fn start(context: &Context, dir: &PrivateDir, least: Least) -> Result<Node, Failure> {
        node::start_logging("error");
        let runtime = node::runtime()?;
        let any = ([127, 0, 0, 1], 0).into();
        let (signals, master, worker) = runtime.block_on(async {
            let signals = Signals::listen()?;
            let master = Master::start_at(&context.settings, dir.master(), any, any).await?;
            let plan = WorkerPlan {
                name: WORKER.to_owned(),
                masters: vec![master.address().to_string()],
                dir: dir.worker(),
                checkpoint_dir: dir.checkpoints(),
                least,
            };
            let worker = node::start_worker(&context.settings, plan).await?;
            Ok::<_, Failure>((signals, master, worker))
        })?;
        let client = Client::new(&master.http().to_string(), RETRY_FOR)?;
        Ok(Node { runtime, master, worker, client, signals: Some(signals) })
    }

    /// Sees the task to its end and clears up.
    fn finish(mut self, dir: PrivateDir, id: &str, from: Option<String>) -> Result<Exit, Failure> {
        let interrupted = Arc::new(OnceLock::new());
        if let Some(signals) = self.signals.take() {
            let interrupted = Arc::clone(&interrupted);
            let (client, id, dir) = (self.client.clone(), id.to_owned(), dir.path().to_owned());
            self.runtime.spawn(cancel_on_signal(signals, client, id, dir, interrupted));
        }
        let exit = follow::to_the_end(&self.client, id, from)
            .map_err(|failure| told_where(failure, dir.path()))?;
        self.runtime.block_on(end(self.worker, self.master));
        if exit == Exit::Task(0) || exit == Exit::Done {
            dir.remove();
        } else {
            dir.remove_unless_checkpoints();
        }
        Ok(interrupted.get().copied().unwrap_or(exit))
    }
}

/// The worker first, so that nothing of it is under way when the directory goes.
async fn end(worker: WorkerHandle, master: Master) {
    worker.drain().await;
    let _ = tokio::time::timeout(END_LIMIT, worker.closed()).await;
    let _ = tokio::time::timeout(END_LIMIT, master.stop()).await;
}

/// Ctrl-C cancels: TERM, and KILL after the grace time. A second one ends this process, and with it
/// everything that the task started.
async fn cancel_on_signal(
    mut signals: Signals,
    client: Client,
    id: String,
    dir: PathBuf,
    interrupted: Arc<OnceLock<Exit>>,
) {
    let signal = signals.next().await;
    let _ = interrupted.set(Exit::Task(signal.code()));
    output::note("tenure: cancelling (a second Ctrl-C kills)");
    tokio::task::spawn_blocking(move || match client.cancel(&id, false) {
        // It was over already.
        Err(failure) if failure.exit == Exit::Conflict => {}
        Err(failure) => output::note(&format!("tenure: cannot cancel: {failure}")),
        Ok(_) => {}
    });
    let signal = signals.next().await;
    output::note(&format!("tenure: killed; what is left of the run is in {}", dir.display()));
    std::process::exit(signal.code().into());
}

fn told_where(failure: Failure, dir: &Path) -> Failure {
    let dir = dir.display();
    Failure::new(failure.exit, format!("{failure}; go on with `tenure run --resume {dir}`"))
}
