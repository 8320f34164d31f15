//! Heartbeats: life, leases, and the comparison of what a worker has with what it should have.

use alloc::vec::Vec;

use super::Master;
use super::desk::Due;
use super::expire::Reason;
use super::task::{Hold, Place, Stage};
use crate::command::MasterCommand;
use crate::ids::{AttemptRef, Fence, Holder, SessionId, WorkerId};
use crate::lease::LeaseOp;
use crate::message::{Inventory, StopReason, ToWorker};
use crate::rules::{Rule, Rules};
use crate::store::{AttemptEnd, LoseReason, Row};
use crate::time::Time;

impl Master {
    /// Anything that a worker says shows that it lives.
    pub(super) fn heard(&mut self, now: Time, id: WorkerId) {
        let (suspect_after, ttl) = (self.settings.suspect_after, self.settings.heartbeat_ttl);
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        if now.since(worker.last_heard) >= suspect_after {
            self.dispatch_wanted = true;
        }
        worker.last_heard = now;
        if !worker.watched {
            worker.watched = true;
            self.deadlines.arm(now + ttl, Reason::Silence(id));
        }
    }

    pub(super) fn on_heartbeat(
        &mut self,
        now: Time,
        id: WorkerId,
        session: SessionId,
        inventory: &Inventory,
        out: &mut Vec<MasterCommand>,
    ) {
        self.heard(now, id);
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        worker.full = false;
        let holder = worker.holder(id);
        self.renew_leases(holder, inventory, out);
        if let Some(term) = self.term() {
            out.push(MasterCommand::Send(session, ToWorker::HeartbeatAck(term.epoch)));
        }
        self.compare(now, holder, session, inventory, out);
        self.refresh(now, id);
    }

    pub(super) fn renew_leases(
        &mut self,
        holder: Holder,
        inventory: &Inventory,
        out: &mut Vec<MasterCommand>,
    ) {
        let Some(term) = self.term() else {
            return;
        };
        let op = LeaseOp::Renew {
            holder,
            epoch: term.epoch,
            tasks: inventory.running.clone(),
            heartbeat_ttl: self.settings.heartbeat_ttl,
            task_ttl: self.settings.task_lease,
        };
        let effect = self.effects.fresh();
        out.push(MasterCommand::Lease(effect, op));
    }

    /// What the worker runs, finished, or has not, against what it holds.
    pub(super) fn compare(
        &mut self,
        now: Time,
        holder: Holder,
        session: SessionId,
        inventory: &Inventory,
        out: &mut Vec<MasterCommand>,
    ) {
        let mut foreign = 0;
        for at in &inventory.running {
            if !self.on_listed_running(now, holder, session, *at, out) {
                foreign += 1;
            }
        }
        if let Some(worker) = self.workers.get_mut(&holder.worker) {
            worker.foreign_slots = foreign;
        }
        for at in self.held_attempts(holder) {
            if !inventory.runs(at) {
                self.on_not_running(now, holder, session, at, inventory, out);
            }
        }
    }

    fn held_attempts(&self, holder: Holder) -> Vec<AttemptRef> {
        let Some(worker) = self.workers.get(&holder.worker) else {
            return Vec::new();
        };
        let held = worker.holds.iter().filter_map(|task| {
            let hold = self.tasks.get(task)?.hold()?;
            Some(AttemptRef::new(*task, hold.fence.attempt))
        });
        held.collect()
    }

    /// The worker runs this. False if it should not.
    fn on_listed_running(
        &mut self,
        now: Time,
        holder: Holder,
        session: SessionId,
        at: AttemptRef,
        out: &mut Vec<MasterCommand>,
    ) -> bool {
        let rules = self.rules;
        let Some(known) = self.tasks.get_mut(&at.task) else {
            self.send_stop(session, at, StopReason::Superseded, out);
            return false;
        };
        let cancelled = known.row.cancel_requested;
        let (newest, last, end) = (known.row.attempt, known.row.holder, known.row.end);
        match &mut known.place {
            Place::Held(hold) if hold.holder == holder && hold.fence.attempt == at.attempt => {
                hold.stage = Stage::Running { session };
                if !hold.started {
                    hold.started = true;
                    let mark_at = now + self.settings.started_mark_after;
                    self.deadlines.arm(mark_at, Reason::Started(at.task));
                }
                self.clear_end(at);
                if cancelled {
                    self.send_stop(session, at, StopReason::Cancelled, out);
                }
                true
            }
            Place::Waiting
                if newest == Some(at.attempt) && last == Some(holder) && keeps(rules, end) =>
            {
                let attempt = at.attempt;
                self.set_due(at.task, Due::Keep { attempt, holder, session });
                self.settle(now, at.task, out);
                true
            }
            _ if newest < Some(at.attempt) => {
                self.set_due(at.task, Due::Lift { attempt: at.attempt, holder });
                self.settle(now, at.task, out);
                true
            }
            // Perhaps this very attempt, with its claim's answer still to come.
            Place::Claiming { .. } if newest == Some(at.attempt) => true,
            Place::Waiting | Place::Claiming { .. } | Place::Held(_) => {
                self.send_stop(session, at, StopReason::Superseded, out);
                false
            }
        }
    }

    /// The store lets the worker go on with an attempt that had been given up.
    pub(super) fn on_kept(
        &mut self,
        now: Time,
        row: Row,
        session: SessionId,
        out: &mut Vec<MasterCommand>,
    ) {
        let task = row.task;
        let (Some(attempt), Some(holder)) = (row.attempt, row.holder) else {
            return;
        };
        let fence = Fence { epoch: row.epoch, attempt };
        self.take_over(row);
        let current = self.workers.get(&holder.worker).and_then(|worker| worker.session);
        let stage = if current == Some(session) {
            Stage::Running { session }
        } else {
            self.deadlines.arm(now, Reason::Patience(task));
            Stage::Away { until: now, why: LoseReason::Disconnected }
        };
        let hold = Hold { holder, fence, started: true, stage };
        self.set_place(now, task, Place::Held(hold), out);
        self.grant(task, holder, fence, out);
    }

    /// The worker runs it after all: nothing is to be ended.
    fn clear_end(&mut self, at: AttemptRef) {
        let Some(desk) = self.desks.get_mut(&at.task) else {
            return;
        };
        match desk.due {
            Some(Due::Undo(attempt) | Due::Lose { attempt, .. }) if attempt == at.attempt => {
                desk.due = None;
            }
            Some(Due::Undo(_) | Due::Lose { .. } | Due::Keep { .. } | Due::Mark(_))
            | Some(Due::Lift { .. })
            | None => {}
        }
    }

    /// The worker holds this attempt and does not run it: it has finished it, or never got it.
    fn on_not_running(
        &mut self,
        now: Time,
        holder: Holder,
        session: SessionId,
        at: AttemptRef,
        inventory: &Inventory,
        out: &mut Vec<MasterCommand>,
    ) {
        let listed = inventory.finished(at) && self.rules.hold(Rule::FinishedListed);
        let reported = self.desks.get(&at.task).is_some_and(|desk| !desk.reports.is_empty());
        let Some(hold) = self.held_by(holder.worker, at) else {
            return;
        };
        if listed {
            hold.stage = Stage::Finished { session };
            hold.started = true;
            self.clear_end(at);
            return;
        }
        if hold.holder.incarnation != holder.incarnation {
            let held = hold.holder;
            if self.rules.hold(Rule::IncarnationReleases) {
                self.lose_if_replaced(at.task, held);
                self.settle(now, at.task, out);
            }
            return;
        }
        let attempt = at.attempt;
        let due = match hold.stage {
            // The order is under way in this session.
            Stage::Sent { session: sent_in, .. } if sent_in == session => return,
            Stage::Sent { .. } | Stage::Away { .. } | Stage::Unsent => Due::Undo(attempt),
            Stage::Running { .. } | Stage::Finished { .. } if reported => return,
            Stage::Running { .. } | Stage::Finished { .. } => {
                Due::Lose { attempt, counted: false, reason: LoseReason::NotInInventory }
            }
        };
        self.set_due(at.task, due);
        self.settle(now, at.task, out);
    }
}

/// Whether an attempt that ended like this may be kept by the process that still runs it.
fn keeps(rules: Rules, end: Option<AttemptEnd>) -> bool {
    match end {
        Some(AttemptEnd::Lost { .. }) => true,
        Some(AttemptEnd::Undone | AttemptEnd::Outcome) => !rules.hold(Rule::KeepOnlyLost),
        None => false,
    }
}
