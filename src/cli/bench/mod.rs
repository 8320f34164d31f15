//! `tenure bench recovery`: starts real processes, kills or freezes one, and measures how soon the
//! work goes on; and counts, that nothing was lost or done twice.

mod cluster;
mod ledger;
mod meeting;
mod on_master;
mod on_worker;
mod stats;
mod storm;
pub(crate) mod task;

use clap::{Args, Subcommand, ValueEnum};
use tenure_core::time::Millis;

use super::Context;
use crate::duration;
use crate::exit::{Exit, Failure};

/// What to measure.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// From the kill of a worker or master to the next start of the work
    Recovery(RecoveryArgs),
}

/// A kind of process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Victim {
    /// The one that runs the task.
    Worker,
    /// The one that leads.
    Master,
}

/// Options of `bench recovery`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("fault").required(true).args(["kill", "freeze"]))]
pub(crate) struct RecoveryArgs {
    /// Kill it with -9
    #[arg(long, value_enum)]
    kill: Option<Victim>,
    /// Stop it with SIGSTOP, and let it go on later
    #[arg(long, value_parser = ["worker"])]
    freeze: Option<String>,
    /// How often
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: u32,
    /// Tasks that run meanwhile, with --kill master; of a storm: at least so many in all [default: 10, of a
    /// storm 2000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    tasks: Option<u32>,
    /// How long a task's worker may be unreachable, or none [default: the disconnect grace]
    #[arg(long, value_name = "TIME|none", value_parser = patience)]
    patience: Option<Millis>,
    /// Kill and restart the master every 300 ms to 2 s while tasks are handed in
    #[arg(long, requires = "kill")]
    storm: bool,
    /// How long the storm lasts
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// What the times of a storm's kills are drawn from [default: the clock]
    #[arg(long)]
    seed: Option<u64>,
}

fn patience(text: &str) -> Result<Millis, String> {
    if text == "none" { Ok(Millis::ZERO) } else { duration::parse(text) }
}

/// Measures.
pub(crate) fn run(command: &BenchCommand, context: &Context) -> Result<Exit, Failure> {
    let BenchCommand::Recovery(args) = command;
    match (args.kill, args.storm) {
        (Some(Victim::Master), true) => storm::run(args, context),
        (Some(Victim::Worker), true) => {
            Err(Failure::usage("--storm kills masters; use it with --kill master"))
        }
        (Some(Victim::Master), false) => on_master::run(args, context),
        (Some(Victim::Worker), false) => on_worker::run(args, context, on_worker::Fault::Kill),
        (None, _) => on_worker::run(args, context, on_worker::Fault::Freeze),
    }
}
