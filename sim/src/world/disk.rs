//! A worker's disk: what its agent wrote, less what a power cut took.

use tenure_core::command::Record;
use tenure_core::event::Remembered;
use tenure_core::ids::{AttemptRef, Incarnation, Term};
use tenure_core::outcome::Outcome;
use tenure_core::time::{Millis, Time};

/// Records are synced within this; a power cut before it loses them (docs/fencing.md, "Commit").
const SYNCED_WITHIN: Millis = Millis(50);

/// The records in the order in which they were written, and what they come to.
#[derive(Debug, Default)]
pub(super) struct Disk {
    records: Vec<(Time, Record)>,
    sum: Remembered,
    /// What the disk did not take. The agent of this start goes on without.
    refused: Vec<Record>,
}

impl Disk {
    pub(super) fn write(&mut self, now: Time, record: Record) {
        fold(&mut self.sum, &record);
        self.records.push((now, record));
    }

    /// The disk does not take a record.
    pub(super) fn refuse(&mut self, record: Record) {
        self.refused.push(record);
    }

    /// What an agent that starts finds.
    pub(super) fn remembered(&mut self) -> Remembered {
        self.refused.clear();
        self.sum.clone()
    }

    /// The host lost power: what was not synced is gone.
    pub(super) fn lose_unsynced(&mut self, now: Time) {
        let before = self.records.len();
        while self.records.last().is_some_and(|(at, _)| *at + SYNCED_WITHIN > now) {
            self.records.pop();
        }
        if self.records.len() < before {
            self.sum = Remembered::default();
            for (_, record) in &self.records {
                fold(&mut self.sum, record);
            }
        }
    }

    /// Whether this attempt, or a later one of its task, is known as given.
    pub(super) fn knows(&self, at: AttemptRef) -> bool {
        self.sum.given.iter().any(|given| given.task == at.task && given.attempt >= at.attempt)
    }

    /// Whether this outcome was ever written here, or the disk has refused it: a worker whose disk is broken
    /// tells its outcome all the same, since keeping silent would lose it for certain.
    pub(super) fn has_outcome(&self, at: AttemptRef, ran_by: Incarnation) -> bool {
        let written = self.records.iter().map(|(_, record)| record);
        written.chain(&self.refused).any(|record| match record {
            Record::Outcome(outcome) => outcome.at == at && outcome.ran_by == ran_by,
            Record::Given { .. } | Record::Highest(_) | Record::Acknowledged(..) => false,
        })
    }

    /// How many outcomes wait for their acknowledgement, as the agent sees it.
    pub(super) fn unacknowledged(&self) -> usize {
        let forgotten = |outcome: &&Outcome| {
            let record = Record::Acknowledged(outcome.at, outcome.ran_by);
            !self.refused.contains(&record)
        };
        self.sum.outcomes.iter().filter(forgotten).count()
    }

    /// The highest term seen.
    pub(super) fn highest(&self) -> Term {
        self.sum.highest
    }
}

fn fold(sum: &mut Remembered, record: &Record) {
    match record {
        Record::Given { at, ran_by: _, term } => {
            raise(sum, *term);
            match sum.given.binary_search_by_key(&at.task, |given| given.task) {
                Ok(place) => {
                    let given = &mut sum.given[place];
                    given.attempt = given.attempt.max(at.attempt);
                }
                Err(place) => sum.given.insert(place, *at),
            }
        }
        Record::Outcome(outcome) => {
            let same = |kept: &&mut Outcome| kept.at == outcome.at && kept.ran_by == outcome.ran_by;
            match sum.outcomes.iter_mut().find(same) {
                Some(kept) => *kept = outcome.clone(),
                None => sum.outcomes.push(outcome.clone()),
            }
        }
        Record::Highest(term) => raise(sum, *term),
        Record::Acknowledged(at, ran_by) => {
            sum.outcomes.retain(|kept| (kept.at, kept.ran_by) != (*at, *ran_by));
        }
    }
}

fn raise(sum: &mut Remembered, term: Term) {
    if term.epoch > sum.highest.epoch {
        sum.highest = term;
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::ids::{Attempt, Epoch, TaskId};
    use tenure_core::outcome::Verdict;
    use tenure_core::spec::Payload;

    use super::*;

    const AT: AttemptRef = AttemptRef { task: TaskId(1), attempt: Attempt::FIRST };
    const ME: Incarnation = Incarnation(7);

    fn outcome() -> Outcome {
        Outcome { at: AT, ran_by: ME, verdict: Verdict::Succeeded, report: Payload::NONE }
    }

    #[test]
    fn an_acknowledged_outcome_is_forgotten_and_its_attempt_is_not() {
        let mut disk = Disk::default();
        let term = Term { epoch: Epoch(3), leader: Incarnation(1) };
        disk.write(Time(0), Record::Given { at: AT, ran_by: ME, term });
        disk.write(Time(1), Record::Outcome(outcome()));
        assert_eq!(disk.remembered().outcomes, [outcome()]);
        disk.write(Time(2), Record::Acknowledged(AT, ME));
        assert!(disk.unacknowledged() == 0 && disk.knows(AT) && disk.has_outcome(AT, ME));
        assert_eq!(disk.highest(), term);
    }

    #[test]
    fn a_power_cut_takes_what_was_not_synced() {
        let mut disk = Disk::default();
        disk.write(Time(0), Record::Outcome(outcome()));
        disk.write(Time(60), Record::Acknowledged(AT, ME));
        disk.lose_unsynced(Time(100));
        assert_eq!(disk.remembered().outcomes, [outcome()]);
    }
}
