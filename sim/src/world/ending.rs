//! How a history ends: everything is over and at rest, or the bound is passed, or nothing moves on.

use tenure_core::ids::TaskId;

use super::{Coming, ORDER_TIMEOUT, World};
use crate::invariants::{Property, ends};

/// So many steps without an end are a livelock, whatever the time says.
const STEPS_AT_MOST: u64 = 60_000;
/// So many steps at one instant are a busy loop.
const STEPS_AT_ONCE: u32 = 2_000;

impl World {
    pub(super) fn look_at_the_end(&mut self) {
        if self.oracle.violation().is_some() {
            self.done = true;
            return;
        }
        if self.steps > STEPS_AT_MOST || self.steps_at_once > STEPS_AT_ONCE {
            self.oracle.note(Property::Ends, self.now, None, Err("livelock: steps without an end"));
            self.done = true;
            return;
        }
        if self.resting {
            return;
        }
        if self.is_at_rest() {
            self.begin_rest();
            return;
        }
        let ends = ends::check(self.now, self.healed, self.bound);
        self.oracle.note(Property::Ends, self.now, self.open_task(), ends);
    }

    fn is_at_rest(&self) -> bool {
        self.pending == 0
            && self.over == self.scenario.tasks.len()
            && self.unacknowledged == 0
            && self.client.is_content()
            && self.processes.iter().all(|process| process.ended)
    }

    fn begin_rest(&mut self) {
        self.resting = true;
        let lost = self.oracle.none_lost.at_rest(&self.table);
        self.oracle.note(Property::NoneLost, self.now, None, lost);
        // Only where a key still names what is over must a heartbeat pass to see that nobody extends it.
        if self.oracle.no_leak.begin_rest(self.now, &self.leases) {
            self.after(2 * ORDER_TIMEOUT, Coming::RestIsOver);
        } else {
            self.done = true;
        }
    }

    /// The first look comes when orders under way have arrived, the second more than a heartbeat later.
    pub(super) fn rest_is_over(&mut self) {
        let first = self.oracle.no_leak.is_first_look();
        if first {
            if self.oracle.no_leak.begin_rest(self.now, &self.leases) {
                let beat = self.scenario.policy.settings().heartbeat.0;
                self.after(beat + beat / 4, Coming::RestIsOver);
            } else {
                self.done = true;
            }
            return;
        }
        let leak = self.oracle.no_leak.end_rest(self.now, &self.leases);
        self.oracle.note(Property::NoLeak, self.now, None, leak);
        self.done = true;
    }

    fn open_task(&self) -> Option<TaskId> {
        let open = self.table.entries().find(|entry| !entry.row.status.is_terminal());
        open.map(|entry| entry.row.task)
    }
}
