//! Sessions: who speaks, hellos and names, and what a closed connection starts.

use alloc::vec::Vec;

use super::effects::Purpose;
use super::expire::Reason;
use super::task::Stage as HoldStage;
use super::{Master, Stage};
use crate::command::{CloseReason, MasterCommand};
use crate::ids::{Holder, SessionId, TaskId, WorkerId};
use crate::message::{Hello, HelloRefusal, ToWorker};
use crate::store::{LoseReason, StoreAnswer, StoreOp, StoreResult};
use crate::time::Time;

/// One connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Session {
    /// Has said nothing yet.
    Fresh,
    /// Has said hello while this master was not ready to answer.
    Early(Hello),
    /// Asks for a name whose current process is being pinged in its session, since this time.
    Contending { hello: Hello, pinged: SessionId, since: Time },
    /// Its incarnation is being stored.
    Registering(Hello),
    /// Speaks for this worker.
    Live(WorkerId),
}

impl Session {
    /// The worker that it speaks for.
    pub(super) fn live(&self) -> Option<WorkerId> {
        match self {
            Session::Live(worker) => Some(*worker),
            Session::Fresh
            | Session::Early(_)
            | Session::Contending { .. }
            | Session::Registering(_) => None,
        }
    }
}

impl Master {
    pub(super) fn on_opened(&mut self, session: SessionId) {
        self.sessions.insert(session, Session::Fresh);
    }

    pub(super) fn on_closed(
        &mut self,
        now: Time,
        session: SessionId,
        out: &mut Vec<MasterCommand>,
    ) {
        if let Some(Session::Live(worker)) = self.sessions.remove(&session)
            && self.workers.get(&worker).is_some_and(|known| known.session == Some(session))
        {
            self.on_worker_away(now, worker, now, LoseReason::Disconnected);
            self.settle_contentions(now, session, out);
        }
    }

    /// The session that was pinged is over: whoever asks for the name need not wait longer.
    fn settle_contentions(&mut self, now: Time, over: SessionId, out: &mut Vec<MasterCommand>) {
        let asks = self.sessions.iter().filter_map(|(id, session)| match session {
            Session::Contending { pinged, .. } if *pinged == over => Some(*id),
            _ => None,
        });
        for session in asks.collect::<Vec<SessionId>>() {
            self.on_contended(now, session, out);
        }
    }

    /// A worker has no session any more; its tasks wait for it as long as their patience lasts.
    pub(super) fn on_worker_away(&mut self, now: Time, id: WorkerId, since: Time, why: LoseReason) {
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        worker.session = None;
        if worker.documented {
            // A closed connection proves nothing here: it trains on. Silence decides.
            let until = worker.last_heard + self.settings.heartbeat_ttl;
            self.send_away(now, id, LoseReason::Silent, |_| until);
        } else {
            let grace = self.settings.disconnect_grace;
            self.send_away(now, id, why, |patience| since + patience.unwrap_or(grace));
        }
        self.refresh(now, id);
    }

    fn send_away(
        &mut self,
        now: Time,
        id: WorkerId,
        why: LoseReason,
        until: impl Fn(Option<crate::time::Millis>) -> Time,
    ) {
        let Some(worker) = self.workers.get(&id) else {
            return;
        };
        for task in &worker.holds {
            let Some(known) = self.tasks.get_mut(task) else {
                continue;
            };
            let patience = known.row.limits.patience;
            if let Some(hold) = known.hold_mut()
                && !matches!(hold.stage, HoldStage::Unsent | HoldStage::Away { .. })
            {
                let until = until(patience).max(now);
                hold.stage = HoldStage::Away { until, why };
                self.deadlines.arm(until, Reason::Patience(*task));
            }
        }
    }

    pub(super) fn on_hello(
        &mut self,
        now: Time,
        session: SessionId,
        hello: Hello,
        out: &mut Vec<MasterCommand>,
    ) {
        match self.stage {
            Stage::Leading { term, .. } if hello.highest.epoch > term.epoch => {
                self.election.retake(now, hello.highest.epoch, &mut self.effects.next, out);
                self.sessions.insert(session, Session::Early(hello));
            }
            Stage::Leading { term, .. }
                if hello.highest.epoch == term.epoch && hello.highest.leader != term.leader =>
            {
                self.election.retake(now, hello.highest.epoch, &mut self.effects.next, out);
                self.sessions.insert(session, Session::Early(hello));
            }
            Stage::Leading { .. } => self.identify(now, session, hello, out),
            Stage::Reading(_) => {
                self.sessions.insert(session, Session::Early(hello));
            }
            Stage::Following | Stage::Closing(_) | Stage::Stopped => {
                out.push(MasterCommand::Send(session, ToWorker::NotLeader(self.election.seen())));
                self.close(session, CloseReason::NotLeader, out);
            }
        }
    }

    /// Whether this process may go by this name.
    fn identify(
        &mut self,
        now: Time,
        session: SessionId,
        hello: Hello,
        out: &mut Vec<MasterCommand>,
    ) {
        let known = self.workers.get(&hello.worker);
        let late = known.is_some_and(|worker| {
            worker.incarnation == hello.incarnation && session < worker.newest
        });
        if late {
            // It has said hello in a later session since: what this inventory lacks may have been sent there.
            self.close(session, CloseReason::Replaced, out);
            return;
        }
        let current = known.map(|worker| (worker.incarnation, worker.session));
        match current {
            Some((incarnation, _)) if incarnation == hello.incarnation => {
                self.establish(now, session, &hello, out);
            }
            Some((_, Some(other))) => {
                out.push(MasterCommand::Send(other, ToWorker::Ping));
                let until = now + self.settings.ping_timeout;
                self.deadlines.arm(until, Reason::Contend(session));
                let contending = Session::Contending { hello, pinged: other, since: now };
                self.sessions.insert(session, contending);
            }
            Some((_, None)) | None => self.register(now, session, hello, out),
        }
    }

    fn register(
        &mut self,
        now: Time,
        session: SessionId,
        hello: Hello,
        out: &mut Vec<MasterCommand>,
    ) {
        let Some(term) = self.leads() else {
            return;
        };
        let holder = Holder { worker: hello.worker, incarnation: hello.incarnation };
        self.sessions.insert(session, Session::Registering(hello));
        let effect = self.effects.begin(Purpose::Register(session));
        out.push(MasterCommand::Store(effect, StoreOp::Register { holder, term, at: now }));
    }

    pub(super) fn on_registered(
        &mut self,
        now: Time,
        session: SessionId,
        result: &StoreResult,
        out: &mut Vec<MasterCommand>,
    ) {
        let Some(Session::Registering(_)) = self.sessions.get(&session) else {
            return;
        };
        let Some(Session::Registering(hello)) = self.sessions.insert(session, Session::Fresh)
        else {
            return;
        };
        match result {
            StoreResult::Answer(StoreAnswer::Registered { .. }) => {
                self.establish(now, session, &hello, out);
            }
            StoreResult::Answer(StoreAnswer::WasReplaced) => {
                self.refuse(session, HelloRefusal::Replaced, out);
            }
            // The worker comes again.
            StoreResult::Answer(_) | StoreResult::Failed | StoreResult::Unknown => {
                self.close(session, CloseReason::Refused, out);
            }
        }
    }

    /// The time of the process that has the name is over: either it spoke, or it lost it.
    pub(super) fn on_contended(
        &mut self,
        now: Time,
        session: SessionId,
        out: &mut Vec<MasterCommand>,
    ) {
        let Some(Session::Contending { hello, pinged, since }) = self.sessions.get(&session) else {
            return;
        };
        // Not counted back from now: this look may be late, and the answer was not.
        let (hello, pinged, asked_at) = (hello.clone(), *pinged, *since);
        let Some(worker) = self.workers.get(&hello.worker) else {
            return;
        };
        if worker.session != Some(pinged) {
            // Another process has the name meanwhile, or nobody has: ask anew.
            self.identify(now, session, hello, out);
        } else if worker.last_heard >= asked_at {
            self.refuse(session, HelloRefusal::NameInUse, out);
        } else {
            self.close(pinged, CloseReason::Silent, out);
            self.on_worker_away(now, hello.worker, now, LoseReason::Silent);
            self.register(now, session, hello, out);
        }
    }

    /// From here on the session speaks for the worker. Its inventory is complete, so an attempt that is
    /// in neither part of it never arrived.
    pub(super) fn establish(
        &mut self,
        now: Time,
        session: SessionId,
        hello: &Hello,
        out: &mut Vec<MasterCommand>,
    ) {
        let Some(term) = self.leads() else {
            return;
        };
        let id = hello.worker;
        let older = self.workers.get(&id).and_then(|worker| worker.session);
        if let Some(older) = older.filter(|older| *older != session) {
            self.close(older, CloseReason::Replaced, out);
            self.on_worker_away(now, id, now, LoseReason::Disconnected);
        }
        self.sessions.insert(session, Session::Live(id));
        self.workers.entry(id).or_default().greet(now, session, hello);
        self.heard(now, id);
        out.push(MasterCommand::Send(session, ToWorker::HelloAck(term)));
        let holder = Holder { worker: id, incarnation: hello.incarnation };
        self.renew_leases(holder, &hello.inventory, out);
        self.compare(now, holder, session, &hello.inventory, out);
        self.refresh(now, id);
    }

    fn refuse(&mut self, session: SessionId, why: HelloRefusal, out: &mut Vec<MasterCommand>) {
        out.push(MasterCommand::Send(session, ToWorker::HelloRefused(why)));
        self.close(session, CloseReason::Refused, out);
    }

    pub(super) fn close(
        &mut self,
        session: SessionId,
        why: CloseReason,
        out: &mut Vec<MasterCommand>,
    ) {
        if self.sessions.remove(&session).is_some() {
            out.push(MasterCommand::Close(session, why));
        }
    }

    /// The peer broke the protocol.
    pub(super) fn drop_session(
        &mut self,
        now: Time,
        session: SessionId,
        out: &mut Vec<MasterCommand>,
    ) {
        let worker = self.sessions.get(&session).and_then(Session::live);
        self.close(session, CloseReason::Protocol, out);
        if let Some(worker) = worker {
            self.on_worker_away(now, worker, now, LoseReason::Disconnected);
        }
    }

    /// A worker has been silent for a whole TTL.
    pub(super) fn on_silence(&mut self, now: Time, id: WorkerId, out: &mut Vec<MasterCommand>) {
        let ttl = self.settings.heartbeat_ttl;
        let Some(worker) = self.workers.get_mut(&id) else {
            return;
        };
        let (last_heard, session) = (worker.last_heard, worker.session);
        if last_heard + ttl > now && session.is_some() {
            self.deadlines.arm(last_heard + ttl, Reason::Silence(id));
            return;
        }
        worker.watched = false;
        if let Some(session) = session {
            self.close(session, CloseReason::Silent, out);
            self.on_worker_away(now, id, last_heard, LoseReason::Silent);
        }
    }

    /// Every task that waits for its worker.
    pub(super) fn away(&self, id: WorkerId) -> Vec<TaskId> {
        let Some(worker) = self.workers.get(&id) else {
            return Vec::new();
        };
        let away = worker.holds.iter().filter(|task| {
            let hold = self.tasks.get(task).and_then(|known| known.hold());
            hold.is_some_and(|hold| matches!(hold.stage, HoldStage::Away { .. }))
        });
        away.copied().collect()
    }
}
