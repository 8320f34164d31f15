//! Property 10: At rest, once the longest key TTL has passed, no key names a task that is over; and a release ends
//! only its own lease (docs/fencing.md, "Lease").
//!
//! Waiting for the TTL would cost every history as many events again. A key that nobody extends runs out by
//! itself, so it is enough that no key of a task that is over was extended during the last heartbeats.

use tenure_core::ids::{Fence, Holder, TaskId};
use tenure_core::model::lease_table::{LeaseTable, TaskLease};
use tenure_core::store::Row;
use tenure_core::time::Time;

use super::Checked;

/// Which tasks are over, and which keys named them when the world came to rest.
#[derive(Debug, Default)]
pub struct NoLeak {
    over: Vec<(TaskId, Time)>,
    at_rest: Vec<(TaskId, Time)>,
    looks: u32,
}

impl NoLeak {
    /// Forgets the history.
    pub fn reset(&mut self) {
        self.over.clear();
        self.at_rest.clear();
        self.looks = 0;
    }

    /// A row stands like this now.
    pub fn on_row(&mut self, now: Time, row: &Row) {
        if row.status.is_terminal() && !self.over.iter().any(|(task, _)| *task == row.task) {
            self.over.push((row.task, now));
        }
    }

    /// The world has come to rest: notes the keys that name what is over, and whether there are any.
    pub fn begin_rest(&mut self, now: Time, leases: &LeaseTable) -> bool {
        self.looks += 1;
        let left = leases.live_tasks(now).filter(|(task, _)| self.is_over(*task));
        let left: Vec<_> = left.map(|(task, lease)| (task, lease.expires)).collect();
        self.at_rest = left;
        !self.at_rest.is_empty()
    }

    /// Whether the keys were noted only once: orders that were under way may still have changed them.
    #[must_use]
    pub fn is_first_look(&self) -> bool {
        self.looks == 1
    }

    /// More than a heartbeat later: each of those keys runs out, none was extended or written anew.
    pub fn end_rest(&self, now: Time, leases: &LeaseTable) -> Checked {
        let extended = leases.live_tasks(now).any(|(task, lease)| {
            self.is_over(task) && !self.at_rest.contains(&(task, lease.expires))
        });
        if extended { Err("a lease of a task that is over is kept alive") } else { Ok(()) }
    }

    /// A release was carried out on this lease.
    pub fn on_release(held: Option<TaskLease>, holder: Holder, fence: Fence) -> Checked {
        match held {
            Some(held) if held.holder != holder || held.fence != fence => {
                Err("a release deleted another's lease")
            }
            Some(_) | None => Ok(()),
        }
    }

    fn is_over(&self, task: TaskId) -> bool {
        self.over.iter().any(|(over, _)| *over == task)
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::ids::{Attempt, AttemptRef, Epoch};
    use tenure_core::lease::LeaseOp;
    use tenure_core::store::Status;
    use tenure_core::time::Millis;

    use super::super::samples::{HOLDER, TASK, running};
    use super::*;

    const FENCE: Fence = Fence { epoch: Epoch(1), attempt: Attempt::FIRST };

    fn granted() -> LeaseTable {
        let mut leases = LeaseTable::new();
        let grant = LeaseOp::Grant { holder: HOLDER, task: TASK, fence: FENCE, ttl: Millis(1_000) };
        leases.apply(Time(0), &grant);
        leases
    }

    #[test]
    fn a_lease_that_is_extended_after_the_end_is_seen() {
        let mut leases = granted();
        let mut no_leak = NoLeak::default();
        no_leak.on_row(Time(10), &Row { status: Status::Completed, ..running() });
        assert!(no_leak.begin_rest(Time(20), &leases));
        assert_eq!(no_leak.end_rest(Time(900), &leases), Ok(()));
        let renew = LeaseOp::Renew {
            holder: HOLDER,
            epoch: Epoch(1),
            tasks: vec![AttemptRef::new(TASK, Attempt::FIRST)],
            heartbeat_ttl: Millis(500),
            task_ttl: Millis(1_000),
        };
        leases.apply(Time(900), &renew);
        assert!(no_leak.end_rest(Time(901), &leases).is_err());
    }

    #[test]
    fn a_release_of_anothers_lease_is_seen() {
        let held = granted().live_tasks(Time(1)).next().map(|(_, lease)| lease);
        assert_eq!(NoLeak::on_release(held, HOLDER, FENCE), Ok(()));
        let older = Fence { epoch: Epoch(0), ..FENCE };
        assert!(NoLeak::on_release(held, HOLDER, older).is_err());
    }
}
