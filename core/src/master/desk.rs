//! What waits to be done about a task, one write at a time.
//!
//! While a write is under way everything else waits and is judged against its result. A write whose result
//! is unknown is followed by reading the row, never by a guess.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::Master;
use super::effects::{Doing, Purpose};
use super::expire::Reason;
use crate::command::{MasterCommand, Reply};
use crate::ids::{Attempt, EffectId, Holder, RequestId, SessionId, TaskId};
use crate::outcome::Outcome;
use crate::rules::Rule;
use crate::spec::Payload;
use crate::store::{Change, LoseReason, Row, StoreAnswer, StoreOp, StoreResult, Wrote};
use crate::time::{Millis, Time};

/// How long the store is left alone after it took no order.
const STORE_PAUSE: Millis = Millis(200);

/// Everything under way or waiting for one task. There is none for a task that needs nothing.
#[derive(Debug, Clone, Default)]
pub(super) struct Desk {
    write: Option<EffectId>,
    pub(super) reports: VecDeque<Report>,
    pub(super) cancels: VecDeque<(RequestId, bool)>,
    pub(super) due: Option<Due>,
    reread: bool,
    pause_until: Time,
}

/// An outcome that waits to be stored, and the session in which it is to be acknowledged.
#[derive(Debug, Clone)]
pub(super) struct Report {
    pub(super) session: SessionId,
    pub(super) outcome: Outcome,
}

/// What is to be done about the newest attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// It never began.
    Undo(Attempt),
    /// Its worker is gone.
    Lose { attempt: Attempt, counted: bool, reason: LoseReason },
    /// Its worker is back and still runs it.
    Keep { attempt: Attempt, holder: Holder, session: SessionId },
    /// It has run long enough for its start to be noted.
    Mark(Attempt),
    /// The store has gone back: the attempt is not in it.
    Lift { attempt: Attempt, holder: Holder },
}

impl Master {
    pub(super) fn desk(&mut self, task: TaskId) -> &mut Desk {
        self.desks.entry(task).or_default()
    }

    pub(super) fn set_due(&mut self, task: TaskId, due: Due) {
        self.desk(task).due = Some(due);
    }

    /// What was ordered is done, or cannot be. Something else may have fallen due meanwhile: that stays.
    fn done(&mut self, task: TaskId, doing: Doing) {
        let Some(desk) = self.desks.get_mut(&task) else {
            return;
        };
        let is_done = match (doing, desk.due) {
            (Doing::End(ordered), Some(due)) => ordered == due,
            (Doing::Keep { session }, Some(Due::Keep { session: due, .. })) => session == due,
            (_, _) => false,
        };
        if is_done {
            desk.due = None;
        }
    }

    /// Orders the next thing for this task, unless something is under way.
    pub(super) fn settle(&mut self, now: Time, task: TaskId, out: &mut Vec<MasterCommand>) {
        let Some(desk) = self.desks.get(&task) else {
            return;
        };
        if desk.write.is_some() && self.rules.hold(Rule::OneWrite) || desk.pause_until > now {
            return;
        }
        match self.next_order(now, task) {
            Some((doing, op)) => self.order(task, doing, op, out),
            None => {
                self.desks.remove(&task);
                self.dispatch_wanted = true;
            }
        }
    }

    fn order(&mut self, task: TaskId, doing: Doing, op: StoreOp, out: &mut Vec<MasterCommand>) {
        let effect = self.effects.begin(Purpose::Task(task, doing));
        self.desk(task).write = Some(effect);
        out.push(MasterCommand::Store(effect, op));
    }

    /// Orders a change of this task.
    pub(super) fn order_change(
        &mut self,
        now: Time,
        task: TaskId,
        doing: Doing,
        change: Change,
        out: &mut Vec<MasterCommand>,
    ) {
        if let Some(op) = self.change_op(now, task, change) {
            self.order(task, doing, op, out);
        }
    }

    fn change_op(&self, now: Time, task: TaskId, change: Change) -> Option<StoreOp> {
        self.term().map(|term| StoreOp::Change { task, term, at: now, change })
    }

    fn next_order(&mut self, now: Time, task: TaskId) -> Option<(Doing, StoreOp)> {
        let desk = self.desks.get(&task)?;
        if desk.reread {
            return Some((Doing::Reread, StoreOp::Read(task)));
        }
        if let Some(Due::Lift { attempt, holder }) = desk.due {
            let op = self.change_op(now, task, Change::Lift { attempt, holder })?;
            return Some((Doing::End(Due::Lift { attempt, holder }), op));
        }
        if let Some(report) = desk.reports.front() {
            let outcome = report.outcome.clone();
            let retry_at = self.retry_at(now, task);
            let op = self.change_op(now, task, Change::Commit { outcome, retry_at })?;
            return Some((Doing::Commit, op));
        }
        if let Some((_, force)) = desk.cancels.front() {
            let op = self.change_op(now, task, Change::Cancel { force: *force })?;
            return Some((Doing::Cancel, op));
        }
        let (doing, change) = self.due_change(task)?;
        Some((doing, self.change_op(now, task, change)?))
    }

    /// The change that is due, if the task still stands as it did when it fell due.
    fn due_change(&self, task: TaskId) -> Option<(Doing, Change)> {
        let due = self.desks.get(&task)?.due?;
        let known = self.tasks.get(&task)?;
        let held = known.hold().map(|hold| (hold.fence.attempt, hold.holder.incarnation));
        match due {
            Due::Undo(attempt) => {
                let (_, incarnation) = held.filter(|(newest, _)| *newest == attempt)?;
                Some((Doing::End(due), Change::Undo { attempt, incarnation }))
            }
            Due::Lose { attempt, counted, reason } => {
                let (_, incarnation) = held.filter(|(newest, _)| *newest == attempt)?;
                Some((Doing::End(due), Change::Lose { attempt, incarnation, counted, reason }))
            }
            Due::Keep { attempt, holder, session } => {
                let waits = held.is_none() && known.row.attempt == Some(attempt);
                waits.then_some((Doing::Keep { session }, Change::Keep { attempt, holder }))
            }
            Due::Mark(attempt) => {
                let (_, incarnation) = held.filter(|(newest, _)| *newest == attempt)?;
                (!known.row.started)
                    .then_some((Doing::End(due), Change::MarkStarted { attempt, incarnation }))
            }
            // Ordered before outcomes, which wait for it.
            Due::Lift { .. } => None,
        }
    }

    /// The store answered an order about one task, or did not.
    pub(super) fn on_task_answer(
        &mut self,
        now: Time,
        task: TaskId,
        doing: Doing,
        result: StoreResult,
        out: &mut Vec<MasterCommand>,
    ) {
        self.desk(task).write = None;
        match result {
            StoreResult::Answer(StoreAnswer::Changed { wrote, row, payload }) => {
                self.on_changed(now, doing, wrote, row, payload, out);
            }
            StoreResult::Answer(StoreAnswer::Read(row)) => {
                self.desk(task).reread = false;
                self.learn(now, row, out);
            }
            StoreResult::Answer(_) => self.on_no_task(now, task, doing, out),
            StoreResult::Failed => self.on_not_taken(now, task, doing, out),
            StoreResult::Unknown => self.on_unknown(now, task, doing, out),
        }
        self.settle(now, task, out);
    }

    fn on_changed(
        &mut self,
        now: Time,
        doing: Doing,
        wrote: Wrote,
        row: Row,
        payload: Payload,
        out: &mut Vec<MasterCommand>,
    ) {
        let task = row.task;
        match doing {
            Doing::Claim { holder, session } if wrote == Wrote::Applied => {
                self.on_claimed(now, row, holder, session, payload, out);
            }
            Doing::Keep { session } if wrote == Wrote::Applied => {
                self.done(task, doing);
                self.on_kept(now, row, session, out);
            }
            Doing::Claim { .. } | Doing::Reread => self.learn(now, row, out),
            Doing::End(_) | Doing::Keep { .. } => {
                self.done(task, doing);
                self.learn(now, row, out);
            }
            Doing::Commit => self.on_committed(now, wrote, row, out),
            Doing::Cancel => self.on_cancel_stored(now, wrote, row, out),
        }
    }

    fn on_no_task(&mut self, now: Time, task: TaskId, doing: Doing, out: &mut Vec<MasterCommand>) {
        self.forget(now, task, out);
        let desk = self.desk(task);
        desk.reread = false;
        desk.due = None;
        match doing {
            Doing::Commit => self.acknowledge_first(task, false, out),
            Doing::Cancel => self.answer_cancel(task, Reply::NoTask(task), out),
            Doing::Claim { .. } | Doing::End(_) | Doing::Keep { .. } | Doing::Reread => {}
        }
    }

    /// Nothing was changed: the order stands, after a pause.
    fn on_not_taken(
        &mut self,
        now: Time,
        task: TaskId,
        doing: Doing,
        out: &mut Vec<MasterCommand>,
    ) {
        match doing {
            Doing::Claim { .. } => self.unreserve(now, task, out),
            Doing::Cancel => self.answer_cancel(task, Reply::StoreFailed, out),
            Doing::End(_) | Doing::Keep { .. } | Doing::Commit | Doing::Reread => {}
        }
        self.pause(now, task);
    }

    fn on_unknown(&mut self, now: Time, task: TaskId, doing: Doing, out: &mut Vec<MasterCommand>) {
        match doing {
            Doing::Cancel => self.answer_cancel(task, Reply::Unknown, out),
            Doing::Reread => self.pause(now, task),
            Doing::Claim { .. } if !self.rules.hold(Rule::UnknownReread) => {
                self.unreserve(now, task, out);
            }
            Doing::Claim { .. } | Doing::End(_) | Doing::Keep { .. } | Doing::Commit => {}
        }
        self.desk(task).reread = self.rules.hold(Rule::UnknownReread);
    }

    fn pause(&mut self, now: Time, task: TaskId) {
        let until = now + STORE_PAUSE;
        self.desk(task).pause_until = until;
        self.deadlines.arm(until, Reason::Desk(task));
    }
}
