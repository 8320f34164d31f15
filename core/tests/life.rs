//! A task's whole life against the store models, without faults.

use tenure_core::command::{MasterCommand, Reply};
use tenure_core::event::{Ask, MasterEvent};
use tenure_core::ids::{
    Attempt, AttemptRef, EffectId, Incarnation, RequestId, SessionId, TaskId, Term, WorkerId,
};
use tenure_core::master::{Master, MasterConfig};
use tenure_core::message::{Hello, Inventory, ToMaster, ToWorker};
use tenure_core::model::lease_table::LeaseTable;
use tenure_core::model::task_table::TaskTable;
use tenure_core::outcome::{Outcome, Verdict};
use tenure_core::policy::Policy;
use tenure_core::rules::Rules;
use tenure_core::spec::{IdempotencyKey, Limits, Payload, Shape, Submission};
use tenure_core::store::{Status, StoreOp, StoreResult};
use tenure_core::time::Time;

/// A master on its stores, which answer at once.
struct Bench {
    now: Time,
    master: Master,
    store: TaskTable,
    leases: LeaseTable,
    said: Vec<(SessionId, ToWorker)>,
    replies: Vec<Reply>,
}

impl Bench {
    fn new() -> Bench {
        let config = MasterConfig {
            policy: Policy::default(),
            rules: Rules::ALL,
            incarnation: Incarnation(77),
            exclusive: true,
            seed: 1,
        };
        let mut bench = Bench {
            now: Time(1_000),
            master: Master::new(config),
            store: TaskTable::new(),
            leases: LeaseTable::new(),
            said: Vec::new(),
            replies: Vec::new(),
        };
        bench.event(MasterEvent::Woke);
        bench
    }

    fn event(&mut self, event: MasterEvent) {
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            let mut out = Vec::new();
            self.master.handle(self.now, event, &mut out).expect("every event here is possible");
            for command in out {
                match command {
                    MasterCommand::Store(effect, op) => {
                        let answer = self.store.apply(self.now, &op);
                        events.push(MasterEvent::Stored(effect, StoreResult::Answer(answer)));
                    }
                    MasterCommand::Lease(effect, op) => {
                        let answer = self.leases.apply(self.now, &op);
                        events.push(MasterEvent::Leased(effect, answer));
                    }
                    MasterCommand::Send(session, message) => self.said.push((session, message)),
                    MasterCommand::Reply(_, reply) => self.replies.push(reply),
                    MasterCommand::Close(..)
                    | MasterCommand::Lead(_)
                    | MasterCommand::StepDown(_)
                    | MasterCommand::Stopped => {}
                }
            }
        }
    }

    fn connect(&mut self, session: u64, worker: u32) {
        let session = SessionId(session);
        self.event(MasterEvent::Opened(session));
        let hello = Hello {
            worker: WorkerId(worker),
            incarnation: Incarnation(u64::from(worker) + 100),
            capacity: Shape::default(),
            highest: Term::default(),
            inventory: Inventory::default(),
            draining: false,
        };
        self.event(MasterEvent::Received(session, ToMaster::Hello(hello)));
    }

    fn submit(&mut self, key: &str) {
        self.event(MasterEvent::Asked(RequestId(1), Ask::Submit(submission(key))));
    }

    fn ordered(&self) -> Vec<(SessionId, AttemptRef)> {
        let executes = self.said.iter().filter_map(|(session, message)| match message {
            ToWorker::Execute(execute) => Some((*session, execute.at)),
            _ => None,
        });
        executes.collect()
    }

    fn status(&self, task: u64) -> Status {
        self.store.entry(TaskId(task)).expect("the task was stored").row.status
    }
}

fn submission(key: &str) -> Submission {
    Submission {
        shape: Shape::default(),
        limits: Limits::default(),
        payload: Payload::of(b"true"),
        key: IdempotencyKey(key.into()),
        fingerprint: 1,
    }
}

fn attempt(task: u64) -> AttemptRef {
    AttemptRef::new(TaskId(task), Attempt::FIRST)
}

#[test]
fn a_task_submitted_while_a_worker_is_idle_is_stored_and_claimed_in_one_write() {
    let mut bench = Bench::new();
    bench.connect(1, 1);
    bench.submit("k");
    assert_eq!(bench.replies, [Reply::Submitted { task: TaskId(1), existed: false }]);
    assert_eq!(bench.ordered(), [(SessionId(1), attempt(1))]);
    assert_eq!(bench.status(1), Status::Running);
}

#[test]
fn a_task_lives_from_submission_to_commit_and_its_lease_ends_with_it() {
    let mut bench = Bench::new();
    bench.submit("k");
    assert_eq!(bench.status(1), Status::Pending);
    bench.connect(1, 1);
    assert_eq!(bench.ordered(), [(SessionId(1), attempt(1))]);
    assert_eq!(bench.leases.live_tasks(bench.now).count(), 1);

    bench.event(MasterEvent::Received(SessionId(1), ToMaster::Accepted(attempt(1))));
    let outcome = Outcome {
        at: attempt(1),
        ran_by: Incarnation(101),
        verdict: Verdict::Succeeded,
        report: Payload::NONE,
    };
    bench.event(MasterEvent::Received(SessionId(1), ToMaster::Finished(outcome)));
    assert_eq!(bench.status(1), Status::Completed);
    assert_eq!(bench.leases.live_tasks(bench.now).count(), 0);
    let acks = bench.said.iter().filter(|(_, said)| matches!(said, ToWorker::ResultAck { .. }));
    assert_eq!(acks.count(), 1);
}

#[test]
fn a_worker_that_disconnects_loses_its_task_to_an_idle_one_after_the_grace() {
    let mut bench = Bench::new();
    bench.connect(1, 1);
    bench.connect(2, 2);
    bench.submit("k");
    let (first, _) = bench.ordered()[0];
    bench.event(MasterEvent::Received(first, ToMaster::Accepted(attempt(1))));
    bench.event(MasterEvent::Closed(first));
    let deadline = bench.master.next_deadline().expect("the patience is armed");
    assert_eq!(deadline, Time(1_250));
    bench.now = deadline;
    bench.event(MasterEvent::Woke);
    let (second, at) = bench.ordered()[1];
    assert_ne!(first, second);
    assert_eq!(at.attempt.number(), 2);
}

/// The one order to the task store among these commands.
fn store_order(out: &mut Vec<MasterCommand>) -> (EffectId, StoreOp) {
    let order = out.drain(..).find_map(|command| match command {
        MasterCommand::Store(effect, op) => Some((effect, op)),
        _ => None,
    });
    order.expect("an order to the store")
}

#[test]
fn a_submission_without_answer_is_found_although_a_later_one_was_answered_first() {
    let mut bench = Bench::new();
    let mut out = Vec::new();
    let mut orders = Vec::new();
    for key in ["first", "second"] {
        let asked = MasterEvent::Asked(RequestId(1), Ask::Submit(submission(key)));
        bench.master.handle(bench.now, asked, &mut out).expect("it leads");
        orders.push(store_order(&mut out));
    }
    let answers: Vec<_> = orders.iter().map(|(_, op)| bench.store.apply(bench.now, op)).collect();
    let second = StoreResult::Answer(answers[1].clone());
    bench.event(MasterEvent::Stored(orders[1].0, second));
    bench.event(MasterEvent::Stored(orders[0].0, StoreResult::Unknown));
    bench.now = Time(1_100);
    bench.event(MasterEvent::Woke);
    bench.connect(1, 1);
    assert_eq!(bench.ordered(), [(SessionId(1), attempt(1))]);
}
