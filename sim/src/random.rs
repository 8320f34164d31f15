//! Larger worlds drawn from seeds: each kind of fault is off with one half, and the sizes, runs and timings
//! are drawn too.

use std::time::Duration;

use tenure_core::outcome::Verdict;
use tenure_core::policy::{Policy, Settings};
use tenure_core::random::Stream;
use tenure_core::rules::Rules;
use tenure_core::spec::Shape;
use tenure_core::time::Millis;

use crate::choices::Choices;
use crate::explore::{Report, Swarm, run_history};
use crate::faults::{Fault, FaultSet};
use crate::scenario::{Scenario, ScenarioName, TaskPlan, plain_task, small_world_policy};
use crate::world::World;

/// Which seeds to run, and how long.
#[derive(Debug, Clone)]
pub struct SwarmOptions {
    /// The first seed.
    pub seed: u64,
    /// How many seeds.
    pub seeds: u64,
    /// At most so many faults in one history.
    pub faults: u32,
    /// Stop after this long.
    pub budget: Option<Duration>,
    /// Threads.
    pub jobs: usize,
    /// Stop at the first violation.
    pub stop_at_first: bool,
    /// Which rules of the protocol hold.
    pub rules: Rules,
}

impl Default for SwarmOptions {
    fn default() -> SwarmOptions {
        SwarmOptions {
            seed: 1,
            seeds: 1_000,
            faults: 6,
            budget: None,
            jobs: 1,
            stop_at_first: true,
            rules: Rules::ALL,
        }
    }
}

/// Runs one history for each seed, and shrinks what was found.
#[must_use]
pub fn swarm(options: &SwarmOptions) -> Report {
    Swarm::run(options)
}

/// The history of one seed.
pub(crate) fn history(seed: u64, faults: u32, rules: Rules) -> (World, crate::world::Ending) {
    let mut stream = Stream::new(seed ^ 0x5EED_FA17);
    let mut kinds = FaultSet::NONE;
    for fault in Fault::ALL {
        if stream.up_to(1) == 0 {
            kinds = kinds.and(FaultSet::of(&[fault]));
        }
    }
    let rarity = 10 + stream.up_to(190);
    let choices = Choices::draw(stream.next_u64(), faults, kinds, rarity);
    let mut world = World::new(drawn_scenario(seed), rules, choices);
    let ending = run_history(&mut world);
    (world, ending)
}

/// The world of one seed.
#[must_use]
pub fn drawn_scenario(seed: u64) -> Scenario {
    let mut stream = Stream::new(seed);
    let masters = 1 + stream.up_to(2) as usize;
    let workers = 1 + stream.up_to(4);
    let tasks = 1 + stream.up_to(7) as u8;
    Scenario {
        name: ScenarioName::Dispatch,
        masters,
        workers: (0..workers).map(|_| drawn_worker(&mut stream)).collect(),
        tasks: (0..tasks).map(|number| drawn_task(number, &mut stream)).collect(),
        policy: drawn_policy(&mut stream),
        seed: stream.next_u64(),
    }
}

fn drawn_worker(stream: &mut Stream) -> Shape {
    Shape { slots: 1 + stream.up_to(2) as u16, ..Shape::default() }
}

fn drawn_task(number: u8, stream: &mut Stream) -> TaskPlan {
    let mut task = plain_task(number);
    task.runs_for = Millis(10 + stream.up_to(990));
    task.submission.limits.priority = stream.up_to(2) as i16;
    for _ in 0..stream.up_to(3).saturating_sub(1) {
        task.verdicts.push(Verdict::Failed);
    }
    if stream.up_to(3) == 0 {
        task.cancel_after = Some(Millis(stream.up_to(500)));
        task.force = stream.up_to(3) == 0;
    }
    if stream.up_to(5) == 0 {
        task.submission.limits.patience = Some(Millis(stream.up_to(3_000)));
    }
    task
}

fn drawn_policy(stream: &mut Stream) -> Policy {
    let base = small_world_policy().settings();
    let beats = 3 + stream.up_to(2);
    let settings = Settings {
        heartbeat_ttl: Millis(base.heartbeat.0 * beats + base.heartbeat.0 / 2),
        disconnect_grace: Millis(stream.up_to(1_000)),
        accept_tries: 1 + stream.up_to(2) as u8,
        started_mark_after: Millis(stream.up_to(1_000)),
        ..base
    };
    Policy::new(settings).unwrap_or_else(|_| small_world_policy())
}
