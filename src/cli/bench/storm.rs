//! The master is killed and started again and again while tasks are handed in.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use tenure_adapters::http::submission::random_text;
use tenure_core::random::Stream;

use super::cluster::Cluster;
use super::ledger::{Count, Ledger};
use super::{Context, RecoveryArgs};
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// How long a master lives: from, and how much more at most.
const LIFE_MS: (u64, u64) = (300, 1_700);
/// Who hand in at a time.
const CLIENTS: u32 = 4;
const LINES: u32 = 5;
const PACE_MS: u64 = 5;
/// Tasks at least, unless told otherwise.
const TASKS: u32 = 2_000;
const SLOTS: u32 = 8;

#[derive(Debug, Serialize)]
struct Document {
    bench: &'static str,
    fault: &'static str,
    seed: String,
    kills: u64,
    duration_ms: u64,
    #[serde(flatten)]
    count: Count,
}

/// Runs the storm, then counts.
pub(super) fn run(args: &RecoveryArgs, context: &Context) -> Result<Exit, Failure> {
    let seed = args.seed.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(now.as_nanos() & u128::from(u64::MAX)).unwrap_or(0)
    });
    let mut cluster = Cluster::start(context, &["one", "two"], SLOTS)?;
    let ledger = Ledger::new(cluster.dir(), LINES, PACE_MS);
    let length = Duration::from_secs(args.seconds);
    let clients = Clients {
        client: cluster.client()?,
        wanted: args.tasks.unwrap_or(TASKS),
        begin: Instant::now(),
        length,
        handed_in: AtomicU32::new(0),
    };
    let (kills, ids) = thread::scope(|scope| {
        let all: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(|| clients.hand_in(&ledger))).collect();
        let kills = storm(&mut cluster, length, &mut Stream::new(seed));
        let mut ids = Vec::new();
        for client in all {
            ids.extend(client.join().expect("clients do not panic")?);
        }
        Ok::<_, Failure>((kills?, ids))
    })?;
    let duration_ms = u64::try_from(clients.begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    let count = ledger.check(&clients.client, &ids)?;
    Ok(report(context, seed, kills, duration_ms, count))
}

/// Kills and restarts for this long; gives the number of kills. The last master stays.
fn storm(cluster: &mut Cluster, length: Duration, stream: &mut Stream) -> Result<u64, Failure> {
    let end = Instant::now() + length;
    let mut kills = 0;
    while Instant::now() < end {
        thread::sleep(Duration::from_millis(LIFE_MS.0 + stream.up_to(LIFE_MS.1)));
        cluster.kill_master();
        kills += 1;
        cluster.launch_master()?;
    }
    Ok(kills)
}

/// Threads that hand tasks in, each with a key of its own, evenly over the storm.
struct Clients {
    client: Client,
    wanted: u32,
    begin: Instant,
    length: Duration,
    handed_in: AtomicU32,
}

impl Clients {
    fn hand_in(&self, ledger: &Ledger) -> Result<Vec<String>, Failure> {
        let mut ids = Vec::new();
        loop {
            let number = self.handed_in.fetch_add(1, Ordering::Relaxed);
            if number >= self.wanted {
                return Ok(ids);
            }
            let due = self.begin + self.length * number / self.wanted;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let mut task = ledger.new_task(None)?;
            task.idempotency_key = Some(random_text());
            ids.push(self.client.submit(&task)?.id);
        }
    }
}

fn report(context: &Context, seed: u64, kills: u64, duration_ms: u64, count: Count) -> Exit {
    let exit = if count.wrong.is_empty() { Exit::Done } else { Exit::InvariantViolated };
    if context.format == Format::Json {
        output::json(&Document {
            bench: "recovery",
            fault: "storm",
            seed: seed.to_string(),
            kills,
            duration_ms,
            count,
        });
        return exit;
    }
    let numbers = [count.tasks, count.starts, count.commits, count.lines].map(|n| n.to_string());
    let row = std::iter::once(kills.to_string()).chain(numbers).collect();
    output::table(&["KILLS", "TASKS", "STARTS", "COMMITS", "LINES"], &[row]);
    output::data(&format!("{duration_ms} ms, --seed {seed}; each task printed lines 1 to {LINES}"));
    for complaint in &count.wrong {
        output::data(&format!("WRONG {complaint}"));
    }
    exit
}
