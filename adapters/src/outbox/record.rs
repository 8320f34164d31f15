//! A record as bytes: kind, time, then its numbers in a fixed order, little-endian; bytes of a report last.

use tenure_core::command::Record;
use tenure_core::ids::{Attempt, AttemptRef, Epoch, Incarnation, TaskId, Term};
use tenure_core::outcome::{Outcome, Verdict};
use tenure_core::spec::Payload;
use tenure_core::time::Time;

/// What stands on the disk: core's records, and one of the outbox's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// As core ordered it.
    Core(Record),
    /// This attempt runs no more although no outcome was written: its worker was killed.
    Ended(AttemptRef),
}

const GIVEN: u8 = 1;
const OUTCOME: u8 = 2;
const HIGHEST: u8 = 3;
const ACKNOWLEDGED: u8 = 4;
const ENDED: u8 = 5;

pub(super) fn encode(at: Time, entry: &Entry) -> Vec<u8> {
    let mut out = Out(Vec::with_capacity(64));
    match entry {
        Entry::Core(Record::Given { at: given, ran_by, term }) => {
            out.head(GIVEN, at).attempt(*given).u64(ran_by.0).term(*term);
        }
        Entry::Core(Record::Outcome(outcome)) => {
            out.head(OUTCOME, at).attempt(outcome.at).u64(outcome.ran_by.0);
            out.0.push(of_verdict(outcome.verdict));
            out.0.push(u8::from(outcome.report.0.is_some()));
            out.0.extend_from_slice(outcome.report.bytes());
        }
        Entry::Core(Record::Highest(term)) => {
            out.head(HIGHEST, at).term(*term);
        }
        Entry::Core(Record::Acknowledged(of, ran_by)) => {
            out.head(ACKNOWLEDGED, at).attempt(*of).u64(ran_by.0);
        }
        Entry::Ended(of) => {
            out.head(ENDED, at).attempt(*of);
        }
    }
    out.0
}

/// The record and its time; none if the bytes are none that this version writes.
pub(super) fn decode(body: &[u8]) -> Option<(Time, Entry)> {
    let mut from = In(body);
    let kind = from.u8()?;
    let at = Time(from.u64()?);
    let entry = match kind {
        GIVEN => Entry::Core(Record::Given {
            at: from.attempt()?,
            ran_by: Incarnation(from.u64()?),
            term: from.term()?,
        }),
        OUTCOME => Entry::Core(Record::Outcome(Outcome {
            at: from.attempt()?,
            ran_by: Incarnation(from.u64()?),
            verdict: verdict(from.u8()?)?,
            report: from.report()?,
        })),
        HIGHEST => Entry::Core(Record::Highest(from.term()?)),
        ACKNOWLEDGED => {
            Entry::Core(Record::Acknowledged(from.attempt()?, Incarnation(from.u64()?)))
        }
        ENDED => Entry::Ended(from.attempt()?),
        _ => return None,
    };
    from.0.is_empty().then_some((at, entry))
}

fn of_verdict(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Succeeded => 1,
        Verdict::Failed => 2,
        Verdict::FailedForGood => 3,
        Verdict::TimedOut => 4,
        Verdict::Stopped => 5,
        Verdict::HandedBack => 6,
    }
}

fn verdict(code: u8) -> Option<Verdict> {
    Some(match code {
        1 => Verdict::Succeeded,
        2 => Verdict::Failed,
        3 => Verdict::FailedForGood,
        4 => Verdict::TimedOut,
        5 => Verdict::Stopped,
        6 => Verdict::HandedBack,
        _ => return None,
    })
}

struct Out(Vec<u8>);

impl Out {
    fn head(&mut self, kind: u8, at: Time) -> &mut Out {
        self.0.push(kind);
        self.u64(at.0)
    }

    fn attempt(&mut self, at: AttemptRef) -> &mut Out {
        self.u64(at.task.0);
        self.0.extend_from_slice(&at.attempt.number().to_le_bytes());
        self
    }

    fn term(&mut self, term: Term) -> &mut Out {
        self.u64(term.epoch.0).u64(term.leader.0)
    }

    fn u64(&mut self, number: u64) -> &mut Out {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }
}

struct In<'a>(&'a [u8]);

impl In<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(|[byte]| byte)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn attempt(&mut self) -> Option<AttemptRef> {
        let task = TaskId(self.u64()?);
        let attempt = Attempt::new(self.take().map(u32::from_le_bytes)?)?;
        Some(AttemptRef { task, attempt })
    }

    fn term(&mut self) -> Option<Term> {
        Some(Term { epoch: Epoch(self.u64()?), leader: Incarnation(self.u64()?) })
    }

    /// The rest, which is there only if the byte before it says so.
    fn report(&mut self) -> Option<Payload> {
        let is_there = self.u8()?;
        let rest = std::mem::take(&mut self.0);
        match is_there {
            0 if rest.is_empty() => Some(Payload::NONE),
            1 => Some(Payload::of(rest)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<Entry> {
        let at = AttemptRef::new(TaskId(u64::MAX), Attempt::new(7).expect("not zero"));
        let term = Term { epoch: Epoch(3), leader: Incarnation(u64::MAX) };
        let ran_by = Incarnation(1 << 63);
        let reports = [Payload::NONE, Payload::of(b""), Payload::of(b"exit 0")];
        let verdicts = [
            Verdict::Succeeded,
            Verdict::Failed,
            Verdict::FailedForGood,
            Verdict::TimedOut,
            Verdict::Stopped,
            Verdict::HandedBack,
        ];
        let outcomes = reports.iter().flat_map(|report| {
            verdicts.map(|verdict| Outcome { at, ran_by, verdict, report: report.clone() })
        });
        let mut all: Vec<Entry> =
            outcomes.map(|outcome| Entry::Core(Record::Outcome(outcome))).collect();
        all.push(Entry::Core(Record::Given { at, ran_by, term }));
        all.push(Entry::Core(Record::Highest(term)));
        all.push(Entry::Core(Record::Acknowledged(at, ran_by)));
        all.push(Entry::Ended(at));
        all
    }

    #[test]
    fn every_record_reads_back_as_it_was_written() {
        for entry in all() {
            let bytes = encode(Time(99), &entry);
            assert_eq!(decode(&bytes), Some((Time(99), entry)));
        }
    }

    #[test]
    fn a_shortened_record_is_none() {
        for entry in all() {
            let bytes = encode(Time(99), &entry);
            let fixed = bytes.len()
                - if matches!(&entry, Entry::Core(Record::Outcome(outcome)) if !outcome.report.bytes().is_empty())
                {
                    6
                } else {
                    0
                };
            for cut in 0..fixed {
                assert_eq!(decode(&bytes[..cut]), None, "{entry:?} cut at {cut}");
            }
        }
    }
}
