//! What people may see of a master. Nothing is decided from it.

use super::Master;
use crate::ids::{Holder, SessionId, WorkerId};
use crate::spec::Shape;
use crate::time::Time;

/// A worker as the master sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerView {
    /// Its name and incarnation.
    pub holder: Holder,
    /// Its session; none while it has none.
    pub session: Option<SessionId>,
    /// All that it has to give; of the default shape before its first session.
    pub capacity: Shape,
    /// Slots that are taken, by attempts that it should not run any more as well.
    pub used_slots: u32,
    /// GPUs that are taken.
    pub used_gpus: u32,
    /// When it was last heard; zero before its first session.
    pub last_heard: Time,
    /// Whether it takes no new tasks.
    pub draining: bool,
    /// Whether it says no hello.
    pub documented: bool,
}

impl Master {
    /// Every worker that is known, by its number.
    pub fn workers(&self) -> impl Iterator<Item = WorkerView> {
        self.workers.iter().map(|(id, worker)| WorkerView {
            holder: worker.holder(*id),
            session: worker.session,
            capacity: worker.capacity.clone(),
            used_slots: worker.used_slots + worker.foreign_slots,
            used_gpus: worker.used_gpus,
            last_heard: worker.last_heard,
            draining: worker.draining,
            documented: worker.documented,
        })
    }

    /// The session that speaks for this worker.
    #[must_use]
    pub fn session_of(&self, worker: WorkerId) -> Option<SessionId> {
        self.workers.get(&worker)?.session
    }

    /// Tasks that are not over.
    #[must_use]
    pub fn open_tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Tasks that may be claimed.
    #[must_use]
    pub fn queued_tasks(&self) -> usize {
        self.queue.len()
    }
}
