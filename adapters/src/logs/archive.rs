//! The master's files: `<dir>/<task / 1000>/<task>/<attempt>.log`.
//!
//! A task keeps its first lines up to a limit; of the rest only their number and size are kept, in
//! `<attempt>.over`, so that a worker can be told that they are dealt with.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::ids::{Attempt, AttemptRef, TaskId};
use tokio::sync::watch;

use super::LogError;
use super::file::{LineFile, make_parent, stored};
use super::line::{Item, LINE_HEAD, Line, StoredLine};
use crate::frames;

/// Logs whose places are remembered while nobody writes to or follows them.
const REMEMBERED: usize = 10_000;
/// One read gives about so many bytes at most.
const READ_BYTES: usize = 1 << 20;

/// All logs.
pub(super) struct Archive {
    dir: PathBuf,
    task_limit: u64,
    logs: Mutex<HashMap<AttemptRef, Arc<Entry>>>,
    uses: AtomicU64,
}

/// One attempt's log.
struct Entry {
    next: watch::Sender<u64>,
    used: AtomicU64,
    log: Mutex<Option<Log>>,
}

struct Log {
    file: LineFile,
    /// Bytes of the task's other attempts when this one was first looked at.
    others: u64,
    over: Option<Over>,
}

/// What came after the limit was reached.
#[derive(Debug, Clone, Copy, Default)]
struct Over {
    /// The offset after the last line.
    next: u64,
    /// Bytes of text that were not kept.
    bytes: u64,
    /// When the last line was read.
    at_ms: u64,
}

impl Archive {
    pub(super) fn new(dir: &Path, task_limit: u64) -> Archive {
        let (logs, uses) = (Mutex::default(), AtomicU64::new(0));
        Archive { dir: dir.to_owned(), task_limit, logs, uses }
    }

    /// Adds what is new of these lines. Gives the offset that must come next: lines below it were there
    /// already, and if it is below `first` something is missing in between and nothing was added.
    pub(super) fn append(
        &self,
        at: AttemptRef,
        first: u64,
        lines: &[Line],
    ) -> Result<u64, LogError> {
        let entry = self.entry(at);
        let mut slot = self.load(at, &entry)?;
        let log = slot.as_mut().expect("it was just loaded");
        let path = log.file.path.clone();
        let known = log.next().checked_sub(first).map(usize::try_from);
        if let Some(Ok(known)) = known
            && known < lines.len()
        {
            log.add(&lines[known..], self.task_limit).map_err(LogError::io(&path))?;
        }
        entry.next.send_replace(log.next());
        Ok(log.next())
    }

    /// The offset after the last line.
    pub(super) fn next_offset(&self, at: AttemptRef) -> Result<u64, LogError> {
        let entry = self.entry(at);
        let slot = self.load(at, &entry)?;
        Ok(slot.as_ref().expect("it was just loaded").next())
    }

    /// Lines from an offset on, at most so many.
    pub(super) fn read(
        &self,
        at: AttemptRef,
        from: u64,
        limit: usize,
    ) -> Result<Vec<StoredLine>, LogError> {
        let entry = self.entry(at);
        let (span, kept, over) = {
            let slot = self.load(at, &entry)?;
            let log = slot.as_ref().expect("it was just loaded");
            (log.file.span(from), log.file.next, log.over)
        };
        let mut lines: Vec<StoredLine> = Vec::new();
        let mut room = Room { lines: limit, bytes: READ_BYTES };
        span.read(|item| {
            if room.is_used_up() {
                return false;
            }
            // Fillers say nothing.
            if let Item::Line { offset, is_error, at_ms, text, continues } = item {
                room.take(text.len());
                lines.push(stored((offset, is_error, at_ms, text, continues)));
            }
            true
        })
        .map_err(LogError::io(&self.path(at)))?;
        if !room.is_used_up()
            && let Some(over) = over
            && over.next > from
        {
            lines.push(self.notice(over, kept.max(from)));
        }
        Ok(lines)
    }

    /// Tells the offset after the last line whenever it grows.
    pub(super) fn follow(&self, at: AttemptRef) -> watch::Receiver<u64> {
        self.entry(at).next.subscribe()
    }

    /// The attempts of a task that have a log, ascending.
    pub(super) fn attempts(&self, task: TaskId) -> Result<Vec<Attempt>, LogError> {
        let dir = self.task_dir(task);
        let mut attempts = Vec::new();
        for name in names(&dir).map_err(LogError::io(&dir))? {
            let number = name.strip_suffix(".log").and_then(|number| number.parse().ok());
            attempts.extend(number.and_then(Attempt::new));
        }
        attempts.sort_unstable();
        Ok(attempts)
    }

    /// Deletes every line of a task.
    pub(super) fn remove(&self, task: TaskId) -> Result<(), LogError> {
        lock(&self.logs).retain(|at, _| at.task != task);
        let dir = self.task_dir(task);
        match std::fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LogError::io(&dir)(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn notice(&self, over: Over, from: u64) -> StoredLine {
        let lines = over.next - from;
        let text = format!(
            "[tenure: {lines} more lines were not kept: the log of a task is limited to {} bytes; {} bytes were dropped]",
            self.task_limit, over.bytes
        );
        Line::notice(over.at_ms, text).at(over.next - 1)
    }

    fn entry(&self, at: AttemptRef) -> Arc<Entry> {
        let used = self.uses.fetch_add(1, Ordering::Relaxed);
        let mut logs = lock(&self.logs);
        let entry = logs.entry(at).or_insert_with(|| {
            Arc::new(Entry {
                next: watch::Sender::new(0),
                used: AtomicU64::new(used),
                log: Mutex::new(None),
            })
        });
        entry.used.store(used, Ordering::Relaxed);
        let entry = Arc::clone(entry);
        if logs.len() > REMEMBERED {
            forget_half(&mut logs);
        }
        entry
    }

    fn load<'a>(
        &self,
        at: AttemptRef,
        entry: &'a Entry,
    ) -> Result<MutexGuard<'a, Option<Log>>, LogError> {
        let mut slot = lock(&entry.log);
        if slot.is_none() {
            let path = self.path(at);
            let log = Log::open(&path).map_err(LogError::io(&path))?;
            entry.next.send_replace(log.next());
            *slot = Some(log);
        }
        Ok(slot)
    }

    fn task_dir(&self, task: TaskId) -> PathBuf {
        self.dir.join((task.0 / 1000).to_string()).join(task.0.to_string())
    }

    fn path(&self, at: AttemptRef) -> PathBuf {
        self.task_dir(at.task).join(format!("{}.log", at.attempt.number()))
    }
}

impl Log {
    fn open(path: &Path) -> io::Result<Log> {
        let file = LineFile::open(path.to_owned(), 0)?;
        let mut others = 0;
        let dir = path.parent().unwrap_or(Path::new("."));
        for name in names(dir)? {
            let other = dir.join(name);
            if other != path {
                others += std::fs::metadata(&other).map_or(0, |found| found.len());
            }
        }
        Ok(Log { file, others, over: Over::read(&over_path(path))? })
    }

    fn next(&self) -> u64 {
        self.over.map_or(self.file.next, |over| over.next)
    }

    fn add(&mut self, lines: &[Line], task_limit: u64) -> io::Result<()> {
        let room = match self.over {
            Some(_) => 0,
            None => task_limit.saturating_sub(self.others.saturating_add(self.file.end)),
        };
        let (kept, dropped) = lines.split_at(fitting(lines, room));
        if !kept.is_empty() {
            if self.file.end == 0 {
                make_parent(&self.file.path)?;
            }
            self.file.append(kept)?;
        }
        if let Some(last) = dropped.last() {
            make_parent(&self.file.path)?;
            let bytes: usize = dropped.iter().map(|line| line.text.len()).sum();
            let over = Over {
                next: self.next() + dropped.len() as u64,
                bytes: self.over.unwrap_or_default().bytes + bytes as u64,
                at_ms: last.at_ms,
            };
            over.write(&over_path(&self.file.path))?;
            self.over = Some(over);
        }
        Ok(())
    }
}

impl Over {
    fn read(path: &Path) -> io::Result<Option<Over>> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let scanned = frames::scan(&bytes, 0);
        let body = scanned.bodies.first().map(|body| &bytes[body.clone()]);
        let numbers = body.and_then(|body| body.as_chunks::<8>().0.first_chunk::<3>());
        Ok(numbers.map(|numbers| {
            let [next, bytes, at_ms] = numbers.map(u64::from_le_bytes);
            Over { next, bytes, at_ms }
        }))
    }

    fn write(self, path: &Path) -> io::Result<()> {
        let body = [self.next, self.bytes, self.at_ms].map(u64::to_le_bytes);
        let mut frame = Vec::new();
        frames::put(&mut frame, body.as_flattened());
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        file.write_all_at(&frame, 0)
    }
}

/// How much more a reader takes.
struct Room {
    lines: usize,
    bytes: usize,
}

impl Room {
    fn is_used_up(&self) -> bool {
        self.lines == 0 || self.bytes == 0
    }

    fn take(&mut self, bytes: usize) {
        self.lines -= 1;
        self.bytes = self.bytes.saturating_sub(bytes + LINE_HEAD);
    }
}

fn fitting(lines: &[Line], room: u64) -> usize {
    let mut bytes = 0;
    let fits = lines.iter().take_while(|line| {
        // Fillers are stored as their number.
        bytes += if line.is_filler() { 0 } else { (line.text.len() + LINE_HEAD) as u64 };
        bytes <= room
    });
    fits.count()
}

fn forget_half(logs: &mut HashMap<AttemptRef, Arc<Entry>>) {
    let mut idle: Vec<(u64, AttemptRef)> = logs
        .iter()
        .filter(|(_, entry)| Arc::strong_count(entry) == 1 && entry.next.receiver_count() == 0)
        .map(|(at, entry)| (entry.used.load(Ordering::Relaxed), *at))
        .collect();
    idle.sort_unstable();
    for (_, at) in &idle[..idle.len().min(REMEMBERED / 2)] {
        logs.remove(at);
    }
}

fn names(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
    }
    Ok(names)
}

fn over_path(path: &Path) -> PathBuf {
    path.with_extension("over")
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is made in one step at its end, so a panic leaves no half-made state.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
