//! The worker's spool for everybody else: files are used on threads that may wait.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tenure_core::ids::AttemptRef;

use super::LogError;
use super::line::{Line, StoredLine};
use super::piles::Piles;

/// Lines of a worker's attempts until a master has them for good. They survive a kill of the worker.
#[derive(Clone)]
pub struct Spool {
    piles: Arc<Mutex<Piles>>,
    /// Acknowledgements that the files do not know of yet.
    news: Arc<Mutex<BTreeMap<AttemptRef, u64>>>,
}

impl fmt::Debug for Spool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spool").finish_non_exhaustive()
    }
}

impl Spool {
    /// The spool in this directory, made if need be, with at most about so many bytes; and what an earlier
    /// start left in it: each attempt with the offset after its last line. The caller holds the lock of the
    /// worker's directory.
    ///
    /// # Errors
    /// [`LogError`] if it cannot be read or made.
    pub fn open(dir: &Path, limit: u64) -> Result<(Spool, Vec<(AttemptRef, u64)>), LogError> {
        let piles = Piles::open(dir, limit)?;
        let held = piles.held();
        Ok((Spool { piles: Arc::new(Mutex::new(piles)), news: Arc::default() }, held))
    }

    /// Adds lines of an attempt and gives the offset after the last. Who appends to the same attempt waits
    /// for the answer first, so that lines stay in order.
    ///
    /// # Errors
    /// [`LogError`] if the disk does not take them. The next line that it takes is preceded by one that says
    /// how many are missing.
    pub async fn append(&self, at: AttemptRef, lines: Vec<Line>) -> Result<u64, LogError> {
        self.apart(move |piles| piles.append(at, lines)).await
    }

    /// Lines from this offset on, without a gap in their offsets: about so many bytes at most, but one line
    /// at least if there is one.
    ///
    /// # Errors
    /// [`LogError`] if a file cannot be read.
    pub async fn read(
        &self,
        at: AttemptRef,
        from: u64,
        bytes: usize,
    ) -> Result<Vec<StoredLine>, LogError> {
        self.apart(move |piles| piles.read(at, from, bytes)).await
    }

    /// A master has the lines below this offset: they go first if room is needed. Never waits.
    pub fn acknowledged(&self, at: AttemptRef, next: u64) {
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        let known = news.entry(at).or_default();
        *known = next.max(*known);
    }

    /// Deletes an attempt's lines: its outcome and all of them are acknowledged.
    ///
    /// # Errors
    /// [`LogError`] if a file cannot be deleted.
    pub async fn remove(&self, at: AttemptRef) -> Result<(), LogError> {
        self.apart(move |piles| piles.remove(at)).await
    }

    async fn apart<T: Send + 'static>(
        &self,
        what: impl FnOnce(&mut Piles) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        let piles = Arc::clone(&self.piles);
        let news = std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner));
        let done = tokio::task::spawn_blocking(move || {
            let mut piles = piles.lock().unwrap_or_else(PoisonError::into_inner);
            news.into_iter().for_each(|(at, next)| piles.acknowledged(at, next));
            what(&mut piles)
        });
        done.await.map_err(|_| LogError::Closed)?
    }
}
