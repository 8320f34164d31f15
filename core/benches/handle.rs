//! Events per second of the master over whole task lives: submit, claim, accept, three heartbeats, outcome.
//!
//! `cargo bench -p tenure-core` prints a line for each number of tasks at hand. The stores answer at once and their time
//! is part of the figure, as their model is part of core.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a benchmark measures real time; core itself never reads a clock"
)]

use std::collections::VecDeque;
use std::time::Instant;

use tenure_core::command::MasterCommand;
use tenure_core::event::{Ask, MasterEvent};
use tenure_core::ids::{AttemptRef, Incarnation, RequestId, SessionId, Term, WorkerId};
use tenure_core::master::{Master, MasterConfig};
use tenure_core::message::{Hello, Inventory, ToMaster, ToWorker};
use tenure_core::model::lease_table::LeaseTable;
use tenure_core::model::task_table::TaskTable;
use tenure_core::outcome::{Outcome, Verdict};
use tenure_core::policy::{Policy, Settings};
use tenure_core::rules::Rules;
use tenure_core::spec::{IdempotencyKey, Labels, Limits, Payload, Shape, Submission};
use tenure_core::store::StoreResult;
use tenure_core::time::{Millis, Time};

const WORKERS: u32 = 100;
const SLOTS: u16 = 10;
const BEATS: usize = 3;

struct Load {
    now: Time,
    master: Master,
    store: TaskTable,
    leases: LeaseTable,
    out: Vec<MasterCommand>,
    queue: VecDeque<MasterEvent>,
    running: Vec<Vec<AttemptRef>>,
    events: u64,
    committed: u64,
}

impl Load {
    fn new() -> Load {
        // The slow comparison with the store is no event of a task's life.
        let settings = Settings { reconcile: Millis(1 << 40), ..Settings::DEFAULT };
        let config = MasterConfig {
            policy: Policy::new(settings).expect("a longer interval is safe"),
            rules: Rules::ALL,
            incarnation: Incarnation(1),
            exclusive: true,
            seed: 1,
        };
        let mut load = Load {
            now: Time(1_000),
            master: Master::new(config),
            store: TaskTable::new(),
            leases: LeaseTable::new(),
            out: Vec::new(),
            queue: VecDeque::new(),
            running: vec![Vec::new(); WORKERS as usize],
            events: 0,
            committed: 0,
        };
        load.event(MasterEvent::Woke);
        load
    }

    fn event(&mut self, event: MasterEvent) {
        self.queue.push_back(event);
        while let Some(event) = self.queue.pop_front() {
            self.events += 1;
            self.master.handle(self.now, event, &mut self.out).expect("possible events only");
            for command in self.out.drain(..) {
                match command {
                    MasterCommand::Store(effect, op) => {
                        let answer = self.store.apply(self.now, &op);
                        self.queue
                            .push_back(MasterEvent::Stored(effect, StoreResult::Answer(answer)));
                    }
                    MasterCommand::Lease(effect, op) => {
                        let answer = self.leases.apply(self.now, &op);
                        self.queue.push_back(MasterEvent::Leased(effect, answer));
                    }
                    MasterCommand::Send(session, ToWorker::Execute(execute)) => {
                        self.running[session.0 as usize].push(execute.at);
                        let accepted = ToMaster::Accepted(execute.at);
                        self.queue.push_back(MasterEvent::Received(session, accepted));
                    }
                    MasterCommand::Send(_, ToWorker::ResultAck { .. }) => self.committed += 1,
                    _ => {}
                }
            }
        }
    }

    fn connect(&mut self, worker: u32) {
        let session = SessionId(u64::from(worker));
        self.event(MasterEvent::Opened(session));
        let hello = Hello {
            worker: WorkerId(worker),
            incarnation: Incarnation(u64::from(worker) + 100),
            capacity: Shape { slots: SLOTS, gpus: 0, labels: Labels::NONE },
            highest: Term::default(),
            inventory: Inventory::default(),
            draining: false,
        };
        self.event(MasterEvent::Received(session, ToMaster::Hello(hello)));
    }

    fn submit(&mut self, number: u64) {
        let submission = Submission {
            shape: Shape::default(),
            limits: Limits::default(),
            payload: Payload::NONE,
            key: IdempotencyKey(number.to_string().into()),
            fingerprint: 1,
        };
        self.event(MasterEvent::Asked(RequestId(number), Ask::Submit(submission)));
    }

    /// Three beats of every worker, then the end of all that they run.
    fn round(&mut self) {
        for _ in 0..BEATS {
            self.now = Time(self.now.0 + 1_000);
            for worker in 0..self.running.len() {
                let running = self.running[worker].clone();
                let beat = ToMaster::Heartbeat(Inventory { running, finished: Vec::new() });
                self.event(MasterEvent::Received(SessionId(worker as u64), beat));
            }
        }
        for worker in 0..self.running.len() {
            for at in std::mem::take(&mut self.running[worker]) {
                let outcome = Outcome {
                    at,
                    ran_by: Incarnation(worker as u64 + 100),
                    verdict: Verdict::Succeeded,
                    report: Payload::NONE,
                };
                let session = SessionId(worker as u64);
                self.event(MasterEvent::Received(session, ToMaster::Finished(outcome)));
            }
        }
    }
}

fn measure(tasks: u64) {
    let mut load = Load::new();
    let start = Instant::now();
    for number in 0..tasks {
        load.submit(number);
    }
    for worker in 0..WORKERS {
        load.connect(worker);
    }
    let mut rounds = 0;
    while load.committed < tasks {
        load.round();
        rounds += 1;
        assert!(rounds <= tasks, "no progress");
    }
    let seconds = start.elapsed().as_secs_f64();
    let rate = load.events as f64 / seconds;
    println!(
        "{tasks:>9} tasks: {:>9.0} events/s, {:>6.1} events a life, {:>7.0} ns an event",
        rate,
        load.events as f64 / tasks as f64,
        1e9 / rate
    );
}

fn main() {
    for tasks in [1_000, 10_000, 100_000] {
        measure(tasks);
    }
}
