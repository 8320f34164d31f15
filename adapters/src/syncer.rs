//! A thread that brings written files to the disk soon, so that nobody who writes waits for it.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The thread; it ends, with everything on the disk, when this is dropped.
pub(crate) struct Syncer {
    files: Option<Sender<Arc<File>>>,
    thread: Option<JoinHandle<()>>,
    /// A file that was told about and is still waiting; saves telling about each write.
    waiting: Weak<File>,
    waits: Arc<AtomicBool>,
    failed: Arc<AtomicBool>,
}

impl Syncer {
    /// A thread that syncs a file this long after it is told of it.
    pub(crate) fn start(after: Duration) -> io::Result<Syncer> {
        let (files, told) = channel();
        let waits = Arc::new(AtomicBool::new(false));
        let failed = Arc::new(AtomicBool::new(false));
        let (own_waits, own_failed) = (Arc::clone(&waits), Arc::clone(&failed));
        let thread = std::thread::Builder::new()
            .name("outbox-sync".to_owned())
            .spawn(move || run(&told, after, &own_waits, &own_failed))?;
        Ok(Syncer { files: Some(files), thread: Some(thread), waiting: Weak::new(), waits, failed })
    }

    /// This file was written: bring it to the disk soon.
    pub(crate) fn soon(&mut self, file: &Arc<File>) {
        let is_same = std::ptr::eq(self.waiting.as_ptr(), Arc::as_ptr(file));
        if self.waits.swap(true, Ordering::AcqRel) && is_same {
            return;
        }
        self.waiting = Arc::downgrade(file);
        if let Some(files) = &self.files {
            // The thread ends only with this value.
            let _ = files.send(Arc::clone(file));
        }
    }

    /// Whether a file could not be brought to the disk.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// A file could not be brought to the disk by somebody else.
    pub(crate) fn note_failure(&self) {
        self.failed.store(true, Ordering::Release);
    }

    /// What had failed was written anew elsewhere.
    pub(crate) fn forget_failure(&self) {
        self.failed.store(false, Ordering::Release);
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.files.take();
        if let Some(thread) = self.thread.take() {
            // A panic there has been reported by the thread itself.
            let _ = thread.join();
        }
    }
}

fn run(told: &Receiver<Arc<File>>, after: Duration, waits: &AtomicBool, failed: &AtomicBool) {
    while let Ok(first) = told.recv() {
        let mut files = vec![first];
        gather(told, Instant::now() + after, &mut files);
        // From here on a write may miss this sync and must tell anew.
        waits.store(false, Ordering::Release);
        for file in files {
            if let Err(error) = file.sync_data() {
                tracing::error!("a record file could not be brought to the disk: {error}");
                failed.store(true, Ordering::Release);
            }
        }
    }
}

fn gather(told: &Receiver<Arc<File>>, until: Instant, files: &mut Vec<Arc<File>>) {
    loop {
        match told.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(file) => files.push(file),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
        }
    }
}
