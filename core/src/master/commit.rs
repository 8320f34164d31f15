//! Outcomes: stored once, acknowledged after the store has answered, whatever the answer.

use alloc::vec::Vec;

use super::Master;
use super::desk::{Due, Report};
use super::session::Session;
use crate::command::MasterCommand;
use crate::ids::{Holder, SessionId, TaskId};
use crate::message::{AckVerdict, ToWorker};
use crate::outcome::{Outcome, Verdict};
use crate::random::doubled;
use crate::rules::Rule;
use crate::store::{Row, Wrote};
use crate::time::{Millis, Time};

impl Master {
    /// A worker tells how an attempt ended, perhaps not for the first time.
    pub(super) fn on_outcome(
        &mut self,
        now: Time,
        session: SessionId,
        outcome: Outcome,
        out: &mut Vec<MasterCommand>,
    ) {
        if self.leads().is_none() {
            return;
        }
        let task = outcome.at.task;
        let reports = &mut self.desk(task).reports;
        let same = |report: &&mut Report| {
            report.outcome.at == outcome.at && report.outcome.ran_by == outcome.ran_by
        };
        match reports.iter_mut().find(same) {
            Some(known) => known.session = session,
            None => reports.push_back(Report { session, outcome }),
        }
        if !self.rules.hold(Rule::AckAfterCommit) {
            self.acknowledge(task, true, out);
        }
        self.settle(now, task, out);
    }

    /// The store has judged the first outcome that waits.
    pub(super) fn on_committed(
        &mut self,
        now: Time,
        wrote: Wrote,
        row: Row,
        out: &mut Vec<MasterCommand>,
    ) {
        let task = row.task;
        if wrote == Wrote::Ahead {
            self.on_ahead(now, row, out);
            return;
        }
        self.note_drain(now, task);
        let committed = matches!(wrote, Wrote::Applied | Wrote::Repeat);
        self.acknowledge_first(task, committed, out);
        self.learn(now, row, out);
    }

    /// A worker that hands a task back takes no new ones.
    fn note_drain(&mut self, now: Time, task: TaskId) {
        let Some(report) = self.desk(task).reports.front() else {
            return;
        };
        let (session, verdict) = (report.session, report.outcome.verdict);
        let worker = self.sessions.get(&session).and_then(Session::live);
        if let (Verdict::HandedBack, Some(id)) = (verdict, worker) {
            if let Some(worker) = self.workers.get_mut(&id) {
                worker.draining = true;
            }
            self.refresh(now, id);
        }
    }

    /// The store has lost the claim of this attempt: it is put back there, then the outcome is stored.
    fn on_ahead(&mut self, now: Time, row: Row, out: &mut Vec<MasterCommand>) {
        let task = row.task;
        self.learn(now, row, out);
        let Some(report) = self.desk(task).reports.front() else {
            return;
        };
        let (attempt, incarnation) = (report.outcome.at.attempt, report.outcome.ran_by);
        let session = report.session;
        match self.sessions.get(&session).and_then(Session::live) {
            Some(worker) => {
                let holder = Holder { worker, incarnation };
                self.set_due(task, Due::Lift { attempt, holder });
            }
            // Whoever told it will tell it again in its next session.
            None => {
                self.desk(task).reports.pop_front();
            }
        }
    }

    /// Acknowledges the first outcome that waits, and takes it off the desk.
    pub(super) fn acknowledge_first(
        &mut self,
        task: TaskId,
        committed: bool,
        out: &mut Vec<MasterCommand>,
    ) {
        self.acknowledge(task, committed, out);
        self.desk(task).reports.pop_front();
    }

    fn acknowledge(&mut self, task: TaskId, committed: bool, out: &mut Vec<MasterCommand>) {
        let Some(term) = self.term() else {
            return;
        };
        let Some(report) = self.desk(task).reports.front() else {
            return;
        };
        let (session, at, ran_by) = (report.session, report.outcome.at, report.outcome.ran_by);
        if !self.sessions.contains_key(&session) {
            return;
        }
        let verdict = if committed { AckVerdict::Committed } else { AckVerdict::Superseded };
        let ack = ToWorker::ResultAck { at, ran_by, epoch: term.epoch, verdict };
        out.push(MasterCommand::Send(session, ack));
    }

    /// When a task whose attempt failed just now may be tried again: doubled with each failure, spread over
    /// the upper half so that tasks which failed together do not return together.
    pub(super) fn retry_at(&mut self, now: Time, task: TaskId) -> Time {
        let failures = self.tasks.get(&task).map_or(0, |known| known.row.failures);
        let most = doubled(self.settings.retry_min, u32::from(failures), self.settings.retry_max);
        let half = Millis(most.0 / 2);
        now + Millis(most.0 - self.random.up_to(half.0))
    }
}
