//! What people see of a master.

use std::net::SocketAddr;
use std::sync::Arc;

use tenure_core::ids::{Epoch, Incarnation, Term};
use tenure_core::master::WorkerView;
use tenure_core::time::Time;

use super::peer::Peer;
use crate::names::Names;

/// How a master is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MasterStatus {
    /// The term under which it decides, if it does.
    pub leads: Option<Term>,
    /// The newest term that it has led.
    pub seen: Epoch,
    /// Tasks that are not over.
    pub open: usize,
    /// Tasks that may be claimed.
    pub queued: usize,
    /// Workers with a session.
    pub connected: usize,
    /// Connections, those that have not said hello included.
    pub connections: usize,
    /// Orders that the store has not answered.
    pub orders: usize,
    /// When the store answered last.
    pub store_answered_at: Option<Time>,
    /// Whether the last order to the store was carried out.
    pub store_works: bool,
    /// Whether it was asked to stop.
    pub draining: bool,
    /// Whether it has ended.
    pub stopped: bool,
}

/// A worker as the master sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerStatus {
    /// Its name.
    pub name: Arc<str>,
    /// Which start of it; [`Incarnation::DOCUMENTED`] for one that says no hello.
    pub incarnation: Incarnation,
    /// Where its connection comes from; none while it has none.
    pub address: Option<SocketAddr>,
    /// The host it runs on, as it says.
    pub hostname: Option<Arc<str>>,
    /// Its process there, as it says.
    pub pid: Option<u32>,
    /// The version of its program, as it says.
    pub version: Option<Arc<str>>,
    /// What it can do.
    pub labels: Vec<Arc<str>>,
    /// Slots it has in all.
    pub slots: u16,
    /// GPUs it has in all.
    pub gpus: u16,
    /// Slots that are taken.
    pub used_slots: u32,
    /// GPUs that are taken.
    pub used_gpus: u32,
    /// When it was last heard; none since this master leads.
    pub last_heard: Option<Time>,
    /// Whether it takes no new tasks.
    pub draining: bool,
    /// Whether it says no hello.
    pub documented: bool,
}

impl WorkerStatus {
    /// What core sees of a worker, with what its connection adds.
    pub(super) fn of(view: &WorkerView, peer: Option<&Peer>, names: &Names) -> WorkerStatus {
        let about = peer.and_then(Peer::about);
        let labels = view.capacity.labels.as_slice().iter();
        WorkerStatus {
            name: names.worker_name(view.holder.worker),
            incarnation: view.holder.incarnation,
            address: peer.map(|peer| peer.address),
            hostname: about.map(|about| Arc::clone(&about.hostname)),
            pid: about.and_then(|about| about.pid),
            version: about.and_then(|about| about.version.clone()),
            labels: labels.map(|label| names.label_text(*label)).collect(),
            slots: view.capacity.slots,
            gpus: view.capacity.gpus,
            used_slots: view.used_slots,
            used_gpus: view.used_gpus,
            last_heard: (view.last_heard > Time::default()).then_some(view.last_heard),
            draining: view.draining,
            documented: view.documented,
        }
    }

    /// Whether it has a session.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.address.is_some()
    }
}
