//! Makes a failing history as small as it goes: fewer faults, milder ones, earlier ones, the same violation.

use tenure_core::rules::Rules;

use crate::choices::{Choices, Injection};
use crate::explore::Found;
use crate::faults::Fault;
use crate::scenario::Scenario;
use crate::world::World;

/// So many tries at most: enough for any plan of a small world.
const TRIES: u32 = 4_000;

/// The smallest history that violates the same property.
#[must_use]
pub fn shrink(scenario: &Scenario, rules: Rules, found: &Found) -> Found {
    let mut shrinker = Shrinker { scenario, rules, best: found.clone(), tries: TRIES };
    while shrinker.drop_faults() || shrinker.make_milder() || shrinker.move_earlier() {}
    shrinker.best
}

struct Shrinker<'a> {
    scenario: &'a Scenario,
    rules: Rules,
    best: Found,
    tries: u32,
}

impl Shrinker<'_> {
    /// Whether this plan violates the same; if so it is the best so far.
    fn try_plan(&mut self, plan: Vec<Injection>) -> bool {
        if self.tries == 0 {
            return false;
        }
        self.tries -= 1;
        let choices = Choices::plan(plan);
        let mut world = World::new(self.scenario.clone(), self.rules, choices);
        let ending = crate::explore::run_history(&mut world);
        let injected = world.choices().injected().to_vec();
        match ending.violation {
            Some(violation) if violation.property == self.best.violation.property => {
                self.best = Found { plan: injected, violation };
                true
            }
            Some(_) | None => false,
        }
    }

    fn drop_faults(&mut self) -> bool {
        for place in (0..self.best.plan.len()).rev() {
            let mut plan = self.best.plan.clone();
            plan.remove(place);
            if self.try_plan(plan) {
                return true;
            }
        }
        false
    }

    /// Kinds have an order: the earlier in the list, the easier to understand.
    fn make_milder(&mut self) -> bool {
        for place in 0..self.best.plan.len() {
            let now = self.best.plan[place].fault;
            for fault in Fault::ALL.into_iter().take_while(|fault| mildness(*fault) < mildness(now))
            {
                let mut plan = self.best.plan.clone();
                plan[place].fault = fault;
                if self.try_plan(plan) {
                    return true;
                }
            }
        }
        false
    }

    /// Halves the distance to the beginning, then steps.
    fn move_earlier(&mut self) -> bool {
        for place in 0..self.best.plan.len() {
            let now = self.best.plan[place].point;
            let floor = place.checked_sub(1).map_or(0, |before| self.best.plan[before].point + 1);
            let mut distance = now.saturating_sub(floor);
            while distance > 0 {
                let mut plan = self.best.plan.clone();
                plan[place].point = now - distance;
                if self.try_plan(plan)
                    && self.best.plan.len() > place
                    && self.best.plan[place].point < now
                {
                    return true;
                }
                distance /= 2;
            }
        }
        false
    }
}

fn mildness(fault: Fault) -> usize {
    fault as usize
}
