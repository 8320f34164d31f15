//! Cancel: the wish is durable before it is answered, then the worker is told.

use alloc::vec::Vec;

use super::Master;
use super::task::Task;
use crate::command::{MasterCommand, Reply};
use crate::ids::{AttemptRef, RequestId, SessionId, TaskId};
use crate::message::{StopReason, ToWorker};
use crate::store::{Row, Status, Wrote};
use crate::time::Time;

impl Master {
    /// A client wants the task to end.
    pub(super) fn cancel(
        &mut self,
        now: Time,
        request: RequestId,
        task: TaskId,
        force: bool,
        out: &mut Vec<MasterCommand>,
    ) {
        self.desk(task).cancels.push_back((request, force));
        self.settle(now, task, out);
    }

    /// The wish is stored, or came too late.
    pub(super) fn on_cancel_stored(
        &mut self,
        now: Time,
        wrote: Wrote,
        row: Row,
        out: &mut Vec<MasterCommand>,
    ) {
        let (task, status) = (row.task, row.status);
        let reply = match (wrote, status) {
            (Wrote::Applied, Status::Cancelled) => Reply::Cancelled(row.clone()),
            (Wrote::Applied | Wrote::Repeat, _) => Reply::Cancelling(row.clone()),
            (Wrote::Refused | Wrote::Superseded | Wrote::Ahead, _) => {
                Reply::AlreadyOver(task, status)
            }
        };
        self.answer_cancel(task, reply, out);
        self.stop_holder(task, out);
        self.learn(now, row, out);
    }

    /// Answers the first who asked, and takes the wish off the desk.
    pub(super) fn answer_cancel(
        &mut self,
        task: TaskId,
        reply: Reply,
        out: &mut Vec<MasterCommand>,
    ) {
        if let Some((request, _)) = self.desk(task).cancels.pop_front() {
            out.push(MasterCommand::Reply(request, reply));
        }
    }

    /// Tells whoever runs the task that it was cancelled.
    fn stop_holder(&self, task: TaskId, out: &mut Vec<MasterCommand>) {
        let Some(hold) = self.tasks.get(&task).and_then(Task::hold) else {
            return;
        };
        if let Some(session) = hold.session() {
            let at = AttemptRef::new(task, hold.fence.attempt);
            self.send_stop(session, at, StopReason::Cancelled, out);
        }
    }

    pub(super) fn send_stop(
        &self,
        session: SessionId,
        at: AttemptRef,
        reason: StopReason,
        out: &mut Vec<MasterCommand>,
    ) {
        if let Some(term) = self.term() {
            let stop = ToWorker::Stop { at, epoch: term.epoch, reason };
            out.push(MasterCommand::Send(session, stop));
        }
    }
}
