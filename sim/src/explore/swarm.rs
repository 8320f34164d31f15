//! Many seeds, one history each.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::report::{Report, ViolationReport};
use super::search::Tally;
use super::{ExploreOptions, Found};
use crate::choices::Choices;
use crate::driver::{Stopwatch, on_threads};
use crate::random::{SwarmOptions, drawn_scenario, history};
use crate::replay::Replay;
use crate::scenario::ScenarioName;
use crate::shrink;
use crate::world::World;

/// A run over many seeds.
pub(crate) struct Swarm;

impl Swarm {
    pub(crate) fn run(options: &SwarmOptions) -> Report {
        let watch = Stopwatch::start(options.budget);
        let next = AtomicU64::new(0);
        let stopped = AtomicBool::new(false);
        let parts = on_threads(options.jobs, || work(options, &next, &stopped, &watch));
        let mut total = Tally::default();
        let mut seeds = Vec::new();
        for (part, mut found) in parts {
            total.add(part);
            seeds.append(&mut found);
        }
        total.complete = !stopped.load(Ordering::Relaxed);
        total.elapsed = watch.elapsed();
        seeds.sort_by_key(|(seed, found)| (found.violation.property, *seed));
        seeds.dedup_by_key(|(_, found)| found.violation.property);
        let mut report = Report::new(&as_explored(options), &total);
        for (seed, found) in &seeds {
            report.violations.push(reported(options, *seed, found));
        }
        report
    }
}

fn work(
    options: &SwarmOptions,
    next: &AtomicU64,
    stopped: &AtomicBool,
    watch: &Stopwatch,
) -> (Tally, Vec<(u64, Found)>) {
    let mut tally = Tally::default();
    let mut found = Vec::new();
    while !stopped.load(Ordering::Relaxed) {
        let place = next.fetch_add(1, Ordering::Relaxed);
        if place >= options.seeds {
            break;
        }
        let seed = options.seed.wrapping_add(place);
        let (mut world, ending) = history(seed, options.faults, options.rules);
        tally.count(&mut world, &ending);
        tally.coverage.add(world.coverage());
        if let Some(violation) = ending.violation {
            found.push((seed, Found { plan: world.choices().injected().to_vec(), violation }));
        }
        if watch.is_over() || (options.stop_at_first && ending.violation.is_some()) {
            stopped.store(true, Ordering::Relaxed);
        }
    }
    (tally, found)
}

fn as_explored(options: &SwarmOptions) -> ExploreOptions {
    ExploreOptions {
        scenario: ScenarioName::Dispatch,
        faults: options.faults,
        // Not every kind is on in every seed, so empty cells mean nothing here.
        kinds: crate::faults::FaultSet::NONE,
        seed: options.seed,
        budget: options.budget,
        jobs: options.jobs,
        stop_at_first: options.stop_at_first,
        rules: options.rules,
    }
}

fn reported(options: &SwarmOptions, seed: u64, found: &Found) -> ViolationReport {
    let scenario = drawn_scenario(seed);
    let shrunk = shrink::shrink(&scenario, options.rules, found);
    let mut replay = Replay::new(ScenarioName::Dispatch, seed, &shrunk);
    replay.drawn = true;
    let mut world = World::new(scenario, options.rules, Choices::plan(shrunk.plan.clone()));
    world.record();
    let ending = world.run();
    let lines = crate::timeline::render(&world.take_lines(), ending.violation);
    ViolationReport::new(found, &shrunk, replay, lines)
}
