//! Agents and a master on one network: what the one says, the other must understand.

use std::collections::{BTreeMap, BTreeSet};

use tenure_core::agent::{Agent, AgentConfig};
use tenure_core::command::{AgentCommand, MasterCommand, Record};
use tenure_core::event::{AgentEvent, Ask, MasterEvent, Remembered};
use tenure_core::ids::{
    AttemptRef, EffectId, Holder, Incarnation, RequestId, SessionId, TaskId, WorkerId,
};
use tenure_core::master::{Master, MasterConfig};
use tenure_core::model::lease_table::LeaseTable;
use tenure_core::model::task_table::TaskTable;
use tenure_core::outcome::Verdict;
use tenure_core::policy::Policy;
use tenure_core::random::Stream;
use tenure_core::rules::Rules;
use tenure_core::spec::{IdempotencyKey, Limits, Payload, Shape, Submission};
use tenure_core::store::{Status, StoreResult};
use tenure_core::time::{Millis, Time};

use crate::bench::config;

const TASKS: u64 = 40;
const WORKERS: usize = 3;

#[derive(Debug)]
enum Happening {
    Master(MasterEvent),
    /// For that start of that worker; a later start never hears of it.
    Agent(usize, u64, AgentEvent),
    WakeMaster,
    WakeAgent(usize),
}

/// A worker and what its host knows.
struct Host {
    agent: Agent,
    incarnation: u64,
    session: Option<SessionId>,
    disk: Remembered,
    running: BTreeSet<AttemptRef>,
}

struct World {
    random: Stream,
    now: Time,
    order: u64,
    queue: BTreeMap<(Time, u64), Happening>,
    master: Master,
    store: TaskTable,
    leases: LeaseTable,
    hosts: Vec<Host>,
    sessions: BTreeMap<SessionId, (usize, u64)>,
    started: BTreeSet<AttemptRef>,
    /// When the last message of a direction arrives: a session keeps its order.
    arrivals: BTreeMap<(SessionId, bool), Time>,
    /// The wake that is armed for each worker, and last for the master.
    wakes: [Option<Time>; WORKERS + 1],
    faults: u32,
}

fn boot(worker: usize, incarnation: u64) -> Agent {
    let worker = WorkerId(worker as u32);
    let holder = Holder { worker, incarnation: Incarnation(incarnation) };
    let capacity = Shape { slots: 2, ..Shape::default() };
    Agent::new(AgentConfig { holder, capacity, masters: 1, seed: incarnation, ..config() })
}

impl World {
    fn new(seed: u64) -> World {
        let master = Master::new(MasterConfig {
            policy: Policy::default(),
            rules: Rules::ALL,
            incarnation: Incarnation(77),
            exclusive: true,
            seed,
        });
        let mut world = World {
            random: Stream::new(seed),
            now: Time(1_000),
            order: 0,
            queue: BTreeMap::new(),
            master,
            store: TaskTable::new(),
            leases: LeaseTable::new(),
            hosts: Vec::new(),
            sessions: BTreeMap::new(),
            started: BTreeSet::new(),
            arrivals: BTreeMap::new(),
            wakes: [None; WORKERS + 1],
            faults: 0,
        };
        world.tell_master(MasterEvent::Woke);
        for worker in 0..WORKERS {
            let incarnation = 1_000 * (worker as u64 + 1);
            let (agent, disk) = (boot(worker, incarnation), Remembered::default());
            let running = BTreeSet::new();
            world.hosts.push(Host { agent, incarnation, session: None, disk, running });
            world.tell_agent(worker, AgentEvent::Booted(Remembered::default()));
        }
        world
    }

    fn submit(&mut self, task: u64) {
        let submission = Submission {
            shape: Shape::default(),
            limits: Limits { max_attempts: 100, max_lost: 100, ..Limits::default() },
            payload: Payload::NONE,
            key: IdempotencyKey(std::format!("k{task}").into()),
            fingerprint: 1,
        };
        self.tell_master(MasterEvent::Asked(RequestId(task), Ask::Submit(submission)));
    }

    fn after(&mut self, most: u64, what: Happening) {
        let at = self.now + Millis(1 + self.random.up_to(most));
        self.enqueue(at, what);
    }

    fn enqueue(&mut self, at: Time, what: Happening) {
        self.order += 1;
        self.queue.insert((at, self.order), what);
    }

    /// One wake at a time for each; who is woken looks for its next deadline again.
    fn wake_at(&mut self, deadline: Option<Time>, what: Happening) {
        let who = match what {
            Happening::WakeAgent(worker) => worker,
            Happening::WakeMaster | Happening::Master(_) | Happening::Agent(..) => WORKERS,
        };
        if let Some(at) = deadline
            && self.wakes[who].is_none_or(|armed| armed <= self.now || at < armed)
        {
            self.wakes[who] = Some(at);
            self.enqueue(at.max(self.now), what);
        }
    }

    /// A message arrives after those that were sent before it in its session.
    fn deliver(&mut self, session: SessionId, to_master: bool, what: Happening) {
        let at = self.now + Millis(1 + self.random.up_to(4));
        let last = self.arrivals.entry((session, to_master)).or_default();
        *last = at.max(*last);
        let at = *last;
        self.enqueue(at, what);
    }

    fn answer_agent(&mut self, worker: usize, most: u64, event: AgentEvent) {
        let incarnation = self.hosts[worker].incarnation;
        self.after(most, Happening::Agent(worker, incarnation, event));
    }

    fn step(&mut self) {
        let ((at, _), what) = self.queue.pop_first().expect("deadlines never run out");
        self.now = at;
        match what {
            Happening::Master(event) => self.tell_master(event),
            Happening::Agent(worker, incarnation, event) => {
                if self.hosts[worker].incarnation == incarnation {
                    if let AgentEvent::Ended { at, .. } = &event {
                        self.hosts[worker].running.remove(at);
                    }
                    self.tell_agent(worker, event);
                }
            }
            Happening::WakeMaster => {
                self.tell_master(MasterEvent::Woke);
            }
            Happening::WakeAgent(worker) => {
                self.tell_agent(worker, AgentEvent::Woke);
            }
        }
    }

    fn tell_master(&mut self, event: MasterEvent) {
        let mut out = Vec::new();
        self.master.handle(self.now, event, &mut out).expect("every event here is possible");
        for command in out {
            self.perform_for_master(command);
        }
        self.wake_at(self.master.next_deadline(), Happening::WakeMaster);
    }

    fn perform_for_master(&mut self, command: MasterCommand) {
        match command {
            MasterCommand::Store(effect, op) => {
                let answer = StoreResult::Answer(self.store.apply(self.now, &op));
                self.after(3, Happening::Master(MasterEvent::Stored(effect, answer)));
            }
            MasterCommand::Lease(effect, op) => {
                let answer = self.leases.apply(self.now, &op);
                self.after(3, Happening::Master(MasterEvent::Leased(effect, answer)));
            }
            MasterCommand::Send(session, message) => {
                if let Some((worker, incarnation)) = self.sessions.get(&session).copied() {
                    let event = AgentEvent::Received(session, message);
                    self.deliver(session, false, Happening::Agent(worker, incarnation, event));
                }
            }
            MasterCommand::Close(session, _) => {
                if let Some((worker, incarnation)) = self.sessions.remove(&session) {
                    let event = AgentEvent::Closed(session);
                    self.deliver(session, false, Happening::Agent(worker, incarnation, event));
                }
            }
            MasterCommand::Reply(..)
            | MasterCommand::Lead(_)
            | MasterCommand::StepDown(_)
            | MasterCommand::Stopped => {}
        }
    }

    fn tell_agent(&mut self, worker: usize, event: AgentEvent) {
        let mut out = Vec::new();
        let agent = &mut self.hosts[worker].agent;
        agent.handle(self.now, event, &mut out).expect("every event here is possible");
        let deadline = agent.next_deadline();
        self.wake_at(deadline, Happening::WakeAgent(worker));
        for command in out {
            self.perform_for_agent(worker, command);
        }
    }

    fn perform_for_agent(&mut self, worker: usize, command: AgentCommand) {
        match command {
            AgentCommand::Dial(effect, _) => self.connect(worker, effect),
            AgentCommand::Hangup(session) => self.hang_up(session),
            AgentCommand::Send(session, message) => {
                if self.sessions.contains_key(&session) {
                    let event = MasterEvent::Received(session, message);
                    self.deliver(session, true, Happening::Master(event));
                }
            }
            AgentCommand::Persist(effect, record) => {
                self.write(worker, record);
                self.answer_agent(worker, 3, AgentEvent::Persisted(effect));
            }
            AgentCommand::Start(execute) => self.start(worker, execute.at),
            AgentCommand::Stop(at, _) => {
                if self.hosts[worker].running.contains(&at) {
                    self.end(worker, at, Verdict::Failed, 5);
                }
            }
            // Its host's supervisor starts it again.
            AgentCommand::Quit(_) => self.kill(worker),
            AgentCommand::Drained => panic!("nobody asked for that"),
        }
    }

    fn connect(&mut self, worker: usize, effect: EffectId) {
        self.order += 1;
        let session = SessionId(self.order);
        let incarnation = self.hosts[worker].incarnation;
        self.sessions.insert(session, (worker, incarnation));
        self.hosts[worker].session = Some(session);
        self.deliver(session, true, Happening::Master(MasterEvent::Opened(session)));
        let dialed = AgentEvent::Dialed(effect, session);
        self.deliver(session, false, Happening::Agent(worker, incarnation, dialed));
    }

    fn hang_up(&mut self, session: SessionId) {
        if self.sessions.remove(&session).is_some() {
            self.deliver(session, true, Happening::Master(MasterEvent::Closed(session)));
        }
    }

    fn write(&mut self, worker: usize, record: Record) {
        let disk = &mut self.hosts[worker].disk;
        match record {
            Record::Given { at, .. } => disk.given.push(at),
            Record::Outcome(outcome) => disk.outcomes.push(outcome),
            Record::Highest(term) => disk.highest = term,
            Record::Acknowledged(at, ran_by) => {
                disk.outcomes.retain(|outcome| (outcome.at, outcome.ran_by) != (at, ran_by));
            }
        }
    }

    fn start(&mut self, worker: usize, at: AttemptRef) {
        assert!(self.started.insert(at), "{at} was started twice");
        self.hosts[worker].running.insert(at);
        assert!(self.hosts[worker].running.len() <= 2, "more than its slots");
        let verdict = if self.random.up_to(19) == 0 { Verdict::Failed } else { Verdict::Succeeded };
        self.end(worker, at, verdict, 200);
    }

    fn end(&mut self, worker: usize, at: AttemptRef, verdict: Verdict, most: u64) {
        let report = Payload::NONE;
        self.answer_agent(worker, most, AgentEvent::Ended { at, verdict, report });
    }

    fn fault(&mut self) {
        let worker = self.random.up_to(WORKERS as u64 - 1) as usize;
        self.faults += 1;
        match (self.random.up_to(5), self.hosts[worker].session) {
            (0..=2, _) => self.kill(worker),
            (3..=4, Some(session)) => self.break_off(worker, session),
            // Half-open: nothing comes through any more, and neither side is told.
            (_, Some(session)) => drop(self.sessions.remove(&session)),
            (_, None) => {}
        }
    }

    fn break_off(&mut self, worker: usize, session: SessionId) {
        if self.sessions.contains_key(&session) {
            self.hang_up(session);
            let incarnation = self.hosts[worker].incarnation;
            let event = AgentEvent::Closed(session);
            self.deliver(session, false, Happening::Agent(worker, incarnation, event));
        }
    }

    fn kill(&mut self, worker: usize) {
        if let Some(session) = self.hosts[worker].session.take() {
            self.hang_up(session);
        }
        let host = &mut self.hosts[worker];
        host.incarnation += 1;
        host.agent = boot(worker, host.incarnation);
        host.running.clear();
        let disk = host.disk.clone();
        self.tell_agent(worker, AgentEvent::Booted(disk));
    }

    fn completed(&self) -> usize {
        let status = |task| self.store.entry(TaskId(task)).map(|entry| entry.row.status);
        (1..=TASKS).filter(|task| status(*task) == Some(Status::Completed)).count()
    }

    fn owed(&self) -> usize {
        self.hosts.iter().map(|host| host.agent.outcomes().count()).sum()
    }
}

#[test]
fn every_task_completes_whatever_sessions_and_workers_end_meanwhile() {
    for seed in 0..100 {
        let mut world = World::new(seed);
        while world.master.leads().is_none() {
            world.step();
        }
        (1..=TASKS).for_each(|task| world.submit(task));
        for _ in 0..1_500 {
            world.step();
            if world.random.up_to(30) == 0 {
                world.fault();
            }
        }
        assert!(world.faults > 10, "seed {seed}: {} faults", world.faults);
        let until = world.now + Millis(60_000);
        while world.completed() < TASKS as usize || world.owed() > 0 {
            assert!(world.now < until, "seed {seed}: {} done", world.completed());
            world.step();
        }
    }
}
