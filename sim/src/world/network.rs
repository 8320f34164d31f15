//! Connections between workers and masters: in order, lost as a whole, and each end learns of the end on its
//! own.

use tenure_core::event::{AgentEvent, MasterEvent};
use tenure_core::ids::{EffectId, Holder, SessionId};
use tenure_core::message::{ToMaster, ToWorker};

use super::life::{NodeId, State, worker_id};
use super::{Coming, DIAL_TIMEOUT, LATE, NET, World};
use crate::faults::Fault;

/// One connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Session {
    pub(super) master: usize,
    pub(super) master_boot: u32,
    pub(super) worker: usize,
    pub(super) worker_boot: u32,
    pub(super) holder: Holder,
    /// Whether this end believes that the connection is there.
    pub(super) open_at_master: bool,
    pub(super) open_at_worker: bool,
    /// Nothing passes any more, in either direction.
    pub(super) cut: bool,
}

/// A session's number as the nodes see it. Never used twice.
pub(super) fn session_id(index: usize) -> SessionId {
    SessionId(index as u64 + 1)
}

fn index_of(session: SessionId) -> usize {
    session.0 as usize - 1
}

impl World {
    /// A worker connects. A paused master's host still takes the connection.
    pub(super) fn dial(
        &mut self,
        worker: usize,
        effect: EffectId,
        master: usize,
        twist: Option<Fault>,
    ) {
        let boot = self.workers[worker].life.boot;
        let Some(state) = self.masters.get(master).map(|known| known.life.state) else {
            self.refused("an agent dials a master that it was not told of");
            return;
        };
        let fails_after = match state {
            _ if twist.is_some() => Some(NET),
            State::Up | State::Paused => None,
            State::Killed => Some(NET),
            State::Dark => Some(DIAL_TIMEOUT),
        };
        if let Some(delay) = fails_after {
            self.after(delay, Coming::DialFailed { worker, boot, effect });
            return;
        }
        let session = self.sessions.len();
        self.sessions.push(Session {
            master,
            master_boot: self.masters[master].life.boot,
            worker,
            worker_boot: boot,
            holder: Holder {
                worker: worker_id(worker),
                incarnation: self.workers[worker].incarnation,
            },
            open_at_master: true,
            open_at_worker: true,
            cut: false,
        });
        self.after(NET, Coming::Opened { session });
        self.after(NET, Coming::Dialed { session, effect });
    }

    /// The process at the worker's end of a session.
    pub(super) fn peer_of(&self, session: SessionId) -> Option<Holder> {
        self.sessions.get(index_of(session)).map(|known| known.holder)
    }

    pub(super) fn on_opened(&mut self, session: usize) {
        let known = self.sessions[session];
        if known.open_at_master {
            self.tell_master(known.master, MasterEvent::Opened(session_id(session)));
        }
    }

    pub(super) fn on_dialed(&mut self, session: usize, effect: EffectId) {
        let known = self.sessions[session];
        if self.workers[known.worker].life.boot == known.worker_boot {
            self.tell_agent(known.worker, AgentEvent::Dialed(effect, session_id(session)));
        }
    }

    /// A master says something. What is said in a session that has ended is swallowed.
    pub(super) fn say_to_worker(&mut self, id: SessionId, said: ToWorker, twist: Option<Fault>) {
        let session = index_of(id);
        let Some(known) = self.sessions.get(session).copied() else {
            self.refused("a master speaks in a session that never was");
            return;
        };
        if !known.open_at_master {
            return;
        }
        let passes = self.cut_by(session, twist, true);
        if twist == Some(Fault::Late) && !known.cut {
            self.after(LATE, Coming::ToWorker { session, said, late: true });
            self.heals_after(LATE);
        } else if passes && !known.cut {
            if twist == Some(Fault::Repeat) {
                let again = Coming::ToWorker { session, said: said.clone(), late: true };
                self.after(LATE, again);
                self.heals_after(LATE);
            }
            self.after(NET, Coming::ToWorker { session, said, late: false });
        }
    }

    /// A worker says something.
    pub(super) fn say_to_master(&mut self, id: SessionId, said: ToMaster, twist: Option<Fault>) {
        let session = index_of(id);
        let Some(known) = self.sessions.get(session).copied() else {
            self.refused("an agent speaks in a session that never was");
            return;
        };
        if !known.open_at_worker {
            return;
        }
        let passes = self.cut_by(session, twist, false);
        if twist == Some(Fault::Late) && !known.cut {
            self.after(LATE, Coming::ToMaster { session, said, late: true });
            self.heals_after(LATE);
        } else if passes && !known.cut {
            self.after(NET, Coming::ToMaster { session, said, late: false });
        }
    }

    /// What a fault does to the connection; tells whether the message passes.
    fn cut_by(&mut self, session: usize, twist: Option<Fault>, by_master: bool) -> bool {
        let silence = self.longest_ttl;
        let (at_master, at_worker) = match twist {
            Some(Fault::Break) => (NET, NET),
            // The sender learns of it at once, the other end only after the late message.
            Some(Fault::Late) if by_master => (NET, LATE + NET),
            Some(Fault::Late) => (LATE + NET, NET),
            // Nobody is told until the network heals and the next segment is answered by a reset.
            Some(Fault::Silence) => (silence, silence),
            _ => return true,
        };
        self.sessions[session].cut = true;
        self.after(at_master, Coming::ClosedAtMaster { session });
        self.after(at_worker, Coming::ClosedAtWorker { session });
        if twist == Some(Fault::Silence) {
            self.heals_after(silence);
        }
        false
    }

    /// A message is there. One that is late is read even if the session is over for its process: the driver
    /// may have had it in hand. It is never read by another process.
    pub(super) fn arrive_at_master(&mut self, session: usize, said: ToMaster, late: bool) {
        let known = self.sessions[session];
        let same = self.masters[known.master].life.boot == known.master_boot;
        if !same || !(late || (known.open_at_master && !known.cut)) {
            return;
        }
        if !late {
            let now = self.now;
            self.oracle.patience.on_heard(known.master, worker_id(known.worker), now);
        }
        self.tell_master(known.master, MasterEvent::Received(session_id(session), said));
    }

    pub(super) fn arrive_at_worker(&mut self, session: usize, said: ToWorker, late: bool) {
        let known = self.sessions[session];
        let same = self.workers[known.worker].life.boot == known.worker_boot;
        if !same || !(late || (known.open_at_worker && !known.cut)) {
            return;
        }
        self.tell_agent(known.worker, AgentEvent::Received(session_id(session), said));
    }

    /// A master ends a session.
    pub(super) fn close(&mut self, id: SessionId) {
        let session = index_of(id);
        if !core::mem::replace(&mut self.sessions[session].open_at_master, false) {
            return;
        }
        if !self.sessions[session].cut {
            self.after(NET, Coming::ClosedAtWorker { session });
        }
    }

    /// A worker ends a session.
    pub(super) fn hang_up(&mut self, id: SessionId) {
        let session = index_of(id);
        if !core::mem::replace(&mut self.sessions[session].open_at_worker, false) {
            return;
        }
        if !self.sessions[session].cut {
            self.after(NET, Coming::ClosedAtMaster { session });
        }
    }

    pub(super) fn on_closed_at_master(&mut self, session: usize) {
        let known = &mut self.sessions[session];
        if core::mem::replace(&mut known.open_at_master, false) {
            let master = known.master;
            self.tell_master(master, MasterEvent::Closed(session_id(session)));
        }
    }

    pub(super) fn on_closed_at_worker(&mut self, session: usize) {
        let known = &mut self.sessions[session];
        if core::mem::replace(&mut known.open_at_worker, false) {
            let worker = known.worker;
            self.tell_agent(worker, AgentEvent::Closed(session_id(session)));
        }
    }

    /// A node's process is gone: its ends close. If its host is there the other ends learn of it.
    pub(super) fn end_sessions(&mut self, node: NodeId, silently: bool) {
        for session in 0..self.sessions.len() {
            let known = &mut self.sessions[session];
            let (was_open, told) = match node {
                NodeId::Master(index) if known.master == index => (
                    core::mem::replace(&mut known.open_at_master, false),
                    Coming::ClosedAtWorker { session },
                ),
                NodeId::Worker(index) if known.worker == index => (
                    core::mem::replace(&mut known.open_at_worker, false),
                    Coming::ClosedAtMaster { session },
                ),
                _ => continue,
            };
            if was_open && !silently && !known.cut {
                self.after(World::end_travels(), told);
            }
        }
    }

    /// A host is back: what its peers still hold open is answered by resets.
    pub(super) fn reset_sessions(&mut self, node: NodeId) {
        for session in 0..self.sessions.len() {
            let known = self.sessions[session];
            match node {
                NodeId::Master(index) if known.master == index && known.open_at_worker => {
                    self.after(NET, Coming::ClosedAtWorker { session });
                }
                NodeId::Worker(index) if known.worker == index && known.open_at_master => {
                    self.after(NET, Coming::ClosedAtMaster { session });
                }
                _ => {}
            }
        }
    }
}
