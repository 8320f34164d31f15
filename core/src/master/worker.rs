//! A worker as the master sees it.

use alloc::collections::BTreeSet;

use crate::ids::{Holder, Incarnation, SessionId, TaskId, WorkerId};
use crate::message::Hello;
use crate::spec::Shape;
use crate::time::Time;

/// A worker that is known to the store.
#[derive(Debug, Clone, Default)]
pub(super) struct Worker {
    pub(super) incarnation: Incarnation,
    /// Its session, while it has one.
    pub(super) session: Option<SessionId>,
    /// The newest session in which this incarnation said hello; an older one that speaks is late.
    pub(super) newest: SessionId,
    pub(super) capacity: Shape,
    /// Slots and GPUs of the tasks that hold it.
    pub(super) used_slots: u32,
    pub(super) used_gpus: u32,
    /// Slots of attempts that it still runs although they are not its own any more.
    pub(super) foreign_slots: u32,
    pub(super) holds: BTreeSet<TaskId>,
    pub(super) last_heard: Time,
    /// No new tasks before this: it left orders unanswered.
    pub(super) rested_until: Time,
    /// It said that it is full: no new tasks before its next inventory.
    pub(super) full: bool,
    pub(super) draining: bool,
    /// It says no hello: the documented protocol.
    pub(super) documented: bool,
    /// Beats in a row that said idle although a task was accepted (documented workers).
    pub(super) idle_beats: u8,
    /// Whether a look at its silence is armed.
    pub(super) watched: bool,
    /// Its free slots as the pool has them, while it is there.
    pub(super) listed: Option<u32>,
}

impl Worker {
    /// Takes over what a hello says.
    pub(super) fn greet(&mut self, now: Time, session: SessionId, hello: &Hello) {
        self.incarnation = hello.incarnation;
        self.session = Some(session);
        self.newest = session;
        self.capacity = hello.capacity.clone();
        self.draining = hello.draining;
        self.documented = false;
        self.full = false;
        self.last_heard = now;
    }

    pub(super) fn holder(&self, worker: WorkerId) -> Holder {
        Holder { worker, incarnation: self.incarnation }
    }

    /// Slots that are free, as far as is known.
    pub(super) fn free_slots(&self) -> u32 {
        u32::from(self.capacity.slots).saturating_sub(self.used_slots + self.foreign_slots)
    }

    /// Whether a task of this shape could be given to it.
    pub(super) fn fits(&self, shape: &Shape) -> bool {
        u32::from(shape.slots) <= self.free_slots()
            && self.used_gpus + u32::from(shape.gpus) <= u32::from(self.capacity.gpus)
            && self.capacity.labels.contain(&shape.labels)
    }

    pub(super) fn occupy(&mut self, task: Option<TaskId>, shape: &Shape) {
        self.used_slots += u32::from(shape.slots);
        self.used_gpus += u32::from(shape.gpus);
        self.holds.extend(task);
    }

    pub(super) fn vacate(&mut self, task: Option<TaskId>, shape: &Shape) {
        self.used_slots -= u32::from(shape.slots);
        self.used_gpus -= u32::from(shape.gpus);
        if let Some(task) = task {
            self.holds.remove(&task);
        }
    }
}
