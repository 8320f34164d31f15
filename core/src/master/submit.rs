//! Submissions: stored once per idempotency key, and claimed in the same write where a worker is idle.

use alloc::vec::Vec;

use super::Master;
use super::effects::Purpose;
use super::expire::Reason;
use crate::command::{MasterCommand, Reply};
use crate::ids::{Fence, Holder, RequestId, SessionId, TaskId, Term};
use crate::spec::{Payload, Shape, Submission};
use crate::store::{Row, Status, StoreAnswer, StoreOp, StoreResult};
use crate::time::{Millis, Time};

/// How soon memory is compared with the store after a submission whose answer was lost.
const RESCAN_AFTER: Millis = Millis(100);

impl Master {
    pub(super) fn submit(
        &mut self,
        now: Time,
        request: RequestId,
        submission: Submission,
        out: &mut Vec<MasterCommand>,
    ) {
        let claim = self.place_for(now, &submission.shape);
        if let Some((holder, _, _)) = claim {
            self.reserve(now, holder, &submission.shape);
        }
        let purpose = Purpose::Insert {
            request,
            claim: claim.map(|(holder, session, _)| (holder, session)),
            shape: submission.shape.clone(),
            payload: submission.payload.clone(),
            after: self.tasks.last_key_value().map(|(task, _)| *task).unwrap_or_default(),
        };
        let effect = self.effects.begin(purpose);
        let claim = claim.map(|(holder, _, term)| (holder, term));
        out.push(MasterCommand::Store(effect, StoreOp::Insert { submission, at: now, claim }));
    }

    /// An idle worker for a task of this shape, if nothing else of the shape waits for one.
    fn place_for(&self, now: Time, shape: &Shape) -> Option<(Holder, SessionId, Term)> {
        let term = self.leads()?;
        if self.queue.waits(shape) {
            return None;
        }
        let id = self.freest(now, shape, None)?;
        let worker = self.workers.get(&id)?;
        Some((worker.holder(id), worker.session?, term))
    }

    fn reserve(&mut self, now: Time, holder: Holder, shape: &Shape) {
        if let Some(worker) = self.workers.get_mut(&holder.worker) {
            worker.occupy(None, shape);
        }
        self.refresh(now, holder.worker);
    }

    fn free_reserved(&mut self, now: Time, holder: Holder, shape: &Shape) {
        if let Some(worker) = self.workers.get_mut(&holder.worker) {
            worker.vacate(None, shape);
        }
        self.refresh(now, holder.worker);
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one purpose, and its answer")]
    pub(super) fn on_inserted(
        &mut self,
        now: Time,
        request: RequestId,
        claim: Option<(Holder, SessionId)>,
        shape: &Shape,
        payload: Payload,
        after: TaskId,
        result: StoreResult,
        out: &mut Vec<MasterCommand>,
    ) {
        if let Some((holder, _)) = claim {
            self.free_reserved(now, holder, shape);
        }
        let reply = match result {
            StoreResult::Answer(StoreAnswer::Inserted { row, existed }) => {
                let task = row.task;
                if !existed {
                    self.on_new_row(now, row, claim, payload, out);
                } else if !self.tasks.contains_key(&task) {
                    self.learn(now, row, out);
                    self.settle(now, task, out);
                }
                Reply::Submitted { task, existed }
            }
            StoreResult::Answer(StoreAnswer::KeyTaken(task)) => Reply::KeyTaken(task),
            StoreResult::Failed => Reply::StoreFailed,
            StoreResult::Answer(_) | StoreResult::Unknown => {
                // The task may be stored although nobody here knows its id.
                self.deadlines.arm(now + RESCAN_AFTER, Reason::Rescan(after));
                Reply::Unknown
            }
        };
        out.push(MasterCommand::Reply(request, reply));
    }

    fn on_new_row(
        &mut self,
        now: Time,
        row: Row,
        claim: Option<(Holder, SessionId)>,
        payload: Payload,
        out: &mut Vec<MasterCommand>,
    ) {
        match (row.status, row.attempt, claim) {
            (Status::Running, Some(attempt), Some((holder, session))) => {
                let (task, fence) = (row.task, Fence { epoch: row.epoch, attempt });
                self.on_claimed(now, row, holder, session, payload, out);
                self.grant(task, holder, fence, out);
                self.settle(now, task, out);
            }
            (_, _, _) => self.learn(now, row, out),
        }
    }
}
