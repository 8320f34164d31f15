//! The task store as a table: rows, idempotency keys, workers' incarnations and the term.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Bound;

use super::change;
use crate::ids::{Epoch, Holder, Incarnation, TaskId, Term, WorkerId};
use crate::rules::{Rule, Rules};
use crate::spec::{IdempotencyKey, Payload, Submission};
use crate::store::{Change, Row, Status, StoreAnswer, StoreOp, TermRow, Wrote};
use crate::time::{Millis, Time};

/// A task as the table keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What decisions need.
    pub row: Row,
    /// What it runs.
    pub payload: Payload,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Incarnations {
    current: Incarnation,
    replaced: Vec<Incarnation>,
}

/// The whole store. `now` is the store's own clock, which alone judges the term's lease.
#[derive(Debug, Clone, Default)]
pub struct TaskTable {
    rules: Rules,
    tasks: BTreeMap<TaskId, Entry>,
    keys: BTreeMap<IdempotencyKey, (TaskId, u64)>,
    workers: BTreeMap<WorkerId, Incarnations>,
    term: Term,
    term_until: Time,
    last_task: TaskId,
}

impl TaskTable {
    /// An empty store.
    #[must_use]
    pub fn new() -> TaskTable {
        TaskTable::default()
    }

    /// An empty store that breaks the rules which `rules` leaves out.
    #[must_use]
    pub fn with_rules(rules: Rules) -> TaskTable {
        TaskTable { rules, ..TaskTable::default() }
    }

    /// Every task, ascending.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.tasks.values()
    }

    /// One task.
    #[must_use]
    pub fn entry(&self, task: TaskId) -> Option<&Entry> {
        self.tasks.get(&task)
    }

    /// Who leads, by the store's clock.
    #[must_use]
    pub fn term_row(&self, now: Time) -> TermRow {
        TermRow { term: self.term, left: self.term_until.since(now) }
    }

    /// Carries out one order.
    pub fn apply(&mut self, now: Time, op: &StoreOp) -> StoreAnswer {
        match op {
            StoreOp::Insert { submission, at, claim } => self.insert(now, submission, *at, *claim),
            StoreOp::Change { task, term, at: _, change } => self.change(now, *task, *term, change),
            StoreOp::Register { holder, term, at: _ } => self.register(now, *holder, *term),
            StoreOp::Read(task) => self.read(*task),
            StoreOp::ReadAll(term) => self.read_all(now, *term),
            StoreOp::Scan { term, after, limit } => self.scan(now, *term, *after, *limit),
            StoreOp::ReadTerm => StoreAnswer::TermIs(self.term_row(now)),
            StoreOp::TakeTerm { after, floor, leader, ttl, seize } => {
                self.take_term(now, *after, *floor, *leader, *ttl, *seize)
            }
            StoreOp::RenewTerm { term, ttl } => self.renew_term(now, *term, *ttl),
            StoreOp::ReleaseTerm(term) => self.release_term(now, *term),
        }
    }

    fn insert(
        &mut self,
        now: Time,
        submission: &Submission,
        at: Time,
        claim: Option<(Holder, Term)>,
    ) -> StoreAnswer {
        if let Some((_, term)) = claim
            && self.is_deposed(term)
        {
            return StoreAnswer::Deposed(self.term_row(now));
        }
        if let Some((task, fingerprint)) = self.keys.get(&submission.key)
            && self.rules.hold(Rule::KeyUnique)
        {
            return match self.tasks.get(task) {
                Some(entry) if *fingerprint == submission.fingerprint => {
                    StoreAnswer::Inserted { row: entry.row.clone(), existed: true }
                }
                _ => StoreAnswer::KeyTaken(*task),
            };
        }
        let row = self.insert_row(submission, at, claim);
        StoreAnswer::Inserted { row, existed: false }
    }

    fn insert_row(
        &mut self,
        submission: &Submission,
        at: Time,
        claim: Option<(Holder, Term)>,
    ) -> Row {
        self.last_task = TaskId(self.last_task.0 + 1);
        let mut row = new_row(self.last_task, submission, at);
        if let Some((holder, term)) = claim {
            let claim = Change::Claim { newest: None, holder };
            change::apply(self.rules, &mut row, term.epoch, &claim);
        }
        self.keys.insert(submission.key.clone(), (self.last_task, submission.fingerprint));
        let entry = Entry { row: row.clone(), payload: submission.payload.clone() };
        self.tasks.insert(self.last_task, entry);
        row
    }

    fn change(&mut self, now: Time, task: TaskId, term: Term, what: &Change) -> StoreAnswer {
        if self.is_deposed(term) {
            return StoreAnswer::Deposed(self.term_row(now));
        }
        let Some(entry) = self.tasks.get_mut(&task) else {
            return StoreAnswer::NoTask(task);
        };
        let wrote = change::apply(self.rules, &mut entry.row, term.epoch, what);
        let claimed = matches!(what, Change::Claim { .. }) && wrote == Wrote::Applied;
        let payload = if claimed { entry.payload.clone() } else { Payload::NONE };
        StoreAnswer::Changed { wrote, row: entry.row.clone(), payload }
    }

    fn register(&mut self, now: Time, holder: Holder, term: Term) -> StoreAnswer {
        if self.is_deposed(term) {
            return StoreAnswer::Deposed(self.term_row(now));
        }
        let known = self.workers.entry(holder.worker).or_default();
        if known.replaced.contains(&holder.incarnation) {
            return StoreAnswer::WasReplaced;
        }
        let before = core::mem::replace(&mut known.current, holder.incarnation);
        let replaced =
            (before != Incarnation::default() && before != holder.incarnation).then_some(before);
        known.replaced.extend(replaced);
        StoreAnswer::Registered { replaced }
    }

    fn read(&self, task: TaskId) -> StoreAnswer {
        match self.tasks.get(&task) {
            Some(entry) => StoreAnswer::Read(entry.row.clone()),
            None => StoreAnswer::NoTask(task),
        }
    }

    fn read_all(&self, now: Time, term: Term) -> StoreAnswer {
        if self.is_deposed(term) {
            return StoreAnswer::Deposed(self.term_row(now));
        }
        let open = self.tasks.values().filter(|entry| !entry.row.status.is_terminal());
        let workers = self
            .workers
            .iter()
            .map(|(worker, known)| Holder { worker: *worker, incarnation: known.current });
        StoreAnswer::All {
            rows: open.map(|entry| entry.row.clone()).collect(),
            workers: workers.collect(),
        }
    }

    fn scan(&self, now: Time, term: Term, after: TaskId, limit: u32) -> StoreAnswer {
        if self.is_deposed(term) {
            return StoreAnswer::Deposed(self.term_row(now));
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let behind = self.tasks.range((Bound::Excluded(after), Bound::Unbounded));
        let open = behind.map(|(_, entry)| &entry.row).filter(|row| !row.status.is_terminal());
        let rows: Vec<Row> = open.take(limit).cloned().collect();
        let until = if rows.len() == limit { rows.last().map(|row| row.task) } else { None };
        StoreAnswer::Page { rows, until }
    }

    fn take_term(
        &mut self,
        now: Time,
        after: Epoch,
        floor: Epoch,
        leader: Incarnation,
        ttl: Millis,
        seize: bool,
    ) -> StoreAnswer {
        let free = seize || self.term_until <= now;
        if self.term.epoch != after || !free {
            return StoreAnswer::NotTaken(self.term_row(now));
        }
        self.term = Term { epoch: after.max(floor).next(), leader };
        self.term_until = now + ttl;
        StoreAnswer::Taken(self.term)
    }

    fn renew_term(&mut self, now: Time, term: Term, ttl: Millis) -> StoreAnswer {
        if self.is_deposed(term) {
            return StoreAnswer::Deposed(self.term_row(now));
        }
        self.term_until = now + ttl;
        StoreAnswer::Renewed
    }

    fn release_term(&mut self, now: Time, term: Term) -> StoreAnswer {
        if self.is_deposed(term) {
            return StoreAnswer::Deposed(self.term_row(now));
        }
        self.term_until = now;
        StoreAnswer::Released
    }

    fn is_deposed(&self, term: Term) -> bool {
        self.rules.hold(Rule::TermCompared) && self.term != term
    }
}

/// A task as it is before anybody touched it.
#[must_use]
pub fn new_row(task: TaskId, submission: &Submission, at: Time) -> Row {
    Row {
        task,
        shape: submission.shape.clone(),
        limits: submission.limits,
        submitted_at: at,
        status: Status::Pending,
        attempt: None,
        holder: None,
        epoch: Epoch::default(),
        end: None,
        started: false,
        cancel_requested: false,
        failures: 0,
        lost: 0,
        not_before: Time::default(),
    }
}
