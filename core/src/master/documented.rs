//! Workers of the documented protocol: no hello, no incarnation, one task at a time, and a closed connection
//! proves nothing, since they train on and cannot come back.

use alloc::vec::Vec;

use super::Master;
use super::desk::Due;
use super::session::Session;
use super::task::{Stage, Task};
use crate::command::MasterCommand;
use crate::ids::{Attempt, AttemptRef, Holder, Incarnation, SessionId, TaskId, WorkerId};
use crate::message::{Decline, Inventory};
use crate::outcome::{Outcome, Verdict};
use crate::spec::{Payload, Shape};
use crate::store::LoseReason;
use crate::time::Time;

/// So many idle heartbeats in a row after an accepted task mean that it is gone.
const IDLE_BEATS: u8 = 2;

impl Master {
    pub(super) fn on_documented_heartbeat(
        &mut self,
        now: Time,
        session: SessionId,
        id: WorkerId,
        busy: Option<TaskId>,
        out: &mut Vec<MasterCommand>,
    ) {
        if self.leads().is_none() {
            return;
        }
        match self.sessions.get(&session) {
            Some(Session::Live(known)) if *known == id => {}
            Some(Session::Fresh) if !self.is_named(id) => self.meet_documented(now, session, id),
            Some(_) => {
                self.drop_session(now, session, out);
                return;
            }
            None => return,
        }
        self.heard(now, id);
        let holder = Holder { worker: id, incarnation: Incarnation::DOCUMENTED };
        let held = self.documented_hold(id);
        let running = held.filter(|at| Some(at.task) == busy).into_iter().collect();
        let inventory = Inventory { running, finished: Vec::new() };
        self.renew_leases(holder, &inventory, out);
        match (held, inventory.running.first()) {
            (Some(at), Some(_)) => self.documented_runs(id, session, at),
            (Some(at), None) => self.documented_idles(now, id, at, out),
            (None, _) => {}
        }
        self.documented_slots(now, id, busy.is_some() && held.is_none());
    }

    /// Whether a native worker goes by this name.
    fn is_named(&self, id: WorkerId) -> bool {
        self.workers.get(&id).is_some_and(|worker| {
            worker.session.is_some() && worker.incarnation != Incarnation::DOCUMENTED
        })
    }

    fn meet_documented(&mut self, now: Time, session: SessionId, id: WorkerId) {
        self.sessions.insert(session, Session::Live(id));
        let worker = self.workers.entry(id).or_default();
        worker.incarnation = Incarnation::DOCUMENTED;
        worker.session = Some(session);
        worker.capacity = Shape::default();
        worker.documented = true;
        worker.idle_beats = 0;
        worker.last_heard = now;
    }

    fn documented_hold(&self, id: WorkerId) -> Option<AttemptRef> {
        let task = *self.workers.get(&id)?.holds.first()?;
        let hold = self.tasks.get(&task)?.hold()?;
        Some(AttemptRef::new(task, hold.fence.attempt))
    }

    fn documented_runs(&mut self, id: WorkerId, session: SessionId, at: AttemptRef) {
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.idle_beats = 0;
        }
        if let Some(hold) = self.held_by(id, at) {
            hold.stage = Stage::Running { session };
            hold.started = true;
        }
    }

    fn documented_idles(
        &mut self,
        now: Time,
        id: WorkerId,
        at: AttemptRef,
        out: &mut Vec<MasterCommand>,
    ) {
        let waits = self
            .tasks
            .get(&at.task)
            .and_then(Task::hold)
            .is_some_and(|hold| matches!(hold.stage, Stage::Sent { .. }));
        let reported = self.desks.get(&at.task).is_some_and(|desk| !desk.reports.is_empty());
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        if waits || reported {
            return;
        }
        worker.idle_beats = worker.idle_beats.saturating_add(1);
        if worker.idle_beats >= IDLE_BEATS {
            let (attempt, reason) = (at.attempt, LoseReason::NotInInventory);
            self.set_due(at.task, Due::Lose { attempt, counted: false, reason });
            self.settle(now, at.task, out);
        }
    }

    fn documented_slots(&mut self, now: Time, id: WorkerId, foreign: bool) {
        if let Some(worker) = self.workers.get_mut(&id) {
            worker.foreign_slots = u32::from(foreign);
            worker.full = false;
        }
        self.refresh(now, id);
    }

    pub(super) fn on_documented_answer(
        &mut self,
        now: Time,
        id: WorkerId,
        session: SessionId,
        task: TaskId,
        accepted: bool,
        out: &mut Vec<MasterCommand>,
    ) {
        let Some(at) = self.documented_hold(id).filter(|at| at.task == task) else {
            return;
        };
        if accepted {
            self.on_accepted(now, id, session, at);
        } else {
            self.on_declined(now, id, session, at, Decline::Cannot, out);
        }
    }

    /// A report without attempt belongs to the attempt that this worker holds.
    #[expect(clippy::too_many_arguments, reason = "the fields of one message")]
    pub(super) fn on_documented_report(
        &mut self,
        now: Time,
        id: WorkerId,
        session: SessionId,
        task: TaskId,
        attempt: Option<Attempt>,
        verdict: Verdict,
        report: Payload,
        out: &mut Vec<MasterCommand>,
    ) {
        self.heard(now, id);
        let held = self.documented_hold(id).filter(|at| at.task == task);
        let Some(at) = attempt.map(|attempt| AttemptRef::new(task, attempt)).or(held) else {
            return;
        };
        // It ignores orders to stop, so an end after a cancel is what the cancel asked for, whatever it says.
        let cancelled = self.tasks.get(&task).is_some_and(|known| known.row.cancel_requested);
        let verdict = if cancelled { Verdict::Stopped } else { verdict };
        let outcome = Outcome { at, ran_by: Incarnation::DOCUMENTED, verdict, report };
        self.on_outcome(now, session, outcome, out);
    }
}
