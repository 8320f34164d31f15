//! `tenure worker`: runs commands for its masters.

use clap::Args;

use super::Context;
use super::interrupt::{self, Signals};
use super::node::{self, Least, Ready, WorkerPlan};
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};
use crate::settings::{Sources, keys};

/// Options of `worker`.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// Masters to try, host:port, with commas between
    #[arg(long, value_name = "ADDRESSES")]
    masters: Option<String>,
    /// Name of this worker; one live process per name [default: the host's name]
    #[arg(long)]
    name: Option<String>,
    /// Tasks that it runs at a time [default: one per CPU]
    #[arg(long, value_name = "N")]
    slots: Option<String>,
    /// GPUs that it hands out
    #[arg(long, value_name = "N")]
    gpus: Option<String>,
    /// What it can do, with commas between
    #[arg(long)]
    labels: Option<String>,
    /// End when stdin ends
    #[arg(long, hide = true)]
    end_with_stdin: bool,
}

impl WorkerArgs {
    /// The settings that these flags are.
    pub(crate) fn add_flags(&self, sources: &mut Sources) {
        sources.flag(keys::MASTERS, "--masters", self.masters.clone());
        sources.flag(keys::NAME, "--name", self.name.clone());
        sources.flag(keys::SLOTS, "--slots", self.slots.clone());
        sources.flag(keys::GPUS, "--gpus", self.gpus.clone());
        sources.flag(keys::LABELS, "--labels", self.labels.clone());
    }
}

/// Works until a signal: the first drains (running tasks finish), a second gives back what still runs, a
/// third ends at once, and the guardian ends what still runs.
pub(crate) fn run(args: &WorkerArgs, context: &Context) -> Result<Exit, Failure> {
    node::start_logging("info");
    let settings = &context.settings;
    let name = settings.text(keys::NAME);
    let dir = node::worker_dir(settings, &name);
    if args.end_with_stdin {
        interrupt::end_with_stdin();
    }
    node::runtime()?.block_on(async {
        let mut signals = Signals::listen()?;
        let masters = settings.list(keys::MASTERS);
        let plan = WorkerPlan {
            name: name.clone(),
            masters,
            dir: dir.clone(),
            checkpoint_dir: node::checkpoint_dir(settings),
            least: Least::default(),
        };
        let worker = node::start_worker(settings, plan).await?;
        let pid = std::process::id();
        match context.format {
            Format::Json => {
                let ready = Ready { server: None, worker_address: None, data_dir: &dir, pid };
                output::json_line(&ready);
            }
            Format::Table => {
                output::note(&format!("worker {name} keeps its records in {}", dir.display()))
            }
        }
        tokio::select! {
            end = worker.closed() => return node::end_of_worker(end),
            _ = signals.next() => {}
        }
        output::note(
            "draining: no new tasks, running ones finish (a second signal gives them back)",
        );
        worker.drain().await;
        tokio::select! {
            end = worker.closed() => return node::end_of_worker(end),
            _ = signals.next() => {}
        }
        output::note("giving back what still runs (a third signal ends at once)");
        worker.drain().await;
        tokio::select! {
            end = worker.closed() => node::end_of_worker(end),
            signal = signals.next() => Ok(Exit::Task(signal.code())),
        }
    })
}
