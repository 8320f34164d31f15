//! What the records on the disk add up to.

use std::collections::BTreeMap;

use tenure_core::command::Record;
use tenure_core::event::Remembered;
use tenure_core::ids::{Attempt, AttemptRef, Incarnation, TaskId, Term};
use tenure_core::outcome::Outcome;
use tenure_core::time::{Millis, Time};

use super::record::Entry;

/// The highest attempt of a task that this worker was given.
#[derive(Debug)]
struct Given {
    attempt: Attempt,
    ran_by: Incarnation,
    term: Term,
    at: Time,
    /// When it ran no more.
    ended: Option<Time>,
}

#[derive(Debug)]
struct Kept {
    outcome: Outcome,
    at: Time,
    acknowledged: Option<Time>,
}

/// Everything that the worker remembers.
#[derive(Debug, Default)]
pub(super) struct Held {
    highest: Term,
    highest_at: Time,
    given: BTreeMap<TaskId, Given>,
    outcomes: BTreeMap<(AttemptRef, Incarnation), Kept>,
}

/// How long what is over is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keep {
    pub(super) given: Millis,
    pub(super) acknowledged: Millis,
}

impl Held {
    /// Takes in one record.
    pub(super) fn take(&mut self, at: Time, entry: &Entry) {
        match entry {
            Entry::Core(Record::Given { at: given, ran_by, term }) => {
                self.raise(at, *term);
                self.given(at, *given, *ran_by, *term);
            }
            Entry::Core(Record::Outcome(outcome)) => {
                self.end(at, outcome.at);
                let kept = Kept { outcome: outcome.clone(), at, acknowledged: None };
                self.outcomes.entry((outcome.at, outcome.ran_by)).or_insert(kept);
            }
            Entry::Core(Record::Highest(term)) => self.raise(at, *term),
            Entry::Core(Record::Acknowledged(of, ran_by)) => {
                if let Some(kept) = self.outcomes.get_mut(&(*of, *ran_by)) {
                    kept.acknowledged.get_or_insert(at);
                }
            }
            Entry::Ended(of) => self.end(at, *of),
        }
    }

    /// What core is told at the start.
    pub(super) fn remembered(&self) -> Remembered {
        let given = self.given.iter();
        let waiting = self.outcomes.values().filter(|kept| kept.acknowledged.is_none());
        Remembered {
            highest: self.highest,
            given: given.map(|(task, given)| AttemptRef::new(*task, given.attempt)).collect(),
            outcomes: waiting.map(|kept| kept.outcome.clone()).collect(),
        }
    }

    /// Outcomes that were acknowledged but are kept in case the store goes back in time.
    pub(super) fn acknowledged(&self) -> impl Iterator<Item = &Outcome> {
        self.outcomes.values().filter(|kept| kept.acknowledged.is_some()).map(|kept| &kept.outcome)
    }

    /// Attempts of which no end is known.
    pub(super) fn open(&self) -> Vec<AttemptRef> {
        let open = self.given.iter().filter(|(_, given)| given.ended.is_none());
        open.map(|(task, given)| AttemptRef::new(*task, given.attempt)).collect()
    }

    /// Forgets what was over long enough ago.
    pub(super) fn forget(&mut self, now: Time, keep: Keep) {
        self.given.retain(|_, given| given.ended.is_none_or(|at| now < at + keep.given));
        self.outcomes
            .retain(|_, kept| kept.acknowledged.is_none_or(|at| now < at + keep.acknowledged));
    }

    /// The fewest records that add up to this.
    pub(super) fn records(&self) -> Vec<(Time, Entry)> {
        let mut records = vec![(self.highest_at, Entry::Core(Record::Highest(self.highest)))];
        for (task, given) in &self.given {
            let at = AttemptRef::new(*task, given.attempt);
            let record = Record::Given { at, ran_by: given.ran_by, term: given.term };
            records.push((given.at, Entry::Core(record)));
            records.extend(given.ended.map(|ended| (ended, Entry::Ended(at))));
        }
        for ((of, ran_by), kept) in &self.outcomes {
            records.push((kept.at, Entry::Core(Record::Outcome(kept.outcome.clone()))));
            let said = Entry::Core(Record::Acknowledged(*of, *ran_by));
            records.extend(kept.acknowledged.map(|at| (at, said)));
        }
        records
    }

    fn raise(&mut self, at: Time, term: Term) {
        if term.epoch > self.highest.epoch {
            self.highest = term;
            self.highest_at = at;
        }
    }

    fn given(&mut self, at: Time, of: AttemptRef, ran_by: Incarnation, term: Term) {
        let is_higher = self.given.get(&of.task).is_none_or(|known| known.attempt < of.attempt);
        if is_higher {
            let given = Given { attempt: of.attempt, ran_by, term, at, ended: None };
            self.given.insert(of.task, given);
        }
    }

    fn end(&mut self, at: Time, of: AttemptRef) {
        if let Some(given) = self.given.get_mut(&of.task)
            && given.attempt == of.attempt
        {
            given.ended.get_or_insert(at);
        }
    }
}
