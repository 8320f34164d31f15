//! The master is killed while tasks run on live workers, and started again.

use std::time::Duration;

use serde::Serialize;

use super::cluster::Cluster;
use super::ledger::{Count, Ledger};
use super::meeting::Meeting;
use super::stats::Stats;
use super::task::monotonic_ns;
use super::{Context, RecoveryArgs};
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Long enough for a kill in their midst.
const LINES: u32 = 50;
const PACE_MS: u64 = 5;
const START_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Serialize)]
struct Document {
    bench: &'static str,
    fault: &'static str,
    #[serde(flatten)]
    stats: Stats,
    #[serde(flatten)]
    count: Count,
}

/// Measures `args.runs` times, from the kill until all workers are back at the next master.
pub(super) fn run(args: &RecoveryArgs, context: &Context) -> Result<Exit, Failure> {
    let tasks = args.tasks.unwrap_or(10);
    let mut cluster = Cluster::start(context, &["one", "two"], tasks.div_ceil(2))?;
    let mut meeting = Meeting::open(cluster.dir())?;
    let ledger = Ledger::new(cluster.dir(), LINES, PACE_MS);
    let mut times = Vec::new();
    let mut total = Count::default();
    for _ in 0..args.runs {
        let (time, count) = one(args, tasks, &mut cluster, &mut meeting, &ledger)?;
        times.push(time);
        total.add(count);
    }
    Ok(report(context, Stats::of(times), total))
}

fn one(
    args: &RecoveryArgs,
    tasks: u32,
    cluster: &mut Cluster,
    meeting: &mut Meeting,
    ledger: &Ledger,
) -> Result<(u64, Count), Failure> {
    let client = cluster.client()?;
    let mut task = ledger.new_task(Some(meeting.path()))?;
    task.patience_ms = args.patience.map(|patience| patience.0);
    let mut ids = Vec::new();
    for _ in 0..tasks {
        ids.push(client.submit(&task)?.id);
    }
    let mut guests = Vec::new();
    for id in &ids {
        guests.push(meeting.wait_for(id, 1, START_LIMIT)?);
    }
    let at = monotonic_ns();
    cluster.kill_master();
    cluster.start_master()?;
    cluster.wait_until_ready()?;
    let time = monotonic_ns() - at;
    for guest in &mut guests {
        guest.let_go();
    }
    Ok((time, ledger.check(&client, &ids)?))
}

fn report(context: &Context, stats: Stats, count: Count) -> Exit {
    let exit = if count.wrong.is_empty() { Exit::Done } else { Exit::InvariantViolated };
    match context.format {
        Format::Json => {
            output::json(&Document { bench: "recovery", fault: "kill-master", stats, count });
        }
        Format::Table => {
            let (mut heading, mut row) = stats.table();
            heading.extend(["TASKS", "STARTS", "COMMITS", "LINES"]);
            row.extend(
                [count.tasks, count.starts, count.commits, count.lines].map(|n| n.to_string()),
            );
            output::table(&heading, &[row]);
            output::data(&format!(
                "measured from the kill until all workers are back; each task printed lines 1 to {LINES}"
            ));
            for complaint in &count.wrong {
                output::data(&format!("WRONG {complaint}"));
            }
        }
    }
    exit
}
