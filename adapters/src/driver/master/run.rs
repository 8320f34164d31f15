//! The loop: one task owns the state machine, feeds it and performs what it orders.
//!
//! Everything that waits is handled before the loop rests, and what was said meanwhile is sent off then, so
//! a busy master writes many messages at once.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use tenure_core::command::{CloseReason, MasterCommand, Reply};
use tenure_core::event::{Ask, MasterEvent};
use tenure_core::ids::{EffectId, RequestId, SessionId, TaskId};
use tenure_core::lease::LeaseOp;
use tenure_core::master::Master;
use tenure_core::message::{HelloRefusal, ToMaster, ToWorker};
use tenure_core::model::lease_table::LeaseTable;
use tenure_core::store::{StoreAnswer, StoreOp, StoreResult, Wrote};
use tenure_core::time::{Millis, Time};
use tenure_proto::messages::HelloAck;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::time::Instant;

use super::orders::Orders;
use super::peer::Peer;
use super::status::{MasterStatus, WorkerStatus};
use crate::clock::Clock;
use crate::names::Names;
use crate::sql::SqliteStore;
use crate::tcp::complaints::Complaints;

/// Events taken at once.
const BATCH: usize = 1024;
/// Reading everything may take longer than a write, by this much.
const READ_ALL_FACTOR: u64 = 12;
/// The loop wakes this often if nothing at all is due.
const REST: Millis = Millis(60_000);

/// What reaches the loop.
#[derive(Debug)]
pub(super) enum Input {
    Opened(Arc<Peer>),
    Received(SessionId, ToMaster),
    Closed(SessionId),
    Asked(Ask, oneshot::Sender<Reply>),
    Workers(oneshot::Sender<Vec<WorkerStatus>>),
    Stop,
}

/// An answer of the task store.
pub(super) type Answer = (EffectId, StoreResult);

/// The loop's own.
pub(super) struct Loop {
    pub(super) master: Master,
    pub(super) clock: Clock,
    pub(super) store: Arc<SqliteStore>,
    pub(super) names: Arc<Names>,
    pub(super) complaints: Arc<Complaints>,
    pub(super) status: watch::Sender<MasterStatus>,
    pub(super) changes: broadcast::Sender<TaskId>,
    pub(super) heartbeat: Millis,
    pub(super) store_timeout: Millis,
    pub(super) state: State,
}

/// What changes as the loop runs.
#[derive(Default)]
pub(super) struct State {
    leases: LeaseTable,
    peers: HashMap<SessionId, Arc<Peer>>,
    requests: HashMap<RequestId, oneshot::Sender<Reply>>,
    next_request: u64,
    orders: Orders,
    /// Peers that were said something since the last rest.
    spoken_to: Vec<Arc<Peer>>,
    commands: Vec<MasterCommand>,
    /// What the commands came to at once.
    at_once: VecDeque<MasterEvent>,
    shown: MasterStatus,
    handed_over: bool,
}

impl Loop {
    /// Runs until the master has handed over, or nobody can reach it any more.
    pub(super) async fn run(
        mut self,
        mut inputs: mpsc::Receiver<Input>,
        mut answers: mpsc::UnboundedReceiver<Answer>,
    ) {
        let mut arrived = Vec::with_capacity(BATCH);
        let mut answered = Vec::with_capacity(BATCH);
        self.event(MasterEvent::Woke);
        loop {
            self.rest();
            if self.state.handed_over {
                return;
            }
            let until = Instant::from_std(self.clock.instant(self.next_deadline()));
            tokio::select! {
                biased;
                _ = answers.recv_many(&mut answered, BATCH) => {
                    answered.drain(..).for_each(|(effect, result)| self.on_answer(effect, result));
                }
                taken = inputs.recv_many(&mut arrived, BATCH) => {
                    if taken == 0 {
                        return;
                    }
                    arrived.drain(..).for_each(|input| self.on_input(input));
                }
                () = tokio::time::sleep_until(until) => self.event(MasterEvent::Woke),
            }
            self.miss_answers();
        }
    }

    fn next_deadline(&self) -> Time {
        let rest = self.clock.now() + REST;
        let due = [self.master.next_deadline(), self.state.orders.next_deadline()];
        due.into_iter().flatten().fold(rest, Time::min)
    }

    /// Sends off what was said and shows how things are.
    fn rest(&mut self) {
        for peer in self.state.spoken_to.drain(..) {
            peer.out.flush();
        }
        let shown = &mut self.state.shown;
        shown.leads = self.master.leads();
        shown.seen = shown.leads.map_or(shown.seen, |term| term.epoch);
        shown.open = self.master.open_tasks();
        shown.queued = self.master.queued_tasks();
        shown.connections = self.state.peers.len();
        shown.orders = self.state.orders.len();
        self.status.send_if_modified(|told| std::mem::replace(told, *shown) != *shown);
    }

    fn on_input(&mut self, input: Input) {
        match input {
            Input::Opened(peer) => {
                let session = peer.id;
                self.state.peers.insert(session, peer);
                self.event(MasterEvent::Opened(session));
            }
            Input::Received(session, said) => self.on_said(session, said),
            Input::Closed(session) => {
                // Core is told once, and not of a session that it closed itself.
                if self.forget(session).is_some() {
                    self.event(MasterEvent::Closed(session));
                }
            }
            Input::Asked(ask, answer) => {
                let request = RequestId(self.state.next_request);
                self.state.next_request += 1;
                self.state.requests.insert(request, answer);
                self.event(MasterEvent::Asked(request, ask));
            }
            Input::Workers(answer) => {
                // Who asked may have gone.
                let _ = answer.send(self.workers());
            }
            Input::Stop => {
                self.state.shown.draining = true;
                self.event(MasterEvent::StopAsked);
            }
        }
    }

    fn on_said(&mut self, session: SessionId, said: ToMaster) {
        let Some(peer) = self.state.peers.get(&session) else {
            return;
        };
        let introduces = matches!(said, ToMaster::DocumentedHeartbeat { .. });
        if introduces && self.master.leads().is_some() && peer.set_live() {
            self.state.shown.connected += 1;
        }
        self.event(MasterEvent::Received(session, said));
    }

    fn on_answer(&mut self, effect: EffectId, result: StoreResult) {
        if !self.state.orders.answered(effect) {
            tracing::debug!("{effect}: the store's answer came after it was given up");
            return;
        }
        let changed = changed(&result);
        self.state.shown.store_works = matches!(result, StoreResult::Answer(_));
        self.state.shown.store_answered_at = Some(self.clock.now());
        self.event(MasterEvent::Stored(effect, result));
        if let Some(task) = changed {
            // Nobody may be waiting.
            let _ = self.changes.send(task);
        }
    }

    /// Orders that went without answer for too long.
    fn miss_answers(&mut self) {
        while let Some(effect) = self.state.orders.overdue(self.clock.now()) {
            tracing::warn!("{effect}: the store has not answered in {}", self.store_timeout);
            self.state.shown.store_works = false;
            self.event(MasterEvent::Stored(effect, StoreResult::Unknown));
        }
    }

    /// Feeds an event, performs what it leads to, and feeds what that came to at once.
    fn event(&mut self, event: MasterEvent) {
        self.feed(event);
        while let Some(event) = self.state.at_once.pop_front() {
            self.feed(event);
        }
    }

    fn feed(&mut self, event: MasterEvent) {
        tracing::trace!("{event}");
        let now = self.clock.now();
        let mut commands = std::mem::take(&mut self.state.commands);
        if let Err(refused) = self.master.handle(now, event, &mut commands) {
            tracing::error!("the master's state machine refused an event: {refused}");
            debug_assert!(false, "{refused}");
        }
        for command in commands.drain(..) {
            self.perform(now, command);
        }
        self.state.commands = commands;
    }

    fn perform(&mut self, now: Time, command: MasterCommand) {
        tracing::trace!("{command}");
        match command {
            MasterCommand::Store(effect, order) => self.order(now, effect, order),
            MasterCommand::Lease(effect, order) => self.lease(now, effect, &order),
            MasterCommand::Send(session, said) => self.tell(session, &said),
            MasterCommand::Close(session, why) => self.close(session, why),
            MasterCommand::Reply(request, reply) => {
                if let Some(answer) = self.state.requests.remove(&request) {
                    // Who asked may have gone.
                    let _ = answer.send(reply);
                }
            }
            MasterCommand::Lead(term) => tracing::info!("leads under {term}"),
            MasterCommand::StepDown(term) => tracing::info!("leads no more under {term}"),
            MasterCommand::Stopped => self.state.handed_over = true,
        }
    }

    fn order(&mut self, now: Time, effect: EffectId, order: StoreOp) {
        let patience = match order {
            StoreOp::ReadAll(_) => self.store_timeout.times(READ_ALL_FACTOR),
            _ => self.store_timeout,
        };
        self.state.orders.add(effect, now + patience);
        self.store.submit(effect, order);
    }

    fn lease(&mut self, now: Time, effect: EffectId, order: &LeaseOp) {
        let answer = self.state.leases.apply(now, order);
        self.state.at_once.push_back(MasterEvent::Leased(effect, answer));
    }

    fn tell(&mut self, session: SessionId, said: &ToWorker) {
        let Some(peer) = self.state.peers.get(&session) else {
            return;
        };
        if matches!(said, ToWorker::HelloAck(_)) && peer.set_live() {
            self.state.shown.connected += 1;
        }
        peer.tell(said, |ack| self.fill(ack, said, peer));
        self.state.spoken_to.push(Arc::clone(peer));
    }

    /// What core does not know of the answer to a hello.
    fn fill(&self, ack: &mut HelloAck, said: &ToWorker, peer: &Peer) {
        let Some(about) = peer.about() else {
            return;
        };
        match said {
            ToWorker::HelloRefused(HelloRefusal::NameInUse) => {
                let holder = self.names.known_worker(&about.name);
                let session = holder.and_then(|worker| self.master.session_of(worker));
                let other = session.and_then(|session| self.state.peers.get(&session));
                ack.detail = other.map(|other| where_it_runs(other)).unwrap_or_default();
            }
            ToWorker::HelloRefused(HelloRefusal::Replaced) => {
                ack.detail = format!("a later start of {} has taken its place", about.name);
            }
            _ => {
                ack.heartbeat_ms = self.heartbeat.0;
                ack.log_positions.clone_from(&about.log_positions);
            }
        }
    }

    fn close(&mut self, session: SessionId, why: CloseReason) {
        let Some(peer) = self.forget(session) else {
            return;
        };
        match why {
            CloseReason::Protocol => {
                let what =
                    "broke the rules of a session (a second hello, or a name that is not its own)";
                self.complaints.raise("session_rules", peer.address, &what);
            }
            CloseReason::NotLeader
            | CloseReason::Refused
            | CloseReason::Replaced
            | CloseReason::Silent => {
                tracing::debug!("{}: session {session} closed: {why:?}", peer.address);
            }
        }
        peer.out.close();
    }

    fn forget(&mut self, session: SessionId) -> Option<Arc<Peer>> {
        let peer = self.state.peers.remove(&session)?;
        if peer.is_live() {
            self.state.shown.connected -= 1;
        }
        Some(peer)
    }

    fn workers(&self) -> Vec<WorkerStatus> {
        let peers = &self.state.peers;
        let shown = self.master.workers().map(|worker| {
            let peer = worker.session.and_then(|session| peers.get(&session));
            WorkerStatus::of(&worker, peer.map(|peer| &**peer), &self.names)
        });
        let mut shown: Vec<WorkerStatus> = shown.collect();
        shown.sort_by(|one, other| one.name.cmp(&other.name));
        shown
    }
}

/// Whatever ends the loop, its connections close once they have said what waits.
impl Drop for Loop {
    fn drop(&mut self) {
        for peer in self.state.peers.values() {
            peer.out.close();
        }
    }
}

/// The task whose row this answer shows changed.
fn changed(result: &StoreResult) -> Option<TaskId> {
    match result {
        StoreResult::Answer(StoreAnswer::Inserted { row, existed: false }) => Some(row.task),
        StoreResult::Answer(StoreAnswer::Changed { wrote: Wrote::Applied, row, .. }) => {
            Some(row.task)
        }
        _ => None,
    }
}

fn where_it_runs(peer: &Peer) -> String {
    let Some(about) = peer.about() else {
        return format!("connected from {}", peer.address);
    };
    let pid = about.pid.map(|pid| format!(", pid {pid}")).unwrap_or_default();
    format!("{} runs on host {}{pid}, connected from {}", about.name, about.hostname, peer.address)
}
