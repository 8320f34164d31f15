//! The loop: one event, its commands, then the next; the agent's deadline in between.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tenure_core::agent::Agent;
use tenure_core::command::{AgentCommand, QuitReason, Record};
use tenure_core::event::AgentEvent;
use tenure_core::ids::{AttemptRef, EffectId, SessionId, TaskId};
use tenure_core::message::{ToMaster, ToWorker};
use tenure_core::time::Time;
use tenure_proto::Message;
use tenure_proto::messages::{HelloAck, LogAck, LogPosition};
use tokio::sync::{mpsc, oneshot, watch};

use super::attempts::Attempts;
use super::disk::Disk;
use super::input::Input;
use super::progress::Board;
use super::shipper::{Outlet, Shipment};
use super::{WorkerEnd, WorkerOptions, WorkerState};
use crate::clock::Clock;
use crate::convert::{WorkerIdentity, read_to_worker, write_to_master};
use crate::names::Names;
use crate::tcp::connect::{Heard, Link, Place, connect};

/// How long a leaving worker waits for its last log lines to be stored. Short of what makes a master
/// suspect it, since it sends no heartbeats meanwhile; what is left is sent by its next start.
const LAST_LINES: Duration = Duration::from_secs(2);

/// How long the last words in a session may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Events taken at once.
const EVENTS: usize = 256;

/// All that the loop owns.
pub(super) struct Worker {
    pub(super) agent: Agent,
    pub(super) clock: Clock,
    pub(super) attempts: Attempts,
    pub(super) disk: Disk,
    pub(super) shipper: mpsc::UnboundedSender<Shipment>,
    pub(super) progress: Board,
    /// Taken from the inbox and not looked at yet.
    pub(super) waiting: VecDeque<Input>,
    /// Connections that core has not ended.
    pub(super) links: HashMap<SessionId, Link>,
    pub(super) next_session: u64,
    pub(super) identity: WorkerIdentity,
    pub(super) names: Names,
    pub(super) options: WorkerOptions,
    pub(super) sender: mpsc::Sender<Input>,
    /// How often the operator asked it to end.
    pub(super) drains: u32,
    /// What the master said about a refused hello.
    pub(super) detail: String,
    pub(super) end: Option<WorkerEnd>,
}

impl Worker {
    /// Runs until a command ends it.
    pub(super) async fn run(
        mut self,
        first: AgentEvent,
        mut inbox: mpsc::Receiver<Input>,
        state: &watch::Sender<WorkerState>,
    ) -> WorkerEnd {
        let mut taken = Vec::with_capacity(EVENTS);
        self.apply(first, &mut inbox).await;
        loop {
            if let Some(end) = self.end.take() {
                self.close(inbox).await;
                return end;
            }
            self.publish(state);
            let deadline = self.agent.next_deadline().map(|at| self.clock.instant(at));
            tokio::select! {
                _ = inbox.recv_many(&mut taken, EVENTS) => self.waiting.extend(taken.drain(..)),
                () = until(deadline) => self.apply(AgentEvent::Woke, &mut inbox).await,
            }
            while let Some(input) = self.waiting.pop_front() {
                if let Some(event) = self.event(input) {
                    self.apply(event, &mut inbox).await;
                }
            }
        }
    }

    fn publish(&self, state: &watch::Sender<WorkerState>) {
        let now = WorkerState {
            connected: self.agent.is_established(),
            draining: self.agent.is_draining(),
            running: self.agent.running().count(),
            unacknowledged: self.agent.outcomes().count(),
        };
        state.send_if_modified(|last| std::mem::replace(last, now) != now);
    }

    /// What happened, in core's words; none if core has nothing to decide about it.
    fn event(&mut self, input: Input) -> Option<AgentEvent> {
        match input {
            Input::Event(event) => Some(event),
            Input::Dialed(effect, Ok(stream)) => {
                let session = SessionId(self.next_session);
                self.next_session += 1;
                let limits = self.options.frame_limits;
                let stalled = Duration::from_millis(self.options.policy.settings().heartbeat_ttl.0);
                let inbox = self.sender.clone();
                let link = Link::open(stream, session, limits, stalled, inbox, Input::Heard);
                self.links.insert(session, link);
                Some(AgentEvent::Dialed(effect, session))
            }
            Input::Dialed(effect, Err(error)) => {
                tracing::info!(%error, "no connection to a master");
                Some(AgentEvent::DialFailed(effect))
            }
            Input::Heard(session, heard) => self.heard(session, heard),
            Input::Ended { at, verdict, report } => {
                self.attempts.ended(at);
                Some(AgentEvent::Ended { at, verdict, report })
            }
            Input::Drain => {
                self.drains += 1;
                let hand_back = self.drains > 1;
                if hand_back {
                    self.attempts.leave();
                }
                Some(AgentEvent::DrainAsked { hand_back })
            }
        }
    }

    fn heard(&mut self, session: SessionId, heard: Heard) -> Option<AgentEvent> {
        if !self.links.contains_key(&session) {
            return None;
        }
        let message = match heard {
            Heard::Message(Message::LogAck(ack)) => {
                self.on_log_ack(session, &ack);
                return None;
            }
            Heard::Message(message) => message,
            Heard::Closed(why) => return Some(self.lost(session, &why)),
        };
        let positions = match &message {
            Message::HelloAck(ack) => Some(self.on_hello_ack(ack)),
            _ => None,
        };
        match read_to_worker(message) {
            Ok(said) => {
                if let (Some(ToWorker::HelloAck(_)), Some(positions)) = (&said, positions) {
                    self.attach(session, positions);
                }
                said.map(|said| AgentEvent::Received(session, said))
            }
            Err(error) => Some(self.lost(session, &error.to_string())),
        }
    }

    fn lost(&mut self, session: SessionId, why: &str) -> AgentEvent {
        tracing::info!(%session, why, "the connection to the master ended");
        self.forget(session);
        AgentEvent::Closed(session)
    }

    fn forget(&mut self, session: SessionId) -> Option<Link> {
        let _ = self.shipper.send(Shipment::Detach(session));
        self.links.remove(&session)
    }

    /// Takes what core does not read; gives where the logs go on.
    fn on_hello_ack(&mut self, ack: &HelloAck) -> Vec<(AttemptRef, u64)> {
        self.detail.clone_from(&ack.detail);
        let beat = self.options.policy.settings().heartbeat.0;
        if ack.heartbeat_ms != 0 && ack.heartbeat_ms < beat {
            tracing::warn!(
                wanted_ms = ack.heartbeat_ms,
                sent_ms = beat,
                "the master wants heartbeats more often; give both the same `heartbeat`"
            );
        }
        ack.log_positions.iter().filter_map(position).collect()
    }

    /// Logs and progress go to this session. Should core not want it, it hangs up at once.
    fn attach(&mut self, session: SessionId, positions: Vec<(AttemptRef, u64)>) {
        if let Some(link) = self.links.get(&session) {
            let outlet = Outlet { session, frames: link.logs(), positions };
            let _ = self.shipper.send(Shipment::Attach(outlet));
            self.progress.tell_all_again();
        }
    }

    fn on_log_ack(&self, session: SessionId, ack: &LogAck) {
        let at = ack.at.and_then(attempt);
        if let Some(at) = at {
            let (next, closed) = (ack.next_offset, ack.closed);
            let _ = self.shipper.send(Shipment::Stored { session, at, next, closed });
        }
    }

    /// Lets core decide and does what it orders.
    async fn apply(&mut self, event: AgentEvent, inbox: &mut mpsc::Receiver<Input>) {
        if self.end.is_some() {
            return;
        }
        let now = self.clock.now();
        if !matches!(event, AgentEvent::Woke) {
            tracing::debug!("{event}");
        }
        let mut commands = Vec::new();
        if let Err(refused) = self.agent.handle(now, event, &mut commands) {
            tracing::error!(%refused, "core refused an event: a fault of the worker's driver");
        }
        if commands.contains(&AgentCommand::Drained) {
            self.finish_logs(inbox).await;
        }
        for command in commands {
            tracing::debug!("{command}");
            self.perform(now, command);
        }
    }

    fn perform(&mut self, now: Time, command: AgentCommand) {
        match command {
            AgentCommand::Dial(effect, master) => self.dial(effect, master),
            AgentCommand::Hangup(session) => self.hang_up(session),
            AgentCommand::Send(session, message) => self.send(session, &message),
            AgentCommand::Persist(effect, record) => self.persist(effect, record),
            AgentCommand::Start(execute) => self.attempts.start(now, execute),
            AgentCommand::Stop(at, reason) => self.attempts.stop(now, at, reason),
            AgentCommand::Drained => self.end = Some(WorkerEnd::Drained),
            AgentCommand::Quit(why) => {
                let detail = std::mem::take(&mut self.detail);
                self.end = Some(match why {
                    QuitReason::NameInUse => WorkerEnd::NameInUse(detail),
                    QuitReason::Replaced => WorkerEnd::Replaced(detail),
                });
            }
        }
    }

    fn dial(&self, effect: EffectId, master: usize) {
        let master = self.options.masters[master % self.options.masters.len()].clone();
        // Core gives a dial up after this long.
        let limit = Duration::from_millis(self.options.policy.settings().heartbeat_ttl.0);
        let inbox = self.sender.clone();
        tokio::spawn(async move {
            let dialed = connect(&master, limit).await;
            let _ = inbox.send(Input::Dialed(effect, dialed)).await;
        });
    }

    fn hang_up(&mut self, session: SessionId) {
        // The link says what waits and closes; it ends by itself.
        let _ = self.forget(session).map(Link::hang_up);
    }

    fn send(&mut self, session: SessionId, said: &ToMaster) {
        let Some(link) = self.links.get(&session) else { return };
        let place = match said {
            ToMaster::Finished(_) => Place::AfterLogs,
            _ => Place::First,
        };
        let mut message = write_to_master(said, &self.identity, &self.names);
        if let Message::Heartbeat(beat) = &mut message {
            beat.progress = self.progress.take_news();
        }
        if link.say(message, place).is_err() {
            let closed = self.lost(session, "the master does not read what it is sent");
            let inbox = self.sender.clone();
            tokio::spawn(async move { inbox.send(Input::Event(closed)).await });
        }
    }

    fn persist(&self, effect: EffectId, record: Record) {
        if let Record::Acknowledged(at, _) = record {
            let _ = self.shipper.send(Shipment::Settled(at));
        }
        self.disk.write(effect, record);
    }

    /// Every outcome is acknowledged; the last lines may still be under way.
    async fn finish_logs(&mut self, inbox: &mut mpsc::Receiver<Input>) {
        let (done, mut finished) = oneshot::channel();
        let _ = self.shipper.send(Shipment::Finish(done));
        let listen = async {
            loop {
                tokio::select! {
                    _ = &mut finished => return,
                    Some(input) = next(&mut self.waiting, inbox) => {
                        if let Input::Heard(session, heard) = input {
                            self.heard(session, heard);
                        }
                    }
                }
            }
        };
        let _ = tokio::time::timeout(LAST_LINES, listen).await;
    }

    /// Ends everything: the last words, the processes, the records.
    async fn close(mut self, inbox: mpsc::Receiver<Input>) {
        let links: Vec<_> = self.links.drain().map(|(_, link)| link.hang_up()).collect();
        let last_words = async {
            for link in links {
                let _ = link.await;
            }
        };
        let _ = tokio::time::timeout(LAST_WORDS, last_words).await;
        drop(self.sender);
        tokio::join!(self.disk.close(), self.attempts.close(inbox));
    }
}

async fn next(waiting: &mut VecDeque<Input>, inbox: &mut mpsc::Receiver<Input>) -> Option<Input> {
    match waiting.pop_front() {
        Some(input) => Some(input),
        None => inbox.recv().await,
    }
}

/// Without a deadline, for ever.
async fn until(deadline: Option<std::time::Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

fn position(position: &LogPosition) -> Option<(AttemptRef, u64)> {
    Some((attempt(position.at?)?, position.next_offset))
}

fn attempt(at: tenure_proto::messages::AttemptRef) -> Option<AttemptRef> {
    let attempt = tenure_core::ids::Attempt::new(at.attempt)?;
    Some(AttemptRef::new(TaskId(at.task), attempt))
}
