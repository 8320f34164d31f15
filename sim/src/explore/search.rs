//! Depth-first search by replay of the list of choices.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tenure_core::time::{Millis, Time};

use super::Found;
use crate::choices::Pick;
use crate::coverage::Coverage;
use crate::invariants::{Property, Violation};
use crate::world::{Ending, World};

/// So many violations are kept of one run; more would be the same again.
const KEPT: usize = 8;

/// What many histories came to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) histories: u64,
    pub(crate) steps: u64,
    pub(crate) faults: u64,
    /// Sum of the hashes of the histories: the order in which they ran does not matter.
    pub(crate) hash: u64,
    pub(crate) longest: Millis,
    pub(crate) violations: u64,
    pub(crate) found: Vec<Found>,
    pub(crate) coverage: Coverage,
    pub(crate) complete: bool,
    pub(crate) elapsed: std::time::Duration,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        self.histories += other.histories;
        self.steps += other.steps;
        self.faults += other.faults;
        self.hash = self.hash.wrapping_add(other.hash);
        self.longest = self.longest.max(other.longest);
        self.violations += other.violations;
        self.coverage.add(&other.coverage);
        self.found.extend(other.found);
        self.keep_the_shortest();
    }

    pub(crate) fn count(&mut self, world: &mut World, ending: &Ending) {
        self.histories += 1;
        self.steps += ending.steps;
        self.faults += u64::from(ending.faults);
        self.hash = self.hash.wrapping_add(ending.hash);
        self.longest = self.longest.max(ending.lasted);
        if let Some(violation) = ending.violation {
            self.violations += 1;
            self.found.push(Found { plan: world.choices().injected().to_vec(), violation });
            self.keep_the_shortest();
        }
    }

    /// One of each property, fewest faults first: any choice that does not depend on the order of running.
    fn keep_the_shortest(&mut self) {
        self.found.sort_by(|one, other| {
            let key = |found: &Found| (found.violation.property, found.plan.len());
            key(one).cmp(&key(other)).then_with(|| one.plan.cmp(&other.plan))
        });
        self.found.dedup_by_key(|found| found.violation.property);
        self.found.truncate(KEPT);
    }
}

/// Runs the history of the world's choices. A panic of the core is a violation like any other.
pub(crate) fn run_history(world: &mut World) -> Ending {
    catch_unwind(AssertUnwindSafe(|| world.run())).unwrap_or(PANICKED)
}

const PANICKED: Ending = Ending {
    violation: Some(Violation {
        property: Property::Contract,
        at: Time(0),
        task: None,
        what: "the core panicked; its message is on stderr",
    }),
    steps: 0,
    hash: 0,
    lasted: Millis::ZERO,
    faults: 0,
};

/// One branch of the tree: no fault before this point, then this one.
#[derive(Debug, Clone)]
pub(crate) struct Branch {
    pub(crate) prefix: Vec<Pick>,
}

/// The branches of a history without faults.
pub(crate) fn branches(trail: &[Pick]) -> Vec<Branch> {
    let mut branches = Vec::new();
    for (point, pick) in trail.iter().enumerate() {
        for value in 1..=pick.offered.len() as u8 {
            let mut prefix = trail[..=point].to_vec();
            prefix[point].value = value;
            branches.push(Branch { prefix });
        }
    }
    branches
}

/// Runs every history of a branch; `go_on` is asked before each.
pub(crate) fn search(
    world: &mut World,
    branch: &Branch,
    faults: u32,
    tally: &mut Tally,
    go_on: &mut dyn FnMut() -> bool,
) -> bool {
    let base = branch.prefix.len();
    world.choices().trail.clone_from(&branch.prefix);
    loop {
        if !go_on() {
            return false;
        }
        world.choices().rewind(faults);
        let ending = run_history(world);
        tally.count(world, &ending);
        if !advance(world, base) {
            return true;
        }
    }
}

/// Moves to the next list of choices; false if the branch is done.
fn advance(world: &mut World, base: usize) -> bool {
    let points = world.choices().points();
    let trail = &mut world.choices().trail;
    trail.truncate(points.max(base));
    while trail.len() > base {
        let last = trail.last_mut().expect("longer than its base");
        if u32::from(last.value) < last.offered.len() {
            last.value += 1;
            return true;
        }
        trail.pop();
    }
    false
}
