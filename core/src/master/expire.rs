//! Deadlines that have come. Each reason only says where to look; whether something is due, the record there says.

use alloc::vec::Vec;

use super::desk::Due;
use super::effects::Pass;
use super::task::Stage as HoldStage;
use super::{Master, Stage};
use crate::command::MasterCommand;
use crate::ids::{SessionId, TaskId, WorkerId};
use crate::lease::LeaseOp;
use crate::rules::Rule;
use crate::store::LoseReason;
use crate::time::Time;

/// Where to look when a deadline comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reason {
    /// A worker may have been silent for a TTL.
    Silence(WorkerId),
    /// A worker may have rested long enough.
    Rested(WorkerId),
    /// A worker may have failed to show that it has its name.
    Contend(SessionId),
    /// An order to run a task may have gone without answer.
    Accept(TaskId),
    /// A task's patience with its absent worker may be over.
    Patience(TaskId),
    /// A task may be claimed from here on.
    Ready(TaskId),
    /// An attempt may have run long enough to note its start.
    Started(TaskId),
    /// The store may take orders again.
    Desk(TaskId),
    /// Memory is to be compared with the store, from behind this task on.
    Reconcile(TaskId),
    /// The same, for once.
    Rescan(TaskId),
    /// What a new leader must know is to be read again.
    ReadAgain,
}

impl Master {
    pub(super) fn expire(&mut self, now: Time, out: &mut Vec<MasterCommand>) {
        while let Some((_, reason)) = self.deadlines.due(now) {
            match reason {
                Reason::Silence(worker) => self.on_silence(now, worker, out),
                Reason::Rested(worker) => self.refresh(now, worker),
                Reason::Contend(session) => self.on_contended(now, session, out),
                Reason::Accept(task) => self.on_accept_overdue(now, task, out),
                Reason::Patience(task) => self.on_patience_over(now, task, out),
                Reason::Ready(task) => self.on_ready(now, task),
                Reason::Started(task) => self.on_started_long_ago(now, task, out),
                Reason::Desk(task) => self.settle(now, task, out),
                Reason::Reconcile(after) => self.reconcile(after, Pass::Regular, out),
                Reason::Rescan(after) => self.reconcile(after, Pass::Once, out),
                Reason::ReadAgain => self.read_all(out),
            }
        }
    }

    /// The wait for an absent worker may be over; then its task moves.
    fn on_patience_over(&mut self, now: Time, task: TaskId, out: &mut Vec<MasterCommand>) {
        let Some(known) = self.tasks.get(&task) else {
            return;
        };
        let Some(hold) = known.hold() else {
            return;
        };
        let HoldStage::Away { until, why } = hold.stage else {
            return;
        };
        let worker = hold.holder.worker;
        if until > now {
            self.deadlines.arm(until, Reason::Patience(task));
        } else if why == LoseReason::NotAdopted && self.may_wait_longer(now) {
            let effect = self.effects.look_at(worker);
            out.push(MasterCommand::Lease(effect, LeaseOp::IsAlive(worker)));
        } else {
            self.give_up(now, task, out);
        }
    }

    /// A live heartbeat key lengthens the wait for a worker after a take-over, up to `adopt_max`.
    fn may_wait_longer(&self, now: Time) -> bool {
        match self.stage {
            Stage::Leading { since, .. } => {
                self.rules.hold(Rule::AdoptGrace) && now < since + self.settings.adopt_max
            }
            Stage::Following | Stage::Reading(_) | Stage::Closing(_) | Stage::Stopped => false,
        }
    }

    /// The heartbeat key of a worker that has not come back was looked at.
    pub(super) fn on_looked(
        &mut self,
        now: Time,
        worker: WorkerId,
        alive: bool,
        out: &mut Vec<MasterCommand>,
    ) {
        let later = now + self.settings.heartbeat;
        for task in self.away(worker) {
            let Some(hold) = self.tasks.get_mut(&task).and_then(super::task::Task::hold_mut) else {
                continue;
            };
            let HoldStage::Away { until, .. } = &mut hold.stage else {
                continue;
            };
            if *until > now {
                continue;
            }
            if alive {
                *until = later;
                self.deadlines.arm(later, Reason::Patience(task));
            } else {
                self.give_up(now, task, out);
            }
        }
    }

    fn give_up(&mut self, now: Time, task: TaskId, out: &mut Vec<MasterCommand>) {
        let Some(known) = self.tasks.get(&task) else {
            return;
        };
        let Some(hold) = known.hold() else {
            return;
        };
        let HoldStage::Away { why: reason, .. } = hold.stage else {
            return;
        };
        let counted = hold.started || known.row.started;
        let attempt = hold.fence.attempt;
        self.set_due(task, Due::Lose { attempt, counted, reason });
        self.settle(now, task, out);
    }

    fn on_ready(&mut self, now: Time, task: TaskId) {
        if let Some(known) = self.tasks.get(&task)
            && known.holder().is_none()
        {
            self.enqueue(now, task);
            self.dispatch_wanted = true;
        }
    }

    fn on_started_long_ago(&mut self, now: Time, task: TaskId, out: &mut Vec<MasterCommand>) {
        let Some(known) = self.tasks.get(&task) else {
            return;
        };
        let Some(hold) = known.hold() else {
            return;
        };
        let running = matches!(hold.stage, HoldStage::Running { .. });
        if running && !known.row.started && !self.desks.contains_key(&task) {
            let attempt = hold.fence.attempt;
            self.set_due(task, Due::Mark(attempt));
            self.settle(now, task, out);
        }
    }
}
