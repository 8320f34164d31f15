//! From the queue to a worker: pick, claim, lease, send, accepted.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Master;
use super::desk::Due;
use super::effects::Doing;
use super::expire::Reason;
use super::task::{Hold, Place, Stage, Task};
use super::worker::Worker;
use crate::command::MasterCommand;
use crate::ids::{AttemptRef, Fence, Holder, SessionId, TaskId, Term, WorkerId};
use crate::lease::LeaseOp;
use crate::message::{Decline, Execute, ToWorker};
use crate::rules::Rule;
use crate::spec::{Payload, Shape};
use crate::store::{Change, Row};
use crate::time::{Millis, Time};

/// The workers that have a free slot, the freest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Pool {
    free: BTreeSet<(Reverse<u32>, WorkerId)>,
}

impl Pool {
    fn remove(&mut self, worker: WorkerId, free_slots: u32) {
        self.free.remove(&(Reverse(free_slots), worker));
    }

    pub(super) fn clear(&mut self) {
        self.free.clear();
    }
}

impl Master {
    /// Puts a worker where its free slots belong.
    pub(super) fn refresh(&mut self, now: Time, id: WorkerId) {
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        let free = worker.free_slots();
        let offers = worker.session.is_some()
            && !worker.draining
            && !worker.full
            && worker.rested_until <= now
            && free > 0;
        let listed = offers.then_some(free);
        if worker.listed == listed {
            return;
        }
        if let Some(before) = worker.listed {
            self.pool.remove(id, before);
        }
        if let Some(free) = listed {
            self.pool.free.insert((Reverse(free), id));
            self.dispatch_wanted = true;
        }
        worker.listed = listed;
    }

    /// Claims waiting tasks for as long as one fits somewhere.
    pub(super) fn dispatch(&mut self, now: Time, out: &mut Vec<MasterCommand>) {
        if !core::mem::take(&mut self.dispatch_wanted) {
            return;
        }
        let Some(term) = self.leads() else {
            return;
        };
        while let Some((task, worker)) = self.pick(now) {
            self.claim(now, term, task, worker, out);
        }
    }

    /// The first waiting task that a worker can take, with the worker.
    fn pick(&self, now: Time) -> Option<(TaskId, WorkerId)> {
        if self.pool.free.is_empty() {
            return None;
        }
        let lines = self.queue.lines().filter_map(|(shape, line)| {
            let worker = self.freest(now, shape, None)?;
            line.iter().find_map(|key| {
                let worker = self.worker_for(now, key.1, shape, worker)?;
                Some((*key, worker))
            })
        });
        lines.min().map(|((_, task), worker)| (task, worker))
    }

    /// The worker for this task: the freest, unless the task avoids it or something of the task is under way.
    fn worker_for(
        &self,
        now: Time,
        task: TaskId,
        shape: &Shape,
        freest: WorkerId,
    ) -> Option<WorkerId> {
        if self.desks.contains_key(&task) {
            return None;
        }
        match self.tasks.get(&task)?.avoid {
            Some((avoided, until)) if avoided == freest && until > now => {
                self.freest(now, shape, Some(avoided))
            }
            Some(_) | None => Some(freest),
        }
    }

    /// The worker with the most free slots that fits the shape and was heard of lately.
    pub(super) fn freest(
        &self,
        now: Time,
        shape: &Shape,
        but: Option<WorkerId>,
    ) -> Option<WorkerId> {
        let fits = |worker: &Worker| {
            worker.fits(shape) && now.since(worker.last_heard) < self.settings.suspect_after
        };
        self.pool
            .free
            .iter()
            .map(|(_, id)| *id)
            .find(|id| Some(*id) != but && self.workers.get(id).is_some_and(fits))
    }

    fn claim(
        &mut self,
        now: Time,
        term: Term,
        task: TaskId,
        worker: WorkerId,
        out: &mut Vec<MasterCommand>,
    ) {
        let (Some(known), Some(to)) = (self.tasks.get(&task), self.workers.get(&worker)) else {
            return;
        };
        let Some(session) = to.session else {
            return;
        };
        let holder = to.holder(worker);
        let newest = known.row.attempt;
        let fence = Fence { epoch: term.epoch, attempt: known.next_attempt() };
        self.queue.remove(&known.row, self.settings.ageing_step);
        self.set_place(now, task, Place::Claiming { holder, fence }, out);
        let change = Change::Claim { newest, holder };
        self.order_change(now, task, Doing::Claim { holder, session }, change, out);
        self.grant(task, holder, fence, out);
    }

    /// The lease goes side by side with the claim and follows it in everything.
    pub(super) fn grant(
        &mut self,
        task: TaskId,
        holder: Holder,
        fence: Fence,
        out: &mut Vec<MasterCommand>,
    ) {
        let op = LeaseOp::Grant { holder, task, fence, ttl: self.settings.task_lease };
        let effect = self.effects.fresh();
        out.push(MasterCommand::Lease(effect, op));
    }

    /// A claim was not stored: its place is free again, and so is its lease.
    pub(super) fn unreserve(&mut self, now: Time, task: TaskId, out: &mut Vec<MasterCommand>) {
        self.set_place(now, task, Place::Waiting, out);
        self.enqueue(now, task);
    }

    /// The claim is stored: send it, in the session that it was made for.
    pub(super) fn on_claimed(
        &mut self,
        now: Time,
        row: Row,
        holder: Holder,
        session: SessionId,
        payload: Payload,
        out: &mut Vec<MasterCommand>,
    ) {
        let task = row.task;
        let Some(attempt) = row.attempt else {
            return;
        };
        let fence = Fence { epoch: row.epoch, attempt };
        self.take_over(row);
        let current = self.workers.get(&holder.worker).and_then(|worker| worker.session);
        let session = match current {
            Some(current) if current == session => Some(session),
            Some(current) if !self.rules.hold(Rule::ClaimBound) => Some(current),
            Some(_) | None => None,
        };
        let stage = match session {
            Some(session) => {
                self.deadlines.arm(now + self.settings.accept_timeout, Reason::Accept(task));
                let again_at = now + self.settings.accept_timeout;
                Stage::Sent { session, tries: 1, again_at, payload }
            }
            None => {
                self.set_due(task, Due::Undo(attempt));
                Stage::Unsent
            }
        };
        let hold = Hold { holder, fence, started: false, stage };
        self.set_place(now, task, Place::Held(hold), out);
        self.send_execute(task, out);
    }

    /// Orders the worker to run what it holds.
    pub(super) fn send_execute(&self, task: TaskId, out: &mut Vec<MasterCommand>) {
        let (Some(term), Some(known)) = (self.term(), self.tasks.get(&task)) else {
            return;
        };
        let Some(hold) = known.hold() else {
            return;
        };
        let Stage::Sent { session, payload, .. } = &hold.stage else {
            return;
        };
        let execute = Execute {
            at: AttemptRef::new(task, hold.fence.attempt),
            term,
            shape: known.row.shape.clone(),
            timeout: known.row.limits.timeout,
            resumes: hold.fence.attempt.number() > 1,
            payload: payload.clone(),
        };
        out.push(MasterCommand::Send(*session, ToWorker::Execute(execute)));
    }

    pub(super) fn on_accepted(
        &mut self,
        now: Time,
        worker: WorkerId,
        session: SessionId,
        at: AttemptRef,
    ) {
        self.heard(now, worker);
        let mark_at = now + self.settings.started_mark_after;
        let Some(hold) = self.held_by(worker, at) else {
            return;
        };
        if matches!(hold.stage, Stage::Sent { .. } | Stage::Away { .. }) {
            hold.stage = Stage::Running { session };
            hold.started = true;
            self.deadlines.arm(mark_at, Reason::Started(at.task));
        }
    }

    pub(super) fn on_declined(
        &mut self,
        now: Time,
        worker: WorkerId,
        session: SessionId,
        at: AttemptRef,
        why: Decline,
        out: &mut Vec<MasterCommand>,
    ) {
        self.heard(now, worker);
        let Some(hold) = self.held_by(worker, at) else {
            return;
        };
        if !matches!(hold.stage, Stage::Sent { .. }) {
            return;
        }
        hold.stage = Stage::Unsent;
        let until = now + self.settings.decline_pause;
        if let Some(known) = self.tasks.get_mut(&at.task) {
            known.avoid = Some((worker, until));
            self.deadlines.arm(until, Reason::Ready(at.task));
        }
        match why {
            Decline::Busy => {
                // Its next inventory says what it really has free.
                if let Some(worker) = self.workers.get_mut(&worker) {
                    worker.full = true;
                }
                self.refresh(now, worker);
                out.push(MasterCommand::Send(session, ToWorker::Ping));
            }
            Decline::Cannot => self.rest(now, worker, self.settings.decline_pause),
            Decline::OldAttempt => {}
        }
        self.set_due(at.task, Due::Undo(at.attempt));
        self.settle(now, at.task, out);
    }

    /// An order that got no answer is sent again, and after the last time given up.
    pub(super) fn on_accept_overdue(
        &mut self,
        now: Time,
        task: TaskId,
        out: &mut Vec<MasterCommand>,
    ) {
        let (timeout, most) = (self.settings.accept_timeout, self.settings.accept_tries);
        let Some(hold) = self.tasks.get_mut(&task).and_then(Task::hold_mut) else {
            return;
        };
        let (attempt, worker) = (hold.fence.attempt, hold.holder.worker);
        let Stage::Sent { tries, again_at, .. } = &mut hold.stage else {
            return;
        };
        if *again_at > now || !self.rules.hold(Rule::AcceptTimeout) {
            return;
        }
        if *tries < most {
            *tries += 1;
            *again_at = now + timeout;
            self.deadlines.arm(now + timeout, Reason::Accept(task));
            self.send_execute(task, out);
        } else {
            self.rest(now, worker, self.settings.heartbeat_ttl);
            let reason = crate::store::LoseReason::NoAnswer;
            self.set_due(task, Due::Lose { attempt, counted: false, reason });
            self.settle(now, task, out);
        }
    }

    /// The worker gets nothing new for a while.
    fn rest(&mut self, now: Time, id: WorkerId, length: Millis) {
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.rested_until = now + length;
            self.deadlines.arm(worker.rested_until, Reason::Rested(id));
        }
        self.refresh(now, id);
    }

    /// The hold of this worker on this attempt.
    pub(super) fn held_by(&mut self, worker: WorkerId, at: AttemptRef) -> Option<&mut Hold> {
        let hold = self.tasks.get_mut(&at.task)?.hold_mut()?;
        (hold.holder.worker == worker && hold.fence.attempt == at.attempt).then_some(hold)
    }
}
