//! The worker that runs a task is killed or frozen while another one is idle.

use std::time::Duration;

use nix::sys::signal::Signal;
use serde::Serialize;
use tenure_core::time::Millis;

use super::cluster::Cluster;
use super::ledger::Ledger;
use super::meeting::Meeting;
use super::stats::Stats;
use super::task::monotonic_ns;
use super::{Context, RecoveryArgs};
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// What a start may take beside the time that it takes to notice the loss.
const RESTART: Millis = Millis(500);
/// A start that takes longer will not come.
const START_LIMIT: Duration = Duration::from_secs(60);

/// What happens to the worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// SIGKILL.
    Kill,
    /// SIGSTOP, and SIGCONT once the task runs elsewhere.
    Freeze,
}

#[derive(Debug, Serialize)]
struct Document {
    bench: &'static str,
    fault: &'static str,
    #[serde(flatten)]
    stats: Stats,
    /// What the settings promise.
    bound_ms: u64,
    wrong: Vec<String>,
}

/// Measures `args.runs` times.
pub(super) fn run(args: &RecoveryArgs, context: &Context, fault: Fault) -> Result<Exit, Failure> {
    let bound = bound(args, context, fault)?;
    let mut cluster = Cluster::start(context, &["one", "two"], 1)?;
    let client = cluster.client()?;
    let mut meeting = Meeting::open(cluster.dir())?;
    let mut times = Vec::new();
    let mut wrong = Vec::new();
    for _ in 0..args.runs {
        let (time, complaint) = one(args, &mut cluster, &client, &mut meeting, fault)?;
        times.push(time);
        wrong.extend(complaint);
        cluster.revive_workers()?;
        cluster.wait_until_ready()?;
    }
    report(context, fault, Stats::of(times), bound, wrong)
}

/// Silence is noticed after the heartbeat TTL; a closed connection after the task's patience.
fn bound(args: &RecoveryArgs, context: &Context, fault: Fault) -> Result<Millis, Failure> {
    let timings = context.settings.policy()?.settings();
    let noticed = match fault {
        Fault::Kill => args.patience.unwrap_or(timings.disconnect_grace),
        Fault::Freeze => timings.heartbeat_ttl,
    };
    Ok(Millis(noticed.0 + RESTART.0))
}

/// One fault: nanoseconds from it to the next start, and what was wrong after it.
fn one(
    args: &RecoveryArgs,
    cluster: &mut Cluster,
    client: &Client,
    meeting: &mut Meeting,
    fault: Fault,
) -> Result<(u64, Option<String>), Failure> {
    let mut task = Ledger::new(cluster.dir(), 0, 0).new_task(Some(meeting.path()))?;
    task.patience_ms = args.patience.map(|patience| patience.0);
    let id = client.submit(&task)?.id;
    let mut first = meeting.wait_for(&id, 1, START_LIMIT)?;
    let worker = client.task(&id)?.task.worker.unwrap_or_default();
    let signal = match fault {
        Fault::Kill => Signal::SIGKILL,
        Fault::Freeze => Signal::SIGSTOP,
    };
    let at = monotonic_ns();
    cluster.signal_worker(&worker, signal)?;
    let mut second = meeting
        .wait_for(&id, first.start.attempt + 1, START_LIMIT)
        .map_err(|failure| with_story(client, &id, failure))?;
    let time = second.start.at_ns.saturating_sub(at);
    if fault == Fault::Freeze {
        cluster.signal_worker(&worker, Signal::SIGCONT)?;
    }
    let mut complaints = Vec::new();
    if !first.wait_until_gone(START_LIMIT) {
        complaints.push("the first process was not stopped".to_owned());
    }
    second.let_go();
    let task = client.wait(&id, None)?.expect("without a limit it waits for the end");
    let ended = task.attempts.iter().filter(|attempt| attempt.state == "ENDED");
    let ended: Vec<u32> = ended.map(|attempt| attempt.attempt).collect();
    if task.task.status != "COMPLETED" || ended != [second.start.attempt] {
        complaints.push(format!("{}, with outcomes of attempts {ended:?}", task.task.status));
    }
    let complaint =
        (!complaints.is_empty()).then(|| format!("task {id}: {}", complaints.join(", ")));
    Ok((time, complaint))
}

/// A start that does not come says nothing by itself: what the master knows of the task is added, while there still
/// is a master to ask.
fn with_story(client: &Client, id: &str, failure: Failure) -> Failure {
    let known = match (client.task(id), client.workers()) {
        (Ok(task), Ok(workers)) => {
            let events = task.events.iter().map(|event| format!("{event:?}"));
            let events: Vec<String> = events.collect();
            format!("{}; workers {:?}; {}", task.task.status, workers.workers, events.join("; "))
        }
        (Err(error), _) | (_, Err(error)) => format!("and the master does not tell more: {error}"),
    };
    Failure::new(failure.exit, format!("{}: {known}", failure.message))
}

fn report(
    context: &Context,
    fault: Fault,
    stats: Stats,
    bound: Millis,
    wrong: Vec<String>,
) -> Result<Exit, Failure> {
    let fault_name = match fault {
        Fault::Kill => "kill-worker",
        Fault::Freeze => "freeze-worker",
    };
    let exit = if wrong.is_empty() { Exit::Done } else { Exit::InvariantViolated };
    match context.format {
        Format::Json => output::json(&Document {
            bench: "recovery",
            fault: fault_name,
            stats,
            bound_ms: bound.0,
            wrong,
        }),
        Format::Table => {
            let (heading, row) = stats.table();
            output::table(&heading, &[row]);
            let what = match fault {
                Fault::Kill => "the task's patience (else the disconnect grace)",
                Fault::Freeze => "the heartbeat TTL",
            };
            output::data(&format!(
                "bound {} ms: {what}, and {} ms to start again",
                bound.0, RESTART.0
            ));
            for complaint in &wrong {
                output::data(&format!("WRONG {complaint}"));
            }
        }
    }
    Ok(exit)
}
