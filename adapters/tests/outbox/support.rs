//! A worker's directory, and records for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use tenure_adapters::data_dir::DataDir;
use tenure_adapters::outbox::{Outbox, OutboxError, OutboxOptions};
use tenure_core::command::Record;
use tenure_core::event::Remembered;
use tenure_core::ids::{Attempt, AttemptRef, Epoch, Incarnation, TaskId, Term};
use tenure_core::outcome::{Outcome, Verdict};
use tenure_core::spec::Payload;
use tenure_core::time::Time;

pub(crate) const RAN_BY: Incarnation = Incarnation(u64::MAX);
pub(crate) const DAY: u64 = 24 * 3_600_000;
pub(crate) const HOUR: u64 = 3_600_000;

/// A directory with a clock that stands until it is moved.
pub(crate) struct Place {
    pub(crate) dir: TempDir,
    clock: Arc<AtomicU64>,
}

/// An outbox and the lock that it lives under.
pub(crate) struct Opened {
    pub(crate) outbox: Outbox,
    pub(crate) remembered: Remembered,
    _lock: DataDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        let dir = tempfile::tempdir().expect("a temporary directory");
        Place { dir, clock: Arc::new(AtomicU64::new(1_700_000_000_000)) }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.dir.path().join("outbox.records")
    }

    pub(crate) fn pass(&self, millis: u64) {
        self.clock.fetch_add(millis, Ordering::Relaxed);
    }

    pub(crate) fn open(&self) -> Opened {
        self.try_open().expect("the file opens")
    }

    pub(crate) fn try_open(&self) -> Result<Opened, OutboxError> {
        open(self.dir.path(), Arc::clone(&self.clock))
    }
}

pub(crate) fn open(dir: &Path, clock: Arc<AtomicU64>) -> Result<Opened, OutboxError> {
    let lock = DataDir::lock(dir).expect("nobody else has the directory");
    let options = OutboxOptions {
        clock: Arc::new(move || Time(clock.load(Ordering::Relaxed))),
        ..OutboxOptions::default()
    };
    let (outbox, remembered) = Outbox::open(&lock, options)?;
    Ok(Opened { outbox, remembered, _lock: lock })
}

impl Opened {
    pub(crate) fn write(&mut self, record: &Record) {
        self.outbox.append(record).expect("the disk takes it");
    }
}

pub(crate) fn at(task: u64, attempt: u32) -> AttemptRef {
    AttemptRef::new(TaskId(task), Attempt::new(attempt).expect("attempts begin at 1"))
}

pub(crate) fn term(epoch: u64) -> Term {
    Term { epoch: Epoch(epoch), leader: Incarnation(epoch << 32) }
}

pub(crate) fn given(task: u64, attempt: u32, epoch: u64) -> Record {
    Record::Given { at: at(task, attempt), ran_by: RAN_BY, term: term(epoch) }
}

pub(crate) fn outcome(task: u64, attempt: u32, report: &[u8]) -> Outcome {
    Outcome {
        at: at(task, attempt),
        ran_by: RAN_BY,
        verdict: Verdict::Succeeded,
        report: Payload::of(report),
    }
}

pub(crate) fn acknowledged(task: u64, attempt: u32) -> Record {
    Record::Acknowledged(at(task, attempt), RAN_BY)
}
