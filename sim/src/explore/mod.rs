//! Exhaustive exploration: every placement of at most N faults in a small world.
//!
//! The tree of choices is cut by the first fault: where it is placed and which it is. Each of these branches
//! is searched depth-first by replay, by whichever thread is free, so totals and the combined hash are
//! the same for any number of threads.

mod parallel;
pub mod report;
mod search;
mod swarm;

use std::time::Duration;

use tenure_core::rules::Rules;

use crate::choices::{Choices, Injection};
use crate::faults::FaultSet;
use crate::invariants::Violation;
use crate::replay::Replay;
use crate::scenario::{Scenario, ScenarioName};
use crate::shrink;
use crate::world::World;

pub use report::{Outcome, Report, ViolationReport};
pub(crate) use search::run_history;
pub(crate) use swarm::Swarm;

/// What to explore, and how long.
#[derive(Debug, Clone)]
pub struct ExploreOptions {
    /// Which world.
    pub scenario: ScenarioName,
    /// At most so many faults in one history.
    pub faults: u32,
    /// Only these kinds of faults.
    pub kinds: FaultSet,
    /// Spreads the nodes of the world in time.
    pub seed: u64,
    /// Stop after this long; the report says that it is not complete.
    pub budget: Option<Duration>,
    /// Threads.
    pub jobs: usize,
    /// Stop at the first violation.
    pub stop_at_first: bool,
    /// Which rules of the protocol hold.
    pub rules: Rules,
}

impl Default for ExploreOptions {
    fn default() -> ExploreOptions {
        ExploreOptions {
            scenario: ScenarioName::Dispatch,
            faults: 1,
            kinds: FaultSet::ALL,
            seed: 1,
            budget: None,
            jobs: 1,
            stop_at_first: true,
            rules: Rules::ALL,
        }
    }
}

impl ExploreOptions {
    fn world(&self) -> Scenario {
        Scenario { seed: self.seed, ..Scenario::named(self.scenario) }
    }
}

/// A history in which something was violated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its faults.
    pub plan: Vec<Injection>,
    /// What was violated.
    pub violation: Violation,
}

/// Runs every history of the options, and shrinks what was found.
#[must_use]
pub fn explore(options: &ExploreOptions) -> Report {
    let tally = parallel::run(options);
    let mut report = Report::new(options, &tally);
    for found in &tally.found {
        let shrunk = shrink::shrink(&options.world(), options.rules, found);
        let replay = Replay::new(options.scenario, options.seed, &shrunk);
        let lines = timeline_of(options, &shrunk.plan);
        report.violations.push(ViolationReport::new(found, &shrunk, replay, lines));
    }
    report
}

fn timeline_of(options: &ExploreOptions, plan: &[Injection]) -> Vec<String> {
    let mut world = World::new(options.world(), options.rules, Choices::plan(plan.to_vec()));
    world.record();
    let ending = world.run();
    crate::timeline::render(&world.take_lines(), ending.violation)
}
