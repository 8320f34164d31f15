//! Random lives of one worker: orders, copies, ended sessions, failing disks, crashes. What must hold holds
//! after each event, and once the faults stop the worker can always leave with nothing owed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tenure_core::agent::{Agent, AgentConfig};
use tenure_core::command::{AgentCommand, Record};
use tenure_core::event::{AgentEvent, Remembered};
use tenure_core::ids::{AttemptRef, EffectId, Epoch, Holder, Incarnation, SessionId, WorkerId};
use tenure_core::message::{AckVerdict, Execute, HelloRefusal, StopReason, ToMaster, ToWorker};
use tenure_core::outcome::{Outcome, Verdict};
use tenure_core::random::Stream;
use tenure_core::rules::Rules;
use tenure_core::spec::{Labels, Payload, Shape};
use tenure_core::time::{Millis, Time};

use crate::bench::{at, config, term};

type OutcomeId = (AttemptRef, Incarnation);

const SLOTS: u32 = 3;

/// What survives a crash.
#[derive(Default)]
struct Disk {
    remembered: Remembered,
    given: BTreeSet<AttemptRef>,
}

impl Disk {
    fn write(&mut self, record: Record) {
        match record {
            Record::Given { at, term, .. } => {
                self.given.insert(at);
                self.remembered.highest = self.remembered.highest.max(term);
            }
            Record::Outcome(outcome) => {
                self.forget((outcome.at, outcome.ran_by));
                self.remembered.outcomes.push(outcome);
            }
            Record::Highest(term) => {
                self.remembered.highest = self.remembered.highest.max(term);
            }
            Record::Acknowledged(at, ran_by) => self.forget((at, ran_by)),
        }
    }

    fn forget(&mut self, id: OutcomeId) {
        self.remembered.outcomes.retain(|outcome| (outcome.at, outcome.ran_by) != id);
    }

    fn has(&self, id: OutcomeId) -> bool {
        self.remembered.outcomes.iter().any(|outcome| (outcome.at, outcome.ran_by) == id)
    }

    fn read(&self) -> Remembered {
        let given = self.given.iter().copied().collect();
        Remembered { given, ..self.remembered.clone() }
    }
}

struct World {
    random: Stream,
    now: Time,
    rules: Rules,
    agent: Agent,
    incarnation: u64,
    disk: Disk,
    writes: VecDeque<(EffectId, Record)>,
    dial: Option<EffectId>,
    session: Option<SessionId>,
    sessions: u64,
    /// Processes, and whether they were told to end.
    processes: BTreeMap<AttemptRef, bool>,
    ever_started: BTreeSet<AttemptRef>,
    /// Outcomes that nobody has acknowledged.
    owed: BTreeSet<OutcomeId>,
    /// Outcomes whose write failed, so that they may be told without it.
    unwritable: BTreeSet<OutcomeId>,
    newest_epoch: u64,
    /// The newest attempt of each task.
    attempts: [u32; 5],
    over: bool,
    faults: bool,
    /// How often what a run should show was seen.
    starts: u32,
    acks: u32,
}

fn agent(rules: Rules, incarnation: u64, seed: u64) -> Agent {
    let holder = Holder { worker: WorkerId(1), incarnation: Incarnation(incarnation) };
    let capacity = Shape { slots: 3, ..Shape::default() };
    Agent::new(AgentConfig { rules, holder, capacity, seed, ..config() })
}

impl World {
    fn new(rules: Rules, seed: u64) -> World {
        let mut world = World {
            random: Stream::new(seed),
            now: Time(1_000),
            rules,
            agent: agent(rules, 1, seed),
            incarnation: 1,
            disk: Disk::default(),
            writes: VecDeque::new(),
            dial: None,
            session: None,
            sessions: 0,
            processes: BTreeMap::new(),
            ever_started: BTreeSet::new(),
            owed: BTreeSet::new(),
            unwritable: BTreeSet::new(),
            newest_epoch: 1,
            attempts: [0; 5],
            over: false,
            faults: true,
            starts: 0,
            acks: 0,
        };
        world.event(AgentEvent::Booted(Remembered::default()));
        world
    }

    fn chance(&mut self, in_a_hundred: u64) -> bool {
        self.random.up_to(99) < in_a_hundred
    }

    fn step(&mut self) {
        match self.random.up_to(9) {
            0 | 1 => self.pass(),
            2 => self.answer_dial(),
            3 | 4 => self.answer_write(),
            5 => self.end_process(),
            6 if self.faults && self.chance(4) => self.crash(),
            6 if self.faults && self.chance(8) => self.close(),
            _ => self.master_speaks(),
        }
    }

    fn pass(&mut self) {
        let deadline = self.agent.next_deadline().unwrap_or(self.now);
        let early = self.chance(50);
        self.now = if early { self.now + Millis(1) } else { deadline.max(self.now) };
        self.event(AgentEvent::Woke);
    }

    fn answer_dial(&mut self) {
        let Some(effect) = self.dial.take() else {
            return;
        };
        if self.faults && self.chance(30) {
            self.event(AgentEvent::DialFailed(effect));
            return;
        }
        self.sessions += 1;
        let session = SessionId(self.sessions);
        self.session = Some(session);
        self.event(AgentEvent::Dialed(effect, session));
    }

    fn answer_write(&mut self) {
        let Some((effect, record)) = self.writes.pop_front() else {
            return;
        };
        if self.faults && self.chance(10) {
            if let Record::Outcome(outcome) = &record {
                self.unwritable.insert((outcome.at, outcome.ran_by));
            }
            self.event(AgentEvent::PersistFailed(effect));
        } else {
            self.disk.write(record);
            self.event(AgentEvent::Persisted(effect));
        }
    }

    fn end_process(&mut self) {
        let Some((at, _)) = self.processes.pop_first() else {
            return;
        };
        let verdicts = [Verdict::Succeeded, Verdict::Failed, Verdict::FailedForGood];
        let verdict = verdicts[self.random.up_to(2) as usize];
        self.owed.insert((at, Incarnation(self.incarnation)));
        self.event(AgentEvent::Ended { at, verdict, report: Payload::NONE });
    }

    fn close(&mut self) {
        if let Some(session) = self.session.take() {
            self.event(AgentEvent::Closed(session));
        }
    }

    /// Killed, and started again: only what is on the disk is left.
    fn crash(&mut self) {
        self.incarnation += 1;
        let seed = self.random.next_u64();
        self.agent = agent(self.rules, self.incarnation, seed);
        (self.dial, self.session) = (None, None);
        self.writes.clear();
        self.processes.clear();
        self.unwritable.clear();
        self.owed.retain(|id| self.disk.has(*id));
        // Told without being written, acknowledged, and still on the disk: it is told once more.
        let left = self.disk.remembered.outcomes.iter();
        self.owed.extend(left.map(|outcome| (outcome.at, outcome.ran_by)));
        self.event(AgentEvent::Booted(self.disk.read()));
    }

    fn master_speaks(&mut self) {
        let message = self.message();
        let current = SessionId(self.sessions);
        let old = self.faults && self.chance(10);
        let session = if old { SessionId(self.random.up_to(self.sessions)) } else { current };
        if Some(session) != self.session || !self.agent.is_established() {
            let before = (self.agent.clone(), self.processes.len());
            let greets = matches!(
                message,
                ToWorker::HelloAck(_) | ToWorker::NotLeader(_) | ToWorker::HelloRefused(_)
            );
            self.event(AgentEvent::Received(session, message));
            if Some(session) != self.session && !greets {
                assert_eq!(before.1, self.processes.len());
                assert_eq!(before.0.inventory(), self.agent.inventory());
            }
            return;
        }
        if let ToWorker::ResultAck { at, ran_by, epoch, .. } = &message
            && *epoch >= self.agent.highest().epoch
        {
            self.acks += u32::from(self.owed.remove(&(*at, *ran_by)));
        }
        self.event(AgentEvent::Received(session, message));
    }

    fn message(&mut self) -> ToWorker {
        let epoch = self.epoch();
        if !self.agent.is_established() && self.chance(80) {
            return ToWorker::HelloAck(term(epoch));
        }
        match self.random.up_to(if self.faults { 14 } else { 7 }) {
            0 => ToWorker::HelloAck(term(epoch)),
            1..=4 => self.acknowledge(epoch),
            5 => ToWorker::HeartbeatAck(Epoch(epoch)),
            6 => ToWorker::Ping,
            7 => self.stop(epoch),
            8 if self.chance(10) => ToWorker::NotLeader(Epoch(epoch)),
            _ => self.order(epoch),
        }
    }

    /// Mostly the newest leader speaks, sometimes one that was succeeded.
    fn epoch(&mut self) -> u64 {
        self.newest_epoch += u64::from(self.faults && self.chance(1));
        let stale = self.faults && self.chance(5);
        if stale { self.newest_epoch / 2 } else { self.newest_epoch }
    }

    /// Mostly a new attempt, sometimes a copy of an older order.
    fn order(&mut self, epoch: u64) -> ToWorker {
        let task = self.random.up_to(4);
        let back = if self.chance(20) { self.random.up_to(2) as u32 } else { 0 };
        let newest = &mut self.attempts[task as usize];
        *newest += u32::from(back == 0);
        let at = at(task, newest.saturating_sub(back).max(1));
        let timeout = self.chance(50).then(|| Millis(self.random.up_to(3_000)));
        let slots = 1 + self.random.up_to(1) as u16;
        let shape = Shape { slots, gpus: 0, labels: Labels::NONE };
        let payload = Payload::NONE;
        ToWorker::Execute(Execute {
            at,
            term: term(epoch),
            shape,
            timeout,
            resumes: false,
            payload,
        })
    }

    fn acknowledge(&mut self, epoch: u64) -> ToWorker {
        let Some((at, ran_by)) = self.owed.first().copied() else {
            return ToWorker::Ping;
        };
        // Only what was told can be acknowledged.
        if !self.disk.has((at, ran_by)) {
            return ToWorker::Ping;
        }
        let verdict = AckVerdict::Committed;
        ToWorker::ResultAck { at, ran_by, epoch: Epoch(epoch), verdict }
    }

    fn stop(&mut self, epoch: u64) -> ToWorker {
        let running = self.processes.first_key_value().map(|(at, _)| *at);
        let at = running.unwrap_or(at(1, 1));
        ToWorker::Stop { at, epoch: Epoch(epoch), reason: StopReason::Cancelled }
    }

    fn event(&mut self, event: AgentEvent) {
        let mut out = Vec::new();
        let told = std::format!("{event:?}");
        self.agent.handle(self.now, event, &mut out).expect("every event here is possible");
        for command in out {
            self.perform(command, &told);
        }
        self.check(&told);
    }

    fn perform(&mut self, command: AgentCommand, after: &str) {
        match command {
            AgentCommand::Dial(effect, master) => {
                assert!(master < 2 && self.session.is_none(), "one connection at a time: {after}");
                self.dial = Some(effect);
            }
            AgentCommand::Hangup(session) => {
                assert_eq!(self.session, Some(session), "{after}");
                self.session = None;
            }
            AgentCommand::Send(session, message) => {
                assert_eq!(self.session, Some(session), "said where nobody hears it: {after}");
                self.hear(&message, after);
            }
            AgentCommand::Persist(effect, record) => self.writes.push_back((effect, record)),
            AgentCommand::Start(execute) => {
                assert!(self.disk.given.contains(&execute.at), "not recorded: {after}");
                assert!(self.ever_started.insert(execute.at), "started twice: {after}");
                self.processes.insert(execute.at, false);
                self.starts += 1;
            }
            AgentCommand::Stop(at, _) => {
                let told = self.processes.insert(at, true);
                assert_eq!(told, Some(false), "what runs is stopped, once: {after}");
            }
            AgentCommand::Drained => self.over = true,
            AgentCommand::Quit(_) => panic!("no hello was refused: {after}"),
        }
    }

    fn hear(&self, message: &ToMaster, after: &str) {
        match message {
            ToMaster::Accepted(at) => assert!(self.disk.given.contains(at), "{after}"),
            ToMaster::Finished(outcome) => {
                let id = (outcome.at, outcome.ran_by);
                let safe = self.disk.has(id) || self.unwritable.contains(&id);
                assert!(safe, "told before it was written: {after}");
            }
            ToMaster::Hello(hello) => assert_eq!(hello.inventory, self.agent.inventory()),
            ToMaster::Declined(..) | ToMaster::Heartbeat(_) => {}
            ToMaster::DocumentedHeartbeat { .. }
            | ToMaster::DocumentedAnswer { .. }
            | ToMaster::DocumentedReport { .. } => panic!("a worker with hello says no such thing"),
        }
    }

    fn check(&self, after: &str) {
        let next = self.agent.next_deadline();
        assert!(next.is_none_or(|next| next > self.now), "{next:?} at {}: {after}", self.now);
        let running: Vec<AttemptRef> = self.agent.running().collect();
        let processes: Vec<AttemptRef> = self.processes.keys().copied().collect();
        assert_eq!(running, processes, "{after}");
        let id = |outcome: &Outcome| (outcome.at, outcome.ran_by);
        let kept: BTreeSet<OutcomeId> = self.agent.outcomes().map(id).collect();
        assert_eq!(kept, self.owed, "{after}");
        assert!(self.agent.free_slots() <= SLOTS - self.processes.len() as u32, "{after}");
        let listed = self.agent.inventory();
        assert_eq!(listed.running.len() + listed.finished.len(), kept.len() + running.len());
    }
}

/// A life with faults, then without; it must come to its end.
fn live(rules: Rules, seed: u64) -> World {
    let mut world = World::new(rules, seed);
    for _ in 0..500 {
        world.step();
    }
    world.faults = false;
    world.event(AgentEvent::DrainAsked { hand_back: seed.is_multiple_of(2) });
    let mut steps = 0;
    while !world.over {
        world.step();
        steps += 1;
        assert!(steps < 20_000, "seed {seed} never leaves: {:?}", world.agent);
    }
    world
}

#[test]
fn no_random_life_breaks_a_promise_and_each_can_be_ended_in_peace() {
    let (mut starts, mut acks, mut restarts) = (0, 0, 0);
    for seed in 0..400 {
        let world = live(Rules::ALL, seed);
        starts += world.starts;
        acks += world.acks;
        restarts += world.incarnation - 1;
    }
    assert!(starts > 2_000 && acks > 2_000 && restarts > 500, "{starts} {acks} {restarts}");
}

#[cfg(feature = "bugs")]
#[test]
fn a_random_life_shows_each_rule_that_is_taken_out() {
    use tenure_core::rules::Rule;
    for rule in [
        Rule::StartPersisted,
        Rule::OutcomePersisted,
        Rule::OutcomeKept,
        Rule::NeverStartedAgain,
        Rule::HighestEpoch,
        Rule::SessionFenced,
    ] {
        let breaks = |seed| std::panic::catch_unwind(|| live(Rules::without(rule), seed)).is_err();
        assert!((0..50).any(breaks), "{rule:?} is not missed");
    }
}

#[test]
fn a_refusal_in_an_ended_session_does_not_end_the_agent() {
    let mut world = World::new(Rules::ALL, 1);
    world.answer_dial();
    world.close();
    let late = ToWorker::HelloRefused(HelloRefusal::Replaced);
    world.event(AgentEvent::Received(SessionId(1), late));
    assert!(world.agent.next_deadline().is_some());
}
