//! What a row from the store changes in memory, whoever wrote it.

use alloc::vec::Vec;

use super::Master;
use super::desk::Due;
use super::expire::Reason;
use super::task::{Hold, Place, Stage, Task};
use crate::command::MasterCommand;
use crate::ids::{Fence, Holder, TaskId};
use crate::lease::LeaseOp;
use crate::store::{LoseReason, Row, Status};
use crate::time::Time;

impl Master {
    /// Takes over what the store shows of a task.
    pub(super) fn learn(&mut self, now: Time, row: Row, out: &mut Vec<MasterCommand>) {
        match row.status {
            Status::Completed | Status::Failed | Status::Cancelled => {
                self.forget(now, row.task, out);
            }
            Status::Pending => self.learn_pending(now, row, out),
            Status::Running => self.learn_running(now, row, out),
        }
    }

    /// The task is over, or is not there.
    pub(super) fn forget(&mut self, now: Time, task: TaskId, out: &mut Vec<MasterCommand>) {
        if let Some(known) = self.tasks.get(&task) {
            self.queue.remove(&known.row, self.settings.ageing_step);
            self.set_place(now, task, Place::Waiting, out);
            self.tasks.remove(&task);
        }
    }

    fn learn_pending(&mut self, now: Time, row: Row, out: &mut Vec<MasterCommand>) {
        let task = row.task;
        self.take_over(row);
        self.set_place(now, task, Place::Waiting, out);
        self.enqueue(now, task);
    }

    fn learn_running(&mut self, now: Time, row: Row, out: &mut Vec<MasterCommand>) {
        let (task, attempt, holder) = (row.task, row.attempt, row.holder);
        let (Some(attempt), Some(holder)) = (attempt, holder) else {
            return;
        };
        let fence = Fence { epoch: row.epoch, attempt };
        let started = row.started;
        self.take_over(row);
        let same = self.tasks.get(&task).and_then(Task::hold);
        if same.is_some_and(|hold| hold.fence == fence && hold.holder == holder) {
            return;
        }
        let ours = self.term().is_some_and(|term| term.epoch == fence.epoch);
        let stage = if ours && !started {
            // Claimed by this very leader, which holds no such claim: its answer was lost, nothing was sent.
            // One that has started was kept, and the answer to that was lost: its worker will show it.
            self.set_due(task, Due::Undo(attempt));
            Stage::Unsent
        } else {
            self.await_adoption(now, task)
        };
        self.set_place(now, task, Place::Held(Hold { holder, fence, started, stage }), out);
        self.lose_if_replaced(task, holder);
    }

    /// Keeps the row, out of the queue for now.
    pub(super) fn take_over(&mut self, row: Row) {
        let as_of = self.effects.next;
        match self.tasks.get_mut(&row.task) {
            Some(known) => {
                self.queue.remove(&known.row, self.settings.ageing_step);
                known.row = row;
                known.as_of = as_of;
            }
            None => {
                let task = row.task;
                let place = Place::Waiting;
                self.tasks.insert(task, Task { row, place, avoid: None, as_of });
            }
        }
    }

    /// A claim of an earlier term: its worker has some time to come and show it.
    fn await_adoption(&mut self, now: Time, task: TaskId) -> Stage {
        let patience = self.tasks.get(&task).and_then(|known| known.row.limits.patience);
        let until = now + self.settings.adopt_grace.max(patience.unwrap_or_default());
        self.deadlines.arm(until, Reason::Patience(task));
        Stage::Away { until, why: LoseReason::NotAdopted }
    }

    /// A later incarnation of the holder is known: the one that holds is over.
    pub(super) fn lose_if_replaced(&mut self, task: TaskId, holder: Holder) {
        let current = self.workers.get(&holder.worker).map(|worker| worker.incarnation);
        let Some(known) = self.tasks.get(&task) else {
            return;
        };
        let Some(hold) = known.hold() else {
            return;
        };
        if current.is_some_and(|current| current != holder.incarnation) {
            let counted = hold.started || known.row.started;
            let attempt = hold.fence.attempt;
            let reason = LoseReason::WorkerRestarted;
            self.set_due(task, Due::Lose { attempt, counted, reason });
        }
    }

    /// Lets the task be claimed, now or when its time comes.
    pub(super) fn enqueue(&mut self, now: Time, task: TaskId) {
        let Some(known) = self.tasks.get(&task) else {
            return;
        };
        if known.row.not_before > now {
            self.deadlines.arm(known.row.not_before, Reason::Ready(task));
        } else {
            self.queue.insert(&known.row, self.settings.ageing_step);
            self.dispatch_wanted = true;
        }
    }

    /// Moves a task, with the place that it takes at a worker and the lease that follows its hold.
    pub(super) fn set_place(
        &mut self,
        now: Time,
        task: TaskId,
        place: Place,
        out: &mut Vec<MasterCommand>,
    ) {
        let Some(known) = self.tasks.get_mut(&task) else {
            return;
        };
        let before = known.holder();
        let old = core::mem::replace(&mut known.place, place);
        let after = known.holder();
        if before == after {
            return;
        }
        if let Some(holder) = before {
            let worker = self.workers.entry(holder.worker).or_default();
            worker.vacate(Some(task), &known.row.shape);
        }
        if let Some(holder) = after {
            let worker = self.workers.entry(holder.worker).or_default();
            worker.occupy(Some(task), &known.row.shape);
        }
        let leased = match old {
            Place::Waiting => None,
            Place::Claiming { holder, fence } => Some((holder, fence)),
            Place::Held(hold) => Some((hold.holder, hold.fence)),
        };
        if let Some((holder, fence)) = leased {
            let effect = self.effects.fresh();
            out.push(MasterCommand::Lease(effect, LeaseOp::Release { holder, task, fence }));
        }
        for holder in before.into_iter().chain(after) {
            self.refresh(now, holder.worker);
        }
    }
}
