//! The master's side: who runs what, and what became of it.
//!
//! Events change what is known (rows, sessions, inventories); what must be done about a task follows from
//! that knowledge alone ([`desk`]), one write at a time. So a live answer, a restart and a late message
//! all take the same path.

mod cancel;
mod commit;
mod desk;
mod dispatch;
mod documented;
mod effects;
mod expire;
mod heartbeat;
mod lead;
mod learn;
mod queue;
mod session;
mod submit;
mod task;
mod view;
mod worker;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::command::{MasterCommand, Reply};
use crate::deadlines::Deadlines;
use crate::election::{Election, Turn};
use crate::error::Refused;
use crate::event::{Ask, MasterEvent};
use crate::ids::{EffectId, Incarnation, RequestId, SessionId, TaskId, Term, WorkerId};
use crate::lease::LeaseAnswer;
use crate::message::ToMaster;
use crate::policy::{Policy, Settings};
use crate::random::Stream;
use crate::rules::Rules;
use crate::store::{StoreAnswer, StoreResult};
use crate::time::Time;

use desk::Desk;
use dispatch::Pool;
use effects::{Effects, Purpose};
use expire::Reason;
use queue::Queue;
use session::Session;
use task::Task;
pub use view::WorkerView;
use worker::Worker;

/// How a master is set up.
#[derive(Debug, Clone, Copy)]
pub struct MasterConfig {
    /// Timings.
    pub policy: Policy,
    /// Protocol rules; all of them outside the bug bank.
    pub rules: Rules,
    /// This start of the process, drawn at random.
    pub incarnation: Incarnation,
    /// No other master can reach the store: leads at once, and needs no renewal.
    pub exclusive: bool,
    /// Spreads retries and looks in time.
    pub seed: u64,
}

/// How far a term has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Another leads, or none.
    Following,
    /// Leads, and reads what there is.
    Reading(Term),
    /// Leads and decides.
    Leading { term: Term, since: Time },
    /// Leads, takes nothing new, and waits for the writes under way.
    Closing(Term),
    /// Has handed over.
    Stopped,
}

/// A master: one start of one process.
#[derive(Debug, Clone)]
pub struct Master {
    settings: Settings,
    rules: Rules,
    election: Election,
    stage: Stage,
    tasks: BTreeMap<TaskId, Task>,
    desks: BTreeMap<TaskId, Desk>,
    workers: BTreeMap<WorkerId, Worker>,
    sessions: BTreeMap<SessionId, Session>,
    queue: Queue,
    pool: Pool,
    /// Whether something changed that may let a waiting task go.
    dispatch_wanted: bool,
    effects: Effects,
    deadlines: Deadlines<Reason>,
    random: Stream,
    stop_asked: bool,
}

impl Master {
    /// A master that has not looked at anything yet. Its first event is [`MasterEvent::Woke`].
    #[must_use]
    pub fn new(config: MasterConfig) -> Master {
        let settings = config.policy.settings();
        let MasterConfig { rules, incarnation, exclusive, seed, .. } = config;
        Master {
            settings,
            rules,
            election: Election::new(incarnation, exclusive, settings, rules, seed),
            stage: Stage::Following,
            tasks: BTreeMap::new(),
            desks: BTreeMap::new(),
            workers: BTreeMap::new(),
            sessions: BTreeMap::new(),
            queue: Queue::default(),
            pool: Pool::default(),
            dispatch_wanted: false,
            effects: Effects::default(),
            deadlines: Deadlines::new(),
            random: Stream::new(seed.wrapping_add(1)),
            stop_asked: false,
        }
    }

    /// Applies one event and appends what must now be done to `out`.
    ///
    /// Stale, late and repeated things are normal: their answers are commands like any other.
    ///
    /// # Errors
    /// [`Refused`] if the event cannot be (a caller's bug). The state is then unchanged.
    pub fn handle(
        &mut self,
        now: Time,
        event: MasterEvent,
        out: &mut Vec<MasterCommand>,
    ) -> Result<(), Refused> {
        let lapsed = self.election.lapse(now);
        self.turn(lapsed, out);
        match event {
            MasterEvent::Woke => {}
            MasterEvent::Stored(effect, result) => self.on_stored(now, effect, result, out)?,
            MasterEvent::Leased(effect, answer) => self.on_leased(now, effect, answer, out),
            MasterEvent::Opened(session) => self.on_opened(session),
            MasterEvent::Closed(session) => self.on_closed(now, session, out),
            MasterEvent::Received(session, said) => self.on_received(now, session, said, out),
            MasterEvent::Asked(request, ask) => self.on_asked(now, request, ask, out),
            MasterEvent::StopAsked => self.stop_asked = true,
        }
        self.expire(now, out);
        self.election.poll(now, &mut self.effects.next, out);
        self.dispatch(now, out);
        self.close_down(now, out);
        Ok(())
    }

    /// When to send [`MasterEvent::Woke`] if nothing else happens before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        match (self.election.next_deadline(), self.deadlines.next()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// The term under which it decides, if it does.
    #[must_use]
    pub fn leads(&self) -> Option<Term> {
        match self.stage {
            Stage::Leading { term, .. } => Some(term),
            Stage::Following | Stage::Reading(_) | Stage::Closing(_) | Stage::Stopped => None,
        }
    }

    /// The term whose writes are under way: leading, or closing down.
    fn term(&self) -> Option<Term> {
        match self.stage {
            Stage::Leading { term, .. } | Stage::Closing(term) => Some(term),
            Stage::Following | Stage::Reading(_) | Stage::Stopped => None,
        }
    }

    fn on_stored(
        &mut self,
        now: Time,
        effect: EffectId,
        result: StoreResult,
        out: &mut Vec<MasterCommand>,
    ) -> Result<(), Refused> {
        if self.election.ordered(effect) {
            let turn = self.election.on_answer(now, effect, result, &mut self.effects.next, out);
            self.turn(turn, out);
            return Ok(());
        }
        let Some(purpose) = self.effects.end(effect)? else {
            return Ok(());
        };
        if matches!(result, StoreResult::Answer(StoreAnswer::Deposed(_))) {
            self.abandon(purpose, out);
            let turn = self.election.deposed(now);
            self.turn(turn, out);
            return Ok(());
        }
        match purpose {
            Purpose::Insert { request, claim, shape, payload, after } => {
                self.on_inserted(now, request, claim, &shape, payload, after, result, out);
            }
            Purpose::Task(task, doing) => self.on_task_answer(now, task, doing, result, out),
            Purpose::Register(session) => self.on_registered(now, session, &result, out),
            Purpose::ReadAll => self.on_read_all(now, result, out),
            Purpose::Reconcile { after, asked, pass } => {
                self.on_reconciled(now, after, asked, pass, result, out);
            }
        }
        Ok(())
    }

    fn on_leased(
        &mut self,
        now: Time,
        effect: EffectId,
        answer: LeaseAnswer,
        out: &mut Vec<MasterCommand>,
    ) {
        // Leases follow; only a look at a heartbeat key is waited for.
        if let Some(worker) = self.effects.end_look(effect) {
            self.on_looked(now, worker, answer == LeaseAnswer::Alive(true), out);
        }
    }

    fn on_received(
        &mut self,
        now: Time,
        session: SessionId,
        said: ToMaster,
        out: &mut Vec<MasterCommand>,
    ) {
        let Some(known) = self.sessions.get(&session) else {
            return;
        };
        match (said, known.live()) {
            (ToMaster::Hello(hello), None) => self.on_hello(now, session, hello, out),
            (ToMaster::Hello(_), Some(_)) => self.drop_session(now, session, out),
            (ToMaster::Heartbeat(inventory), Some(worker)) => {
                self.on_heartbeat(now, worker, session, &inventory, out);
            }
            (ToMaster::Accepted(at), Some(worker)) => self.on_accepted(now, worker, session, at),
            (ToMaster::Declined(at, why), Some(worker)) => {
                self.on_declined(now, worker, session, at, why, out);
            }
            (ToMaster::Finished(outcome), Some(worker)) => {
                self.heard(now, worker);
                self.on_outcome(now, session, outcome, out);
            }
            (ToMaster::DocumentedHeartbeat { worker, busy }, _) => {
                self.on_documented_heartbeat(now, session, worker, busy, out);
            }
            (ToMaster::DocumentedAnswer { task, accepted }, Some(worker)) => {
                self.on_documented_answer(now, worker, session, task, accepted, out);
            }
            (ToMaster::DocumentedReport { task, attempt, verdict, report }, Some(worker)) => {
                self.on_documented_report(
                    now, worker, session, task, attempt, verdict, report, out,
                );
            }
            // Before its hello a peer has nothing to say.
            (
                ToMaster::Heartbeat(_)
                | ToMaster::Accepted(_)
                | ToMaster::Declined(..)
                | ToMaster::Finished(_)
                | ToMaster::DocumentedAnswer { .. }
                | ToMaster::DocumentedReport { .. },
                None,
            ) => {}
        }
    }

    fn on_asked(&mut self, now: Time, request: RequestId, ask: Ask, out: &mut Vec<MasterCommand>) {
        if self.leads().is_none() {
            let epoch = self.election.seen();
            out.push(MasterCommand::Reply(request, Reply::NotLeader(epoch)));
            return;
        }
        match ask {
            Ask::Submit(submission) => self.submit(now, request, submission, out),
            Ask::Cancel { task, force } => self.cancel(now, request, task, force, out),
        }
    }

    fn turn(&mut self, turn: Turn, out: &mut Vec<MasterCommand>) {
        match turn {
            Turn::Same => {}
            Turn::Won(term) => self.begin_term(term, out),
            Turn::Lost(term) => self.step_down(term, out),
            Turn::Released => {
                self.stage = Stage::Stopped;
                out.push(MasterCommand::Stopped);
            }
        }
    }
}
