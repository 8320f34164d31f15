//! Property 12: Queue order: priority, then age; no waiting task is overtaken for ever by its equals.
//!
//! Claims are written side by side and workers differ, so single overtakings are normal. What must not be is
//! a task that could have gone all the while and sees its younger equals pass again and again.

use tenure_core::ids::TaskId;
use tenure_core::model::task_table::TaskTable;
use tenure_core::store::{Row, Status};
use tenure_core::time::{Millis, Time};

use super::Checked;

/// So often may a task be overtaken before it counts as starved. More than the attempts of all tasks of a small world.
pub const OVERTAKEN_AT_MOST: u32 = 24;

/// A task that has waited less than this may still be on its way to the leader.
const SETTLED: Millis = Millis(1_500);

/// How often each waiting task was overtaken.
#[derive(Debug, Default)]
pub struct Order {
    waits: Vec<Waiting>,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    task: TaskId,
    since: Time,
    overtaken: u32,
}

impl Order {
    /// Forgets the history.
    pub fn reset(&mut self) {
        self.waits.clear();
    }

    /// A row waits from here on.
    pub fn on_waiting(&mut self, now: Time, row: &Row) {
        self.waits.retain(|wait| wait.task != row.task);
        let since = now.max(row.not_before);
        self.waits.push(Waiting { task: row.task, since, overtaken: 0 });
    }

    /// A task was claimed, or is over.
    pub fn on_gone(&mut self, task: TaskId) {
        self.waits.retain(|wait| wait.task != task);
    }

    /// A task was claimed while these waited.
    pub fn on_claimed(&mut self, now: Time, claimed: &Row, table: &TaskTable) -> Checked {
        self.on_gone(claimed.task);
        for wait in &mut self.waits {
            let Some(entry) = table.entry(wait.task) else { continue };
            let waits = entry.row.status == Status::Pending && now.since(wait.since) > SETTLED;
            if waits && overtakes(claimed, &entry.row) {
                wait.overtaken += 1;
                if wait.overtaken > OVERTAKEN_AT_MOST {
                    return Err("a waiting task is overtaken again and again by its equals");
                }
            }
        }
        Ok(())
    }
}

/// Whether the waiting task was due before the claimed one, on the same workers.
fn overtakes(claimed: &Row, waiting: &Row) -> bool {
    claimed.shape == waiting.shape
        && claimed.limits.priority <= waiting.limits.priority
        && waiting.submitted_at <= claimed.submitted_at
        && waiting.task < claimed.task
}

#[cfg(test)]
mod tests {
    use tenure_core::store::StoreOp;

    use super::*;
    use crate::scenario::plain_task;

    #[test]
    fn a_task_that_is_always_overtaken_is_seen() {
        let mut table = TaskTable::new();
        for number in 0..2 {
            let submission = plain_task(number).submission;
            table.apply(Time(0), &StoreOp::Insert { submission, at: Time(0), claim: None });
        }
        let row = |task| table.entry(TaskId(task)).expect("stored above").row.clone();
        let mut order = Order::default();
        order.on_waiting(Time(0), &row(1));
        for _ in 0..OVERTAKEN_AT_MOST {
            assert_eq!(order.on_claimed(Time(2_000), &row(2), &table), Ok(()));
        }
        assert!(order.on_claimed(Time(2_000), &row(2), &table).is_err());
    }
}
