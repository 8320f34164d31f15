//! One attempt: from the order to start it to its outcome.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::ids::{AttemptRef, Epoch};
use tenure_core::outcome::Verdict;
use tenure_core::spec::Payload;
use tenure_proto::messages::{OutcomeReport, TaskBody};
use tokio::sync::{mpsc, oneshot};

use super::fault::Fault as TestFault;
use super::leftovers::MARK;
use super::output::Output;
use super::progress;
use super::report::{End, StopCause, add_result, judge};
use super::routes::Routes;
use super::shipper::Shipment;
use super::wall_ms;
use crate::logs::Spool;
use crate::process::context::{Attempt, Context, Gpus, Start};
use crate::process::result::{Findings, TaskResult};
use crate::process::{Executor, Fault, Launch, ProcessEvent};

/// How long an outcome waits for the lines before it to be on their way, while the socket is busy.
const FLUSH_LIMIT: Duration = Duration::from_millis(50);

/// Events taken at once.
const EVENTS: usize = 256;

/// What all attempts of a worker share.
#[derive(Debug)]
pub(super) struct Workshop {
    pub(super) executor: Executor,
    pub(super) routes: Routes,
    pub(super) spool: Spool,
    pub(super) shipper: mpsc::UnboundedSender<Shipment>,
    pub(super) progress: progress::Board,
    /// The worker's directory, as the mark of its processes.
    pub(super) dir: PathBuf,
    pub(super) scratch_root: PathBuf,
    pub(super) checkpoint_root: PathBuf,
    pub(super) work_dir: PathBuf,
    pub(super) worker: String,
    pub(super) stop_grace: Duration,
    /// The longest result that an outcome may carry.
    pub(super) result_limit: usize,
}

/// One attempt that is to run.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) at: AttemptRef,
    pub(super) epoch: Epoch,
    pub(super) resumes: bool,
    pub(super) payload: Payload,
    /// Its GPUs, if the worker hands out any.
    pub(super) gpus: Option<Vec<u32>>,
    /// Its handle at the executor.
    pub(super) key: u64,
    pub(super) stops: mpsc::UnboundedReceiver<StopCause>,
}

/// Runs the attempt to its end.
pub(super) async fn run(shop: Arc<Workshop>, mut job: Job) -> (Verdict, OutcomeReport) {
    let (spool, shipper) = (shop.spool.clone(), shop.shipper.clone());
    let mut output = Output::new(job.at, spool, shipper, shop.progress.clone());
    let mut times = Times { started: 0, ended: 0 };
    let (end, stop, result) = match TaskBody::from_bytes(job.payload.bytes()) {
        Ok(body) => run_body(&shop, &mut job, &body, &mut output, &mut times).await,
        Err(error) => {
            let error = format!("task {}: {error}", job.at.task.0);
            (End::Unreadable(error), None, TaskResult::default())
        }
    };
    times.ended = wall_ms();
    let log_lines = output.finish();
    flush(&shop, job.at).await;
    let (verdict, mut report) = judge(&end, stop);
    add_result(result, shop.result_limit, &mut report);
    let (started_at_ms, ended_at_ms) = (times.started, times.ended);
    (verdict, OutcomeReport { log_lines, started_at_ms, ended_at_ms, ..report })
}

struct Times {
    started: u64,
    ended: u64,
}

async fn run_body(
    shop: &Arc<Workshop>,
    job: &mut Job,
    body: &TaskBody,
    output: &mut Output,
    times: &mut Times,
) -> (End, Option<StopCause>, TaskResult) {
    if body.command.is_empty() && !body.handler.is_empty() {
        let error = format!(
            "the task names the handler `{}`, which only a program that embeds a worker has; \
             give the task a command",
            body.handler
        );
        return (End::Unreadable(error), None, TaskResult::default());
    }
    let context = match prepare(shop, job, body).await {
        Ok(context) => context,
        Err(error) => {
            let end = End::NotStarted { fault: Fault::Worker, error: error.to_string() };
            return (end, None, TaskResult::default());
        }
    };
    let launch = launch(shop, job.key, body, &context);
    let watching = progress::watch(context.progress_path(), job.at, &shop.progress);
    let (end, stop) = tokio::select! {
        followed = follow(shop, job, body, launch, output, times) => followed,
        never = watching => match never {},
    };
    let checkpoints = needless_checkpoints(shop, job, body, &end);
    let result = leave(context, output.findings(), checkpoints).await;
    (end, stop, result)
}

/// Makes the attempt's directories, on a thread that may wait for the disk.
async fn prepare(shop: &Arc<Workshop>, job: &Job, body: &TaskBody) -> io::Result<Context> {
    let shop = Arc::clone(shop);
    let (at, epoch, gpus) = (job.at, job.epoch.0, job.gpus.clone());
    let start = if job.resumes { Start::Resumes } else { Start::Fresh };
    let trace_id = body.trace_id.clone();
    let prepare = move || {
        let attempt = Attempt {
            task_id: &at.task.0.to_string(),
            attempt: at.attempt.number().into(),
            epoch,
            trace_id: &trace_id,
            checkpoint_dir: &shop.checkpoints(at),
            start,
            gpus: gpus.as_deref().map_or(Gpus::NotManaged, Gpus::Assigned),
        };
        Context::prepare(&shop.scratch_root, &attempt)
    };
    tokio::task::spawn_blocking(prepare).await.map_err(io::Error::other)?
}

impl Workshop {
    /// The same for every attempt of a task.
    fn checkpoints(&self, at: AttemptRef) -> PathBuf {
        self.checkpoint_root.join(at.task.0.to_string())
    }
}

/// The worker's environment, the task's over it, the context's over both.
fn launch(shop: &Workshop, key: u64, body: &TaskBody, context: &Context) -> Launch {
    let inherited = std::env::vars_os().filter(|(name, _)| !TestFault::is_hook(name));
    let inherited =
        inherited.filter(|(name, _)| name.to_str().is_none_or(|n| !body.env.contains_key(n)));
    let own = body.env.iter().map(|(name, value)| (name.into(), value.into()));
    let base =
        inherited.chain(own).filter(|(name, _): &(OsString, _)| name != MARK && name != NAME);
    let mut env = context.over(base);
    env.push((MARK.into(), shop.dir.clone().into()));
    env.push((NAME.into(), shop.worker.clone().into()));
    let mut words = body.command.iter().map(OsString::from);
    let program = words.next().unwrap_or_default();
    Launch { key, program, args: words.collect(), env, cwd: shop.work_dir.join(&body.cwd) }
}

/// Names the worker in the environment of its tasks.
const NAME: &str = "TENURE_WORKER";

/// Launches the command and passes its output on until it is over.
async fn follow(
    shop: &Workshop,
    job: &mut Job,
    body: &TaskBody,
    launch: Launch,
    output: &mut Output,
    times: &mut Times,
) -> (End, Option<StopCause>) {
    // What was ended while it was being prepared never starts.
    if let Ok(stop) = job.stops.try_recv() {
        return (End::NeverRan, Some(stop));
    }
    let mut events = shop.routes.open(job.key);
    shop.executor.launch(launch);
    let mut stop = None;
    let mut taken = Vec::with_capacity(EVENTS);
    loop {
        tokio::select! {
            biased;
            Some(cause) = job.stops.recv(), if stop.is_none() => {
                stop = Some(cause);
                shop.executor.stop(job.key, grace(shop, body));
            }
            count = events.recv_many(&mut taken, EVENTS) => {
                if count == 0 {
                    let error = "the worker's executor ended".to_owned();
                    return (End::NotStarted { fault: Fault::Worker, error }, stop);
                }
                if let Some(end) = take(&mut taken, output, times).await {
                    return (end, stop);
                }
            }
        }
    }
}

fn grace(shop: &Workshop, body: &TaskBody) -> Duration {
    match body.stop_grace_ms {
        0 => shop.stop_grace,
        ms => Duration::from_millis(ms),
    }
}

/// Takes what happened; gives the end if that is among it, which is then the last.
async fn take(
    taken: &mut Vec<ProcessEvent>,
    output: &mut Output,
    times: &mut Times,
) -> Option<End> {
    let mut end = None;
    for event in taken.drain(..) {
        match event {
            ProcessEvent::Started { .. } => times.started = wall_ms(),
            ProcessEvent::Line { line, .. } => output.add(line),
            ProcessEvent::Ended { exit, killed, survivors, .. } => {
                end = Some(End::Exited { exit, killed, survivors });
            }
            ProcessEvent::FailedToStart { fault, error, .. } => {
                end = Some(End::NotStarted { fault, error });
            }
            ProcessEvent::GuardianLost { .. } => {}
        }
    }
    output.write().await;
    end
}

/// What the task left; its scratch directory goes, and that of its checkpoints if it is empty.
async fn leave(context: Context, findings: Findings, checkpoints: Option<PathBuf>) -> TaskResult {
    let leave = move || {
        if let Some(dir) = checkpoints {
            // Fails if there is something in it, which is what it is for.
            let _ = std::fs::remove_dir(dir);
        }
        let result = context.result(&findings);
        if let Err(error) = context.remove() {
            tracing::warn!(%error, "a scratch directory stays until the next start");
        }
        result
    };
    tokio::task::spawn_blocking(leave).await.unwrap_or_default()
}

/// Short tasks must not leave a directory each: an empty one may go when no attempt will look for it.
fn needless_checkpoints(shop: &Workshop, job: &Job, body: &TaskBody, end: &End) -> Option<PathBuf> {
    let succeeded = judge(end, None).0 == Verdict::Succeeded;
    (succeeded || !body.resumable).then(|| shop.checkpoints(job.at))
}

/// An outcome is read after the lines before it where that costs nothing.
async fn flush(shop: &Workshop, at: AttemptRef) {
    let (done, flushed) = oneshot::channel();
    if shop.shipper.send(Shipment::Flush(at, done)).is_ok() {
        let _ = tokio::time::timeout(FLUSH_LIMIT, flushed).await;
    }
}
