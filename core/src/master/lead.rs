//! A term's beginning and end: what a new leader reads, adopts and owes; what an old one drops.

use alloc::vec::Vec;
use core::ops::Bound;

use super::effects::{Doing, Pass, Purpose};
use super::expire::Reason;
use super::session::Session;
use super::task::{Hold, Stage as HoldStage};
use super::{Master, Stage};
use crate::command::{CloseReason, MasterCommand, Reply};
use crate::ids::{EffectId, Holder, SessionId, TaskId, Term};
use crate::message::{Hello, ToWorker};
use crate::rules::Rule;
use crate::store::{Row, StoreAnswer, StoreOp, StoreResult};
use crate::time::{Millis, Time};

/// Tasks a page of the comparison with the store.
const RECONCILE_PAGE: u32 = 1_000;

/// The rest between two pages.
const RECONCILE_PAUSE: Millis = Millis(50);

/// How soon a new leader reads again when the store did not answer.
const READ_AGAIN: Millis = Millis(200);

impl Master {
    /// A new term: read everything, decide nothing before.
    pub(super) fn begin_term(&mut self, term: Term, out: &mut Vec<MasterCommand>) {
        self.drop_everything(out);
        self.send_off_workers(out);
        self.stage = Stage::Reading(term);
        self.read_all(out);
    }

    /// Sessions of a term that is over: their workers say hello again. Those that wait for the new one stay.
    fn send_off_workers(&mut self, out: &mut Vec<MasterCommand>) {
        let epoch = self.election.seen();
        self.sessions.retain(|id, session| {
            let waits = matches!(session, Session::Fresh | Session::Early(_));
            if !waits {
                out.push(MasterCommand::Send(*id, ToWorker::NotLeader(epoch)));
                out.push(MasterCommand::Close(*id, CloseReason::NotLeader));
            }
            waits
        });
    }

    pub(super) fn read_all(&mut self, out: &mut Vec<MasterCommand>) {
        if let Stage::Reading(term) = self.stage {
            let effect = self.effects.begin(Purpose::ReadAll);
            out.push(MasterCommand::Store(effect, StoreOp::ReadAll(term)));
        }
    }

    pub(super) fn on_read_all(
        &mut self,
        now: Time,
        result: StoreResult,
        out: &mut Vec<MasterCommand>,
    ) {
        let Stage::Reading(term) = self.stage else {
            return;
        };
        let StoreResult::Answer(StoreAnswer::All { rows, workers }) = result else {
            self.deadlines.arm(now + READ_AGAIN, Reason::ReadAgain);
            return;
        };
        self.stage = Stage::Leading { term, since: now };
        out.push(MasterCommand::Lead(term));
        for Holder { worker, incarnation } in workers {
            self.workers.entry(worker).or_default().incarnation = incarnation;
        }
        self.learn_all(now, rows, out);
        self.deadlines.arm(now + self.settings.reconcile, Reason::Reconcile(TaskId::default()));
        for (session, hello) in self.early() {
            self.on_hello(now, session, hello, out);
        }
    }

    fn learn_all(&mut self, now: Time, rows: Vec<Row>, out: &mut Vec<MasterCommand>) {
        for row in rows {
            let task = row.task;
            self.learn(now, row, out);
            if !self.rules.hold(Rule::AdoptGrace)
                && let Some(Hold { stage: HoldStage::Away { until, .. }, .. }) =
                    self.tasks.get_mut(&task).and_then(super::task::Task::hold_mut)
            {
                *until = now;
                self.deadlines.arm(now, Reason::Patience(task));
            }
            self.settle(now, task, out);
        }
    }

    /// Sessions that said hello before this master could answer.
    fn early(&mut self) -> Vec<(SessionId, Hello)> {
        let early = self.sessions.iter_mut().filter_map(|(id, session)| {
            let Session::Early(hello) = session else {
                return None;
            };
            let hello = hello.clone();
            *session = Session::Fresh;
            Some((*id, hello))
        });
        early.collect()
    }

    /// The slow net under it all: what the store shows of tasks about which nothing is under way. A page at
    /// a time, so that a long queue never stands in the way of a claim.
    pub(super) fn reconcile(&mut self, after: TaskId, pass: Pass, out: &mut Vec<MasterCommand>) {
        if let Some(term) = self.leads() {
            let asked = self.effects.next;
            let effect = self.effects.begin(Purpose::Reconcile { after, asked, pass });
            let scan = StoreOp::Scan { term, after, limit: RECONCILE_PAGE };
            out.push(MasterCommand::Store(effect, scan));
        }
    }

    pub(super) fn on_reconciled(
        &mut self,
        now: Time,
        after: TaskId,
        asked: EffectId,
        pass: Pass,
        result: StoreResult,
        out: &mut Vec<MasterCommand>,
    ) {
        let StoreResult::Answer(StoreAnswer::Page { rows, until }) = result else {
            let again = match pass {
                Pass::Regular => Reason::Reconcile(after),
                Pass::Once => Reason::Rescan(after),
            };
            self.deadlines.arm(now + self.settings.retry_min, again);
            return;
        };
        match (until, pass) {
            (Some(task), Pass::Regular) => {
                self.deadlines.arm(now + RECONCILE_PAUSE, Reason::Reconcile(task));
            }
            (Some(task), Pass::Once) => {
                self.deadlines.arm(now + RECONCILE_PAUSE, Reason::Rescan(task));
            }
            (None, Pass::Regular) => {
                let first = Reason::Reconcile(TaskId::default());
                self.deadlines.arm(now + self.settings.reconcile, first);
            }
            (None, Pass::Once) => {}
        }
        let last = until.unwrap_or(TaskId(u64::MAX));
        for task in self.vanished(after, last, asked, &rows) {
            self.forget(now, task, out);
        }
        for row in rows {
            self.reconcile_row(now, asked, row, out);
        }
    }

    /// Tasks of a stretch that memory had before the question and that the answer does not show: they are over.
    fn vanished(&self, after: TaskId, last: TaskId, asked: EffectId, rows: &[Row]) -> Vec<TaskId> {
        let is_shown = |task: &TaskId| rows.binary_search_by_key(task, |row| row.task).is_ok();
        self.tasks
            .range((Bound::Excluded(after), Bound::Included(last)))
            .filter(|(task, known)| known.as_of <= asked && !is_shown(task))
            .map(|(task, _)| *task)
            .filter(|task| !self.desks.contains_key(task))
            .collect()
    }

    fn reconcile_row(
        &mut self,
        now: Time,
        asked: EffectId,
        row: Row,
        out: &mut Vec<MasterCommand>,
    ) {
        let task = row.task;
        let settled =
            self.tasks.get(&task).is_some_and(|known| known.as_of > asked || known.row == row);
        if settled || self.desks.contains_key(&task) {
            return;
        }
        self.learn(now, row, out);
        self.settle(now, task, out);
    }

    /// This term is over: nothing of it is decided any more, and everybody is told.
    pub(super) fn step_down(&mut self, term: Term, out: &mut Vec<MasterCommand>) {
        self.stage = Stage::Following;
        self.drop_everything(out);
        let epoch = self.election.seen();
        for (session, _) in core::mem::take(&mut self.sessions) {
            out.push(MasterCommand::Send(session, ToWorker::NotLeader(epoch)));
            out.push(MasterCommand::Close(session, CloseReason::NotLeader));
        }
        out.push(MasterCommand::StepDown(term));
    }

    fn drop_everything(&mut self, out: &mut Vec<MasterCommand>) {
        for purpose in self.effects.abandon() {
            self.abandon(purpose, out);
        }
        let asked: Vec<TaskId> = self.desks.keys().copied().collect();
        for task in asked {
            while self.desks.get(&task).is_some_and(|desk| !desk.cancels.is_empty()) {
                self.answer_cancel(task, Reply::Unknown, out);
            }
        }
        self.desks.clear();
        self.tasks.clear();
        self.queue.clear();
        self.pool.clear();
        self.workers.clear();
        self.deadlines.clear();
        self.dispatch_wanted = false;
    }

    /// Nobody will wait for this answer any more; whoever asked for it is told so.
    pub(super) fn abandon(&mut self, purpose: Purpose, out: &mut Vec<MasterCommand>) {
        match purpose {
            Purpose::Insert { request, .. } => {
                out.push(MasterCommand::Reply(request, Reply::Unknown));
            }
            Purpose::Task(task, Doing::Cancel) => self.answer_cancel(task, Reply::Unknown, out),
            Purpose::Task(..)
            | Purpose::Register(_)
            | Purpose::ReadAll
            | Purpose::Reconcile { .. } => {}
        }
    }

    /// Hands over, once asked and nothing is under way: workers first, then the lease.
    pub(super) fn close_down(&mut self, now: Time, out: &mut Vec<MasterCommand>) {
        if !self.stop_asked {
            return;
        }
        match self.stage {
            Stage::Leading { term, .. } | Stage::Reading(term) => {
                self.stage = Stage::Closing(term);
                self.close_down(now, out);
            }
            Stage::Closing(term) if !self.effects.any() => {
                self.step_down(term, out);
                self.stage = Stage::Stopped;
                self.election.release(now, &mut self.effects.next, out);
            }
            Stage::Following => {
                self.stage = Stage::Stopped;
                self.election.release(now, &mut self.effects.next, out);
                out.push(MasterCommand::Stopped);
            }
            Stage::Closing(_) | Stage::Stopped => {}
        }
    }
}
