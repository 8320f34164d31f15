//! The way of each command's events to its attempt.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;

use crate::process::ProcessEvent;

type Ways = HashMap<u64, mpsc::UnboundedSender<ProcessEvent>>;

/// A way for each command that runs. What waits on it is bounded by the command's output budget.
#[derive(Debug, Clone, Default)]
pub(super) struct Routes {
    ways: Arc<Mutex<Ways>>,
}

impl Routes {
    /// Passes every event of the executor on, until it ends.
    pub(super) fn start(mut events: mpsc::UnboundedReceiver<ProcessEvent>) -> Routes {
        let routes = Routes::default();
        let passing = routes.clone();
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                passing.pass(event);
            }
            // Without an executor nothing comes any more: who still waits must know.
            passing.ways().clear();
        });
        routes
    }

    /// The events of this key from here on. To be called before its launch.
    pub(super) fn open(&self, key: u64) -> mpsc::UnboundedReceiver<ProcessEvent> {
        let (way, events) = mpsc::unbounded_channel();
        self.ways().insert(key, way);
        events
    }

    fn pass(&self, event: ProcessEvent) {
        let (key, last) = match &event {
            ProcessEvent::Started { key, .. } | ProcessEvent::Line { key, .. } => (*key, false),
            ProcessEvent::FailedToStart { key, .. } | ProcessEvent::Ended { key, .. } => {
                (*key, true)
            }
            ProcessEvent::GuardianLost { error, running } => {
                tracing::warn!(
                    error,
                    running = running.len(),
                    "tasks run on without their guardian"
                );
                return;
            }
        };
        let mut ways = self.ways();
        if let Some(way) = ways.get(&key) {
            let _ = way.send(event);
        }
        if last {
            ways.remove(&key);
        }
    }

    fn ways(&self) -> MutexGuard<'_, Ways> {
        // Each change is one call, so a panic elsewhere leaves nothing half done.
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
