//! Random orders that are mostly sensible: about tasks that exist, by the leader that leads, for the newest
//! attempt of its holder; and now and then about none of these.

use std::num::NonZeroU32;
use std::sync::Arc;

use tenure_core::ids::{
    Attempt, AttemptRef, Epoch, Holder, Incarnation, LabelId, TaskId, Term, WorkerId,
};
use tenure_core::model::task_table::TaskTable;
use tenure_core::outcome::{Outcome, Verdict};
use tenure_core::random::Stream;
use tenure_core::spec::{IdempotencyKey, Labels, Limits, Payload, Shape, Submission};
use tenure_core::store::{Change, LoseReason, StoreOp};
use tenure_core::time::{Millis, Time};

/// Names of this many workers and labels occur.
pub(crate) const WORKERS: u32 = 4;
pub(crate) const LABELS: u32 = 3;

/// What arrives at once: one order or many.
pub(crate) fn draw(random: &mut Stream, table: &TaskTable, now: Time) -> Vec<StoreOp> {
    let most = if random.up_to(3) == 0 { 60 } else { 6 };
    let count = 1 + random.up_to(most);
    (0..count).map(|_| order(random, table, now)).collect()
}

fn order(random: &mut Stream, table: &TaskTable, now: Time) -> StoreOp {
    let term = term(random, table, now);
    match random.up_to(99) {
        0..=19 => {
            let claim = chance(random, 3).then(|| (holder(random), term));
            StoreOp::Insert { submission: submission(random), at: now, claim }
        }
        20..=79 => {
            let task = task(random, table);
            StoreOp::Change { task, term, at: now, change: change(random, table, task, now) }
        }
        80..=85 => StoreOp::Register { holder: holder(random), term, at: now },
        86..=88 => StoreOp::Read(task(random, table)),
        89 => scan(random, term),
        90 => StoreOp::ReadAll(term),
        91 => StoreOp::ReadTerm,
        92..=93 => take_term(random, table, now),
        94..=98 => StoreOp::RenewTerm { term, ttl: Millis(random.up_to(2_000)) },
        _ => StoreOp::ReleaseTerm(term),
    }
}

fn scan(random: &mut Stream, term: Term) -> StoreOp {
    let after = TaskId(random.up_to(10));
    let limit = u32::try_from(1 + random.up_to(5)).expect("it is small");
    StoreOp::Scan { term, after, limit }
}

fn take_term(random: &mut Stream, table: &TaskTable, now: Time) -> StoreOp {
    let current = table.term_row(now).term.epoch;
    let after = if chance(random, 4) { Epoch(random.up_to(3)) } else { current };
    StoreOp::TakeTerm {
        after,
        floor: Epoch(if chance(random, 3) { current.0 + random.up_to(3) } else { 0 }),
        leader: Incarnation(random.next_u64()),
        ttl: Millis(random.up_to(2_000)),
        seize: chance(random, 3),
    }
}

fn submission(random: &mut Stream) -> Submission {
    let number = random.up_to(199);
    let odd = ["", "'\"\\", "ключ-🔑", "nul\0inside", "1e5", "null"];
    let key = match usize::try_from(number).ok().and_then(|number| odd.get(number)) {
        Some(odd) => (*odd).to_owned(),
        None => format!("key-{number}"),
    };
    let limits = Limits {
        priority: i16::try_from(random.up_to(200)).unwrap_or_default() - 100,
        max_attempts: u16::try_from(random.up_to(4)).unwrap_or_default(),
        max_lost: u16::try_from(random.up_to(4)).unwrap_or_default(),
        patience: chance(random, 3).then(|| Millis(random.up_to(1 << 40))),
        timeout: chance(random, 3).then(|| Millis(random.up_to(100_000))),
    };
    let labels: Vec<LabelId> = (0..LABELS).filter(|_| chance(random, 3)).map(LabelId).collect();
    Submission {
        shape: Shape {
            slots: u16::try_from(random.up_to(3)).unwrap_or_default(),
            gpus: u16::try_from(random.up_to(9)).unwrap_or_default(),
            labels: Labels::of(&labels),
        },
        limits,
        payload: bytes(random),
        key: IdempotencyKey(Arc::from(key)),
        fingerprint: u64::MAX - random.up_to(1),
    }
}

fn bytes(random: &mut Stream) -> Payload {
    match random.up_to(9) {
        0 => Payload::NONE,
        1 => Payload::of(&[]),
        _ => {
            let length = random.up_to(40);
            let bytes: Vec<u8> = (0..length).map(|_| random.next_u64().to_le_bytes()[0]).collect();
            Payload::of(&bytes)
        }
    }
}

fn change(random: &mut Stream, table: &TaskTable, task: TaskId, now: Time) -> Change {
    let row = table.entry(task).map(|entry| &entry.row);
    let newest = row.and_then(|row| row.attempt);
    let holder = match row.and_then(|row| row.holder) {
        Some(holder) if !chance(random, 8) => holder,
        _ => holder(random),
    };
    let attempt = near(random, newest);
    let incarnation = holder.incarnation;
    match random.up_to(19) {
        0..=6 => {
            let newest = if chance(random, 8) { Some(attempt) } else { newest };
            Change::Claim { newest, holder: self::holder(random) }
        }
        7 => Change::Undo { attempt, incarnation },
        8..=9 => Change::Lose {
            attempt,
            incarnation,
            counted: chance(random, 2),
            reason: LoseReason::Silent,
        },
        10..=11 => Change::Keep { attempt, holder },
        12..=15 => Change::Commit {
            outcome: Outcome {
                at: AttemptRef::new(task, attempt),
                ran_by: incarnation,
                verdict: verdict(random),
                report: bytes(random),
            },
            retry_at: Time(now.0 + random.up_to(1_000)),
        },
        16 => Change::Cancel { force: chance(random, 2) },
        17..=18 => Change::MarkStarted { attempt, incarnation },
        _ => Change::Lift { attempt, holder },
    }
}

fn verdict(random: &mut Stream) -> Verdict {
    match random.up_to(9) {
        0..=1 => Verdict::Succeeded,
        2..=4 => Verdict::Failed,
        5 => Verdict::FailedForGood,
        6 => Verdict::TimedOut,
        7 => Verdict::Stopped,
        _ => Verdict::HandedBack,
    }
}

/// Mostly the newest attempt, else one a little lower or higher.
fn near(random: &mut Stream, newest: Option<Attempt>) -> Attempt {
    let newest = newest.map_or(1, Attempt::number);
    let number = match random.up_to(9) {
        0 => newest.saturating_sub(1),
        1 => newest + 1,
        _ => newest,
    };
    Attempt(NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN))
}

fn task(random: &mut Stream, table: &TaskTable) -> TaskId {
    let known = table.entries().count() as u64;
    // One more than there are: sometimes none, or one that this very batch makes.
    TaskId(1 + random.up_to(known + 1))
}

fn term(random: &mut Stream, table: &TaskTable, now: Time) -> Term {
    let current = table.term_row(now).term;
    match random.up_to(29) {
        0 => Term { epoch: Epoch(current.epoch.0 + 1), leader: current.leader },
        1 => Term { epoch: current.epoch, leader: Incarnation(7) },
        _ => current,
    }
}

fn holder(random: &mut Stream) -> Holder {
    let worker = WorkerId(u32::try_from(random.up_to(u64::from(WORKERS - 1))).unwrap_or_default());
    // The highest bit is set in some, as in half of all random incarnations.
    let incarnation = random.up_to(3);
    Holder { worker, incarnation: Incarnation(incarnation * (u64::MAX / 3)) }
}

fn chance(random: &mut Stream, one_in: u64) -> bool {
    random.up_to(one_in - 1) == 0
}
