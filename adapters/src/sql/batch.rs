//! One batch of orders in memory: the part of the store that it touches, and what core makes of it.
//!
//! Answers come from here and never from SQL: a batch loads what its orders name, applies them in order with
//! [`tenure_core::model::change`], and hands the difference to the writer.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use tenure_core::ids::{Epoch, Holder, Incarnation, TaskId, Term, WorkerId};
use tenure_core::model::change;
use tenure_core::model::task_table::new_row;
use tenure_core::rules::Rules;
use tenure_core::spec::{IdempotencyKey, Payload, Submission};
use tenure_core::store::{Change, Row, StoreAnswer, StoreOp, TermRow, Wrote};
use tenure_core::time::{Millis, Time};

use super::story::Story;

/// What must be loaded before a batch can be applied.
#[derive(Debug, Default)]
pub(super) struct Needs {
    pub(super) tasks: BTreeSet<TaskId>,
    pub(super) payloads: BTreeSet<TaskId>,
    pub(super) keys: BTreeSet<Arc<str>>,
    pub(super) workers: BTreeSet<WorkerId>,
    /// Every open task and every worker.
    pub(super) all: bool,
    /// Stretches of open tasks: behind which task, and how many at most.
    pub(super) scans: BTreeSet<Stretch>,
}

/// Open tasks behind a task, so many at most.
pub(super) type Stretch = (TaskId, u32);

impl Needs {
    pub(super) fn of<'a>(orders: impl Iterator<Item = &'a StoreOp>) -> Needs {
        let mut needs = Needs::default();
        for order in orders {
            match order {
                StoreOp::Insert { submission, .. } => {
                    needs.keys.insert(Arc::clone(&submission.key.0));
                }
                StoreOp::Change { task, change, .. } => {
                    needs.tasks.insert(*task);
                    if matches!(change, Change::Claim { .. }) {
                        needs.payloads.insert(*task);
                    }
                }
                StoreOp::Register { holder, .. } => {
                    needs.workers.insert(holder.worker);
                }
                StoreOp::Read(task) => {
                    needs.tasks.insert(*task);
                }
                StoreOp::ReadAll(_) => needs.all = true,
                StoreOp::Scan { after, limit, .. } => {
                    needs.scans.insert((*after, *limit));
                }
                StoreOp::ReadTerm
                | StoreOp::TakeTerm { .. }
                | StoreOp::RenewTerm { .. }
                | StoreOp::ReleaseTerm(_) => {}
            }
        }
        needs
    }
}

/// The incarnations of one worker.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) current: Incarnation,
    pub(super) replaced: BTreeSet<Incarnation>,
}

/// A task that the batch made.
#[derive(Debug)]
pub(super) struct NewTask {
    pub(super) task: TaskId,
    pub(super) key: IdempotencyKey,
    pub(super) fingerprint: u64,
    pub(super) payload: Payload,
}

/// What a batch changed and must be written.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) made: Vec<NewTask>,
    /// Rows, those just made included, with the time of the last change.
    pub(super) rows: BTreeMap<TaskId, Time>,
    pub(super) workers: BTreeMap<WorkerId, Time>,
    pub(super) replaced: Vec<(Holder, Time)>,
    pub(super) term: bool,
    pub(super) story: Story,
}

/// The touched part of the store. `now` is the store's own clock, read once for the batch.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) now: Time,
    pub(super) term: Term,
    pub(super) term_until: Time,
    pub(super) last_task: TaskId,
    pub(super) rows: BTreeMap<TaskId, Row>,
    pub(super) payloads: HashMap<TaskId, Payload>,
    pub(super) keys: HashMap<IdempotencyKey, (TaskId, u64)>,
    pub(super) workers: BTreeMap<WorkerId, Known>,
    /// Where each loaded stretch ends, if more lies behind it.
    pub(super) scans: BTreeMap<Stretch, Option<TaskId>>,
    pub(super) changes: Changes,
}

impl Batch {
    /// Carries out one order, as `TaskTable::apply` does.
    pub(super) fn apply(&mut self, order: &StoreOp) -> StoreAnswer {
        if let Some(term) = claimed_term(order)
            && term != self.term
        {
            return StoreAnswer::Deposed(self.term_row());
        }
        match order {
            StoreOp::Insert { submission, at, claim } => self.insert(submission, *at, *claim),
            StoreOp::Change { task, term, at, change } => {
                self.change(*task, term.epoch, *at, change)
            }
            StoreOp::Register { holder, term: _, at } => self.register(*holder, *at),
            StoreOp::Read(task) => match self.rows.get(task) {
                Some(row) => StoreAnswer::Read(row.clone()),
                None => StoreAnswer::NoTask(*task),
            },
            StoreOp::ReadAll(_) => self.read_all(),
            StoreOp::Scan { after, limit, .. } => self.scan(*after, *limit),
            StoreOp::ReadTerm => StoreAnswer::TermIs(self.term_row()),
            StoreOp::TakeTerm { after, floor, leader, ttl, seize } => {
                self.take_term(*after, *floor, *leader, *ttl, *seize)
            }
            StoreOp::RenewTerm { term: _, ttl } => {
                self.hold_term(*ttl);
                StoreAnswer::Renewed
            }
            StoreOp::ReleaseTerm(_) => {
                self.hold_term(Millis::ZERO);
                StoreAnswer::Released
            }
        }
    }

    fn insert(
        &mut self,
        submission: &Submission,
        at: Time,
        claim: Option<(Holder, Term)>,
    ) -> StoreAnswer {
        if let Some((task, fingerprint)) = self.keys.get(&submission.key) {
            return match self.rows.get(task) {
                Some(row) if *fingerprint == submission.fingerprint => {
                    StoreAnswer::Inserted { row: row.clone(), existed: true }
                }
                _ => StoreAnswer::KeyTaken(*task),
            };
        }
        self.last_task = TaskId(self.last_task.0 + 1);
        let task = self.last_task;
        self.keys.insert(submission.key.clone(), (task, submission.fingerprint));
        self.rows.insert(task, new_row(task, submission, at));
        self.payloads.insert(task, submission.payload.clone());
        self.changes.rows.insert(task, at);
        self.changes.made.push(NewTask {
            task,
            key: submission.key.clone(),
            fingerprint: submission.fingerprint,
            payload: submission.payload.clone(),
        });
        if let Some((holder, term)) = claim {
            self.change(task, term.epoch, at, &Change::Claim { newest: None, holder });
        }
        StoreAnswer::Inserted { row: self.rows[&task].clone(), existed: false }
    }

    fn change(&mut self, task: TaskId, epoch: Epoch, at: Time, what: &Change) -> StoreAnswer {
        let Some(row) = self.rows.get_mut(&task) else {
            return StoreAnswer::NoTask(task);
        };
        let wrote = change::apply(Rules::ALL, row, epoch, what);
        if wrote == Wrote::Applied {
            self.changes.rows.insert(task, at);
        }
        self.changes.story.tell(row, epoch, at, what, wrote);
        let row = row.clone();
        let claimed = matches!(what, Change::Claim { .. }) && wrote == Wrote::Applied;
        let payload = claimed.then(|| self.payloads.get(&task).cloned()).flatten();
        StoreAnswer::Changed { wrote, row, payload: payload.unwrap_or(Payload::NONE) }
    }

    fn register(&mut self, holder: Holder, at: Time) -> StoreAnswer {
        let is_new = !self.workers.contains_key(&holder.worker);
        let known = self.workers.entry(holder.worker).or_default();
        if known.replaced.contains(&holder.incarnation) {
            return StoreAnswer::WasReplaced;
        }
        let before = std::mem::replace(&mut known.current, holder.incarnation);
        let replaced =
            (before != Incarnation::DOCUMENTED && before != holder.incarnation).then_some(before);
        if let Some(incarnation) = replaced {
            known.replaced.insert(incarnation);
            self.changes.replaced.push((Holder { worker: holder.worker, incarnation }, at));
        }
        if is_new || before != holder.incarnation {
            self.changes.workers.insert(holder.worker, at);
        }
        StoreAnswer::Registered { replaced }
    }

    fn read_all(&self) -> StoreAnswer {
        let open = self.rows.values().filter(|row| !row.status.is_terminal());
        let workers = self
            .workers
            .iter()
            .map(|(worker, known)| Holder { worker: *worker, incarnation: known.current });
        StoreAnswer::All { rows: open.cloned().collect(), workers: workers.collect() }
    }

    fn scan(&self, after: TaskId, limit: u32) -> StoreAnswer {
        let until = self.scans.get(&(after, limit)).copied().flatten();
        let last = until.map_or(Bound::Unbounded, Bound::Included);
        let stretch = self.rows.range((Bound::Excluded(after), last)).map(|(_, row)| row);
        let open = stretch.filter(|row| !row.status.is_terminal());
        StoreAnswer::Page { rows: open.cloned().collect(), until }
    }

    fn take_term(
        &mut self,
        after: Epoch,
        floor: Epoch,
        leader: Incarnation,
        ttl: Millis,
        seize: bool,
    ) -> StoreAnswer {
        let free = seize || self.term_until <= self.now;
        if self.term.epoch != after || !free {
            return StoreAnswer::NotTaken(self.term_row());
        }
        self.term = Term { epoch: after.max(floor).next(), leader };
        self.hold_term(ttl);
        StoreAnswer::Taken(self.term)
    }

    fn hold_term(&mut self, ttl: Millis) {
        self.term_until = self.now + ttl;
        self.changes.term = true;
    }

    fn term_row(&self) -> TermRow {
        TermRow { term: self.term, left: self.term_until.since(self.now) }
    }
}

/// The term under which an order counts, if it is a leader write.
fn claimed_term(order: &StoreOp) -> Option<Term> {
    match order {
        StoreOp::Insert { claim, .. } => claim.map(|(_, term)| term),
        StoreOp::Change { term, .. }
        | StoreOp::Register { term, .. }
        | StoreOp::ReadAll(term)
        | StoreOp::Scan { term, .. }
        | StoreOp::RenewTerm { term, .. }
        | StoreOp::ReleaseTerm(term) => Some(*term),
        StoreOp::Read(_) | StoreOp::ReadTerm | StoreOp::TakeTerm { .. } => None,
    }
}
