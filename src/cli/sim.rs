//! `tenure sim`: explores crashes, pauses and losses in virtual time, and shows a history again.

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use clap::{Args, Subcommand};
use tenure_core::rules::Rules;
use tenure_core::time::Millis;
use tenure_sim::faults::{Fault, FaultSet};
use tenure_sim::{ExploreOptions, Outcome, Replay, Report, ScenarioName, SwarmOptions};

use super::Context;
use crate::duration;
use crate::exit::{Exit, Failure};
use crate::output::{self, Format};

/// Options of `sim`.
#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    #[command(subcommand)]
    command: SimCommand,
}

#[derive(Debug, Subcommand)]
enum SimCommand {
    /// Run every placement of at most N faults in a small world; or random faults in drawn worlds
    Explore(ExploreArgs),
    /// Run one history again and print its timeline
    Replay(ReplayArgs),
}

#[derive(Debug, Args)]
struct ExploreArgs {
    /// Which world
    #[arg(long, default_value = "dispatch", value_parser = scenario)]
    scenario: ScenarioName,
    /// Faults in one history at most [default: 1; 6 with --random]
    #[arg(long)]
    faults: Option<u32>,
    /// Only this kind of fault; may be repeated
    #[arg(long = "kind", value_parser = kind)]
    kinds: Vec<Fault>,
    /// Spreads the nodes in time; with --random, the first world
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Stop after this time, with exit code 11 if not everything was seen
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    budget: Option<Millis>,
    /// Threads [default: one per CPU]
    #[arg(long)]
    jobs: Option<NonZeroUsize>,
    /// Go on after the first violation
    #[arg(long)]
    all: bool,
    /// Larger worlds, drawn from seeds
    #[arg(long, conflicts_with_all = ["scenario", "kinds"])]
    random: bool,
    /// How many worlds are drawn [default: 1000, or as many as the budget lets]
    #[arg(long, requires = "random")]
    seeds: Option<u64>,
}

#[derive(Debug, Args)]
struct ReplayArgs {
    /// What `explore` printed: a file, or the JSON itself
    replay: String,
}

fn scenario(text: &str) -> Result<ScenarioName, String> {
    ScenarioName::of_text(text).ok_or_else(|| {
        let names: Vec<_> = ScenarioName::ALL.iter().map(|name| name.text()).collect();
        format!("there is no scenario `{text}`; there are {}", names.join(", "))
    })
}

fn kind(text: &str) -> Result<Fault, String> {
    Fault::of_name(text).ok_or_else(|| {
        let names: Vec<_> = Fault::ALL.iter().map(|fault| fault.name()).collect();
        format!("there is no fault `{text}`; there are {}", names.join(", "))
    })
}

/// Explores or shows.
pub(crate) fn run(args: &SimArgs, context: &Context) -> Result<Exit, Failure> {
    match &args.command {
        SimCommand::Explore(args) => Ok(explore(args, context)),
        SimCommand::Replay(args) => replay(args, context),
    }
}

fn explore(args: &ExploreArgs, context: &Context) -> Exit {
    let report = if args.random { swarm(args) } else { exhaustive(args) };
    match context.format {
        Format::Json => output::json(&report),
        Format::Table => output::data(&report.text(!args.random)),
    }
    match report.outcome {
        Outcome::Violated => Exit::InvariantViolated,
        // A drawn world more or less is no gap; a placement is.
        Outcome::BudgetUsedUp if args.random => Exit::Done,
        Outcome::BudgetUsedUp => Exit::BudgetUsed,
        Outcome::Clean if report.empty_cells.is_empty() => Exit::Done,
        Outcome::Clean => Exit::InvariantViolated,
    }
}

fn exhaustive(args: &ExploreArgs) -> Report {
    tenure_sim::explore(&ExploreOptions {
        scenario: args.scenario,
        faults: args.faults.unwrap_or(1),
        kinds: if args.kinds.is_empty() { FaultSet::ALL } else { FaultSet::of(&args.kinds) },
        seed: args.seed,
        budget: budget(args),
        jobs: jobs(args),
        stop_at_first: !args.all,
        rules: Rules::ALL,
    })
}

fn swarm(args: &ExploreArgs) -> Report {
    let usual = SwarmOptions::default();
    let unlimited = if args.budget.is_some() { u64::MAX - args.seed } else { usual.seeds };
    tenure_sim::swarm(&SwarmOptions {
        seed: args.seed,
        seeds: args.seeds.unwrap_or(unlimited),
        faults: args.faults.unwrap_or(usual.faults),
        budget: budget(args),
        jobs: jobs(args),
        stop_at_first: !args.all,
        rules: Rules::ALL,
    })
}

fn budget(args: &ExploreArgs) -> Option<Duration> {
    args.budget.map(|budget| Duration::from_millis(budget.0))
}

fn jobs(args: &ExploreArgs) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    args.jobs.map_or_else(all, NonZeroUsize::get)
}

fn replay(args: &ReplayArgs, context: &Context) -> Result<Exit, Failure> {
    let text = args.replay.trim_start();
    let read = if text.starts_with('{') {
        Replay::of_json(text)
    } else {
        Replay::of_file(Path::new(text))
    };
    let replay = read.map_err(|error| Failure::usage(error.to_string()))?;
    let done = tenure_sim::replay(&replay, Rules::ALL);
    let violated = done.violation.map(|violation| violation.to_string());
    match context.format {
        Format::Json => output::json(&serde_json::json!({
            "violated": violated,
            "trace_hash": format!("{:016x}", done.hash),
            "faults": done.faults,
            "lasted_ms": done.lasted.0,
            "timeline": done.timeline,
        })),
        Format::Table => {
            output::data(&done.timeline.join("\n"));
            output::data(&format!("trace hash {:016x}, {} faults", done.hash, done.faults));
            let planned = replay.choices.len();
            if done.faults < planned {
                output::note(&format!(
                    "only {} of {planned} faults happened: the program has changed since",
                    done.faults
                ));
            }
            output::data(&violated.as_deref().map_or("nothing violated".to_owned(), |violation| {
                format!("VIOLATED {violation}")
            }));
        }
    }
    Ok(if violated.is_some() { Exit::InvariantViolated } else { Exit::Done })
}
