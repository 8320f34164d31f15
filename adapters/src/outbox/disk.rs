//! The records in one file of the worker's directory.
//!
//! A record is written before it is answered, so it survives a kill of the process; a thread brings it to
//! the disk soon after, so that a power cut costs at most a rerun. When most of the file is dead it is
//! written anew beside itself and renamed: at every instant one whole file stands under the name.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tenure_core::command::Record;
use tenure_core::event::Remembered;
use tenure_core::outcome::Outcome;
use tenure_core::time::{Millis, Time};
use thiserror::Error;

use super::held::{Held, Keep};
use super::record::{self, Entry};
use crate::data_dir::{DataDir, sync_dir};
use crate::frames;
use crate::syncer::Syncer;
use crate::wall::{WallClock, machine_clock};

/// First bytes of the file: what it is, and the version of its records.
const MAGIC: &[u8; 8] = b"TENUREO\x01";

/// Below this a file is not worth writing anew.
const COMPACT_FROM: u64 = 1 << 20;

/// How an outbox is kept.
#[derive(Clone)]
pub struct OutboxOptions {
    /// How long an attempt that ran here is refused after its end. Default a day.
    pub given_keep: Millis,
    /// How long an acknowledged outcome is kept, in case the store goes back in time. Default 1 h.
    pub outbox_keep: Millis,
    /// How soon after its writing a record is on the disk. Default 20 ms, so that it is within 50 ms with a
    /// slow disk too.
    pub sync_after: Duration,
    /// The clock of the two above.
    pub clock: WallClock,
}

impl Default for OutboxOptions {
    fn default() -> OutboxOptions {
        OutboxOptions {
            given_keep: Millis(24 * 3_600_000),
            outbox_keep: Millis(3_600_000),
            sync_after: Duration::from_millis(20),
            clock: machine_clock(),
        }
    }
}

/// An outbox that cannot be read or written.
#[derive(Debug, Error)]
pub enum OutboxError {
    /// The file cannot be read or written.
    #[error(
        "{}: {error}; free space on that disk or check that this user may write there; nothing that was recorded before is lost",
        path.display()
    )]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It is some other file, or of a newer version of this program.
    #[error(
        "{}: not a record file of this version; give the worker a directory of its own, or use the tenure version that wrote it",
        path.display()
    )]
    Foreign {
        /// The file.
        path: PathBuf,
    },
}

/// What had to be mended at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Bytes of a write that a crash cut short: nothing of it had been answered.
    pub torn: usize,
    /// Bytes within the file that could not be read: the disk lost records.
    pub damaged: usize,
}

/// The worker's record file. Its directory is locked as long as the [`DataDir`] lives.
pub struct Outbox {
    path: PathBuf,
    options: OutboxOptions,
    held: Held,
    file: Arc<File>,
    /// Where the next record goes. What a failed write left beyond it is written over.
    end: u64,
    compact_at: u64,
    syncer: Syncer,
    recovered: Recovered,
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Outbox {
    /// Opens the worker's record file, or begins it, and tells what it holds.
    ///
    /// # Errors
    /// [`OutboxError`] if it cannot be read or written, or is no such file.
    pub fn open(
        dir: &DataDir,
        options: OutboxOptions,
    ) -> Result<(Outbox, Remembered), OutboxError> {
        let path = dir.path().join("outbox.records");
        let io = |error| OutboxError::Io { path: path.clone(), error };
        let bytes = read_or_begin(&path).map_err(io)?;
        if !bytes.starts_with(MAGIC) {
            return Err(OutboxError::Foreign { path });
        }
        let scanned = frames::scan(&bytes, MAGIC.len());
        let mut held = Held::default();
        for body in &scanned.bodies {
            let Some((at, entry)) = record::decode(&bytes[body.clone()]) else {
                return Err(OutboxError::Foreign { path });
            };
            held.take(at, &entry);
        }
        let recovered = Recovered { torn: bytes.len() - scanned.end, damaged: scanned.damaged };
        let file = Arc::new(open(&path).map_err(io)?);
        file.set_len(scanned.end as u64).map_err(io)?;
        let mut outbox = Outbox {
            syncer: Syncer::start(options.sync_after).map_err(io)?,
            path,
            options,
            held,
            file,
            end: scanned.end as u64,
            compact_at: COMPACT_FROM,
            recovered,
        };
        outbox.begin()?;
        let remembered = outbox.held.remembered();
        Ok((outbox, remembered))
    }

    /// Writes a record. When this returns, the record survives a kill of the process.
    ///
    /// # Errors
    /// [`OutboxError`] if it could not be written; then the file is as before.
    pub fn append(&mut self, record: &Record) -> Result<(), OutboxError> {
        let now = (self.options.clock)();
        self.write(now, Entry::Core(record.clone()))
    }

    /// Waits until everything written so far survives a power cut.
    ///
    /// # Errors
    /// [`OutboxError`] if the disk does not take it.
    pub fn sync(&mut self) -> Result<(), OutboxError> {
        self.file.sync_data().map_err(|error| {
            self.syncer.note_failure();
            self.io(error)
        })
    }

    /// What had to be mended at the start.
    #[must_use]
    pub fn recovered(&self) -> Recovered {
        self.recovered
    }

    /// Outcomes that the store acknowledged within the last hour or so: they can be said again if it goes
    /// back in time.
    pub fn acknowledged(&self) -> impl Iterator<Item = &Outcome> {
        self.held.acknowledged()
    }

    /// Whatever ran in an earlier process runs no more: its day of being refused begins.
    fn begin(&mut self) -> Result<(), OutboxError> {
        let now = (self.options.clock)();
        for open in self.held.open() {
            self.write(now, Entry::Ended(open))?;
        }
        self.held.forget(now, self.keep());
        Ok(())
    }

    fn write(&mut self, now: Time, entry: Entry) -> Result<(), OutboxError> {
        if self.syncer.has_failed() {
            // What the system could not bring to the disk it may have dropped: all is written anew.
            self.compact(now).map_err(|error| self.io(error))?;
        }
        let mut frame = Vec::new();
        frames::put(&mut frame, &record::encode(now, &entry));
        if let Err(error) = self.file.write_all_at(&frame, self.end) {
            // Best effort: what remains of it is no whole frame, and the next one goes over it.
            let _ = self.file.set_len(self.end);
            return Err(self.io(error));
        }
        self.end += frame.len() as u64;
        self.held.take(now, &entry);
        self.syncer.soon(&self.file);
        if self.end > self.compact_at {
            self.try_compact(now);
        }
        Ok(())
    }

    /// A file that cannot be written anew still serves; it is tried again when it has grown further.
    fn try_compact(&mut self, now: Time) {
        if let Err(error) = self.compact(now) {
            tracing::warn!("{}", self.io(error));
            self.compact_at = self.end.saturating_mul(2);
        }
    }

    fn compact(&mut self, now: Time) -> io::Result<()> {
        self.held.forget(now, self.keep());
        let mut bytes = MAGIC.to_vec();
        for (at, entry) in self.held.records() {
            frames::put(&mut bytes, &record::encode(at, &entry));
        }
        let beside = self.path.with_extension("new");
        let file = replace(&self.path, &beside, &bytes)?;
        self.file = Arc::new(file);
        self.end = bytes.len() as u64;
        self.compact_at = COMPACT_FROM.max(self.end.saturating_mul(2));
        self.syncer.forget_failure();
        Ok(())
    }

    fn keep(&self) -> Keep {
        Keep { given: self.options.given_keep, acknowledged: self.options.outbox_keep }
    }

    fn io(&self, error: io::Error) -> OutboxError {
        OutboxError::Io { path: self.path.clone(), error }
    }
}

fn read_or_begin(path: &Path) -> io::Result<Vec<u8>> {
    let beside = path.with_extension("new");
    match std::fs::read(path) {
        // A first start that a crash cut short: nothing can have been recorded.
        Ok(bytes) if bytes.len() < MAGIC.len() && MAGIC.starts_with(&bytes) => {}
        Ok(bytes) => return Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    replace(path, &beside, MAGIC)?;
    Ok(MAGIC.to_vec())
}

/// Puts a file of these bytes in the place of `path`; a crash leaves the old one or the new one.
fn replace(path: &Path, beside: &Path, bytes: &[u8]) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).open(beside)?;
    file.write_all_at(bytes, 0)?;
    file.sync_all()?;
    std::fs::rename(beside, path)?;
    sync_dir(path.parent().unwrap_or(Path::new(".")))?;
    Ok(file)
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}
