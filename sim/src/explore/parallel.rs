//! Shares the branches of the tree among threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::ExploreOptions;
use super::search::{Branch, Tally, branches, run_history, search};
use crate::choices::Choices;
use crate::driver::Stopwatch;
use crate::world::World;

/// Looks at the clock once in so many histories.
const LOOK_EVERY: u64 = 64;

/// Runs every history of the options.
pub(super) fn run(options: &ExploreOptions) -> Tally {
    let watch = Stopwatch::start(options.budget);
    let mut first = new_world(options, options.faults);
    let mut total = Tally::default();
    let ending = run_history(&mut first);
    total.count(&mut first, &ending);
    let branches = branches(&first.choices().trail);
    let shared = Shared {
        options,
        branches: &branches,
        next: AtomicUsize::new(0),
        stopped: AtomicBool::new(options.stop_at_first && ending.violation.is_some()),
        watch: &watch,
    };
    for part in crate::driver::on_threads(options.jobs, || work(&shared)) {
        total.add(part);
    }
    total.complete = !shared.stopped.load(Ordering::Relaxed);
    total.elapsed = watch.elapsed();
    total
}

struct Shared<'a> {
    options: &'a ExploreOptions,
    branches: &'a [Branch],
    next: AtomicUsize,
    stopped: AtomicBool,
    watch: &'a Stopwatch,
}

fn new_world(options: &ExploreOptions, faults: u32) -> World {
    World::new(options.world(), options.rules, Choices::search(faults, options.kinds))
}

fn work(shared: &Shared<'_>) -> Tally {
    let options = shared.options;
    let mut world = new_world(options, options.faults);
    let mut tally = Tally::default();
    while let Some(branch) = shared.branches.get(shared.next.fetch_add(1, Ordering::Relaxed)) {
        let mut since_look = 0;
        let mut before = tally.violations;
        let stop_at_first = options.stop_at_first;
        let mut part = Tally::default();
        let done = search(&mut world, branch, options.faults, &mut part, &mut || {
            since_look += 1;
            if since_look % LOOK_EVERY == 0 && shared.watch.is_over() {
                shared.stopped.store(true, Ordering::Relaxed);
            }
            !shared.stopped.load(Ordering::Relaxed)
        });
        before += part.violations;
        tally.add(part);
        if stop_at_first && before > 0 {
            shared.stopped.store(true, Ordering::Relaxed);
        }
        if !done {
            break;
        }
    }
    tally.coverage = world.coverage().clone();
    tally
}
