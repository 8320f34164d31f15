//! The master's logs for everybody else: appends on a thread of their own, reads beside it.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use tenure_core::ids::{Attempt, AttemptRef, TaskId};
use tokio::sync::{mpsc, oneshot, watch};

use super::LogError;
use super::archive::Archive;
use super::line::{Line, StoredLine};

/// Appends that may wait for the disk before who appends must wait too.
const WAITING: usize = 1024;

/// How logs are kept.
#[derive(Debug, Clone, Copy)]
pub struct LogOptions {
    /// Bytes of lines kept for one task. Default 64 MiB.
    pub task_limit: u64,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions { task_limit: 64 << 20 }
    }
}

struct Append {
    at: AttemptRef,
    first: u64,
    lines: Vec<Line>,
    answer: oneshot::Sender<Result<u64, LogError>>,
}

/// The logs of a master.
pub struct LogStore {
    archive: Arc<Archive>,
    appends: Mutex<Option<mpsc::Sender<Append>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for LogStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogStore").finish_non_exhaustive()
    }
}

impl LogStore {
    /// Logs in files under this directory, made if need be. The caller holds the lock of the data directory.
    ///
    /// # Errors
    /// [`LogError`] if the directory cannot be made or no thread can be started.
    pub fn open(dir: &Path, options: LogOptions) -> Result<LogStore, LogError> {
        std::fs::create_dir_all(dir).map_err(LogError::io(dir))?;
        let archive = Arc::new(Archive::new(dir, options.task_limit));
        let (appends, mut waiting) = mpsc::channel::<Append>(WAITING);
        let own = Arc::clone(&archive);
        let thread = std::thread::Builder::new()
            .name("logs".to_owned())
            .spawn(move || {
                while let Some(Append { at, first, lines, answer }) = waiting.blocking_recv() {
                    // Whoever asked may have ended; the lines are stored all the same.
                    let _ = answer.send(own.append(at, first, &lines));
                }
            })
            .map_err(LogError::io(dir))?;
        Ok(LogStore {
            archive,
            appends: Mutex::new(Some(appends)),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Adds lines of an attempt, the first of which has this offset, and gives the offset that must come
    /// next. Lines that are stored already are ignored. If the answer is below `first`, lines in between are
    /// missing and nothing was added: send again from there.
    ///
    /// The lines survive a kill of the process once this answers.
    ///
    /// # Errors
    /// [`LogError`] if the disk does not take them; then send them again.
    pub async fn append(
        &self,
        at: AttemptRef,
        first: u64,
        lines: Vec<Line>,
    ) -> Result<u64, LogError> {
        let appends = lock(&self.appends).clone().ok_or(LogError::Closed)?;
        let (answer, answered) = oneshot::channel();
        let append = Append { at, first, lines, answer };
        appends.send(append).await.map_err(|_| LogError::Closed)?;
        answered.await.map_err(|_| LogError::Closed)?
    }

    /// The offset after the last stored line: where a worker goes on. 0 for an attempt without lines.
    ///
    /// # Errors
    /// [`LogError`] if the file cannot be read.
    pub async fn next_offset(&self, at: AttemptRef) -> Result<u64, LogError> {
        self.beside(move |archive| archive.next_offset(at)).await
    }

    /// Lines from this offset on: at most so many, and at most about 1 MiB. Offsets ascend but may leave
    /// gaps, where lines were dropped; a line of our own then says how many.
    ///
    /// # Errors
    /// [`LogError`] if the file cannot be read.
    pub async fn read(
        &self,
        at: AttemptRef,
        from: u64,
        limit: usize,
    ) -> Result<Vec<StoredLine>, LogError> {
        self.beside(move |archive| archive.read(at, from, limit)).await
    }

    /// The attempts of a task that have a log, ascending.
    ///
    /// # Errors
    /// [`LogError`] if the directory cannot be read.
    pub async fn attempts(&self, task: TaskId) -> Result<Vec<Attempt>, LogError> {
        self.beside(move |archive| archive.attempts(task)).await
    }

    /// Changes whenever lines of this attempt were added, to the offset after the last. Subscribe first, then
    /// read: so nothing is missed in between.
    #[must_use]
    pub fn follow(&self, at: AttemptRef) -> watch::Receiver<u64> {
        self.archive.follow(at)
    }

    /// Deletes every line of a task.
    ///
    /// # Errors
    /// [`LogError`] if a file cannot be deleted.
    pub async fn remove(&self, task: TaskId) -> Result<(), LogError> {
        self.beside(move |archive| archive.remove(task)).await
    }

    /// Stores what waits, then takes no more.
    pub async fn close(&self) {
        lock(&self.appends).take();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            // A panic there has been reported by the thread itself.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }

    async fn beside<T: Send + 'static>(
        &self,
        what: impl FnOnce(&Archive) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        let archive = Arc::clone(&self.archive);
        tokio::task::spawn_blocking(move || what(&archive)).await.map_err(|_| LogError::Closed)?
    }
}

fn lock<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing panics while one of these is held.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
