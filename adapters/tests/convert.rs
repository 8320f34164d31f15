//! What one side writes the other side reads as it was meant, and what cannot be is refused.

use tenure_adapters::convert::{
    ConvertError, Dialect, DocumentedLog, WorkerIdentity, read_documented, read_to_master,
    read_to_worker, write_to_master, write_to_worker,
};
use tenure_adapters::names::Names;
use tenure_core::ids::{Attempt, AttemptRef, Epoch, Incarnation, TaskId, Term};
use tenure_core::message::{
    AckVerdict, Decline, Execute, Finished, Hello, HelloRefusal, Inventory, StopReason, ToMaster,
    ToWorker,
};
use tenure_core::outcome::{Outcome, Verdict};
use tenure_core::spec::{Labels, Payload, Shape};
use tenure_core::time::Millis;
use tenure_proto::{Message, messages as pb};

const TERM: Term = Term { epoch: Epoch(9), leader: Incarnation(u64::MAX) };

fn attempt(task: u64, number: u32) -> AttemptRef {
    AttemptRef::new(TaskId(task), Attempt::new(number).expect("attempts begin at 1"))
}

fn me() -> WorkerIdentity {
    WorkerIdentity {
        name: "gpu-1".to_owned(),
        incarnation: Incarnation(77),
        hostname: "host".to_owned(),
        pid: 4,
        version: "1".to_owned(),
    }
}

fn inventory() -> Inventory {
    Inventory {
        running: vec![attempt(1, 2), attempt(u64::MAX, 1)],
        finished: vec![Finished { at: attempt(3, 4), ran_by: Incarnation(5) }],
    }
}

fn report() -> Payload {
    let details = pb::OutcomeReport {
        reward: "1.5".to_owned(),
        message: "out of memory".to_owned(),
        ..Default::default()
    };
    Payload::of(&details.to_bytes())
}

#[test]
fn a_master_reads_what_a_worker_writes() {
    let names = Names::new();
    let labels = Labels::of(&[names.label("big"), names.label("fast")]);
    let hello = Hello {
        worker: names.worker("gpu-1"),
        incarnation: Incarnation(77),
        capacity: Shape { slots: 3, gpus: 2, labels },
        highest: TERM,
        inventory: inventory(),
        draining: true,
    };
    let mut all = vec![
        ToMaster::Hello(hello),
        ToMaster::Heartbeat(inventory()),
        ToMaster::Heartbeat(Inventory::default()),
        ToMaster::Accepted(attempt(1, 1)),
    ];
    all.extend(
        [Decline::Busy, Decline::Cannot, Decline::OldAttempt]
            .map(|why| ToMaster::Declined(attempt(1, 1), why)),
    );
    let verdicts = [
        Verdict::Succeeded,
        Verdict::Failed,
        Verdict::FailedForGood,
        Verdict::TimedOut,
        Verdict::Stopped,
        Verdict::HandedBack,
    ];
    all.extend(verdicts.map(|verdict| {
        let ran_by = Incarnation(8);
        ToMaster::Finished(Outcome { at: attempt(7, 3), ran_by, verdict, report: report() })
    }));
    for said in all {
        let wire = write_to_master(&said, &me(), &names);
        assert_eq!(read_to_master(wire, &names), Ok(Some(said)));
    }
}

#[test]
fn a_worker_reads_what_a_master_writes() {
    let execute = Execute {
        at: attempt(7, 3),
        term: TERM,
        shape: Shape { slots: 2, gpus: 1, labels: Labels::NONE },
        timeout: Some(Millis(1_500)),
        resumes: true,
        payload: Payload::of(b"body"),
    };
    let ack = |verdict| ToWorker::ResultAck {
        at: attempt(7, 3),
        ran_by: Incarnation(1),
        epoch: TERM.epoch,
        verdict,
    };
    let stop = |reason| ToWorker::Stop { at: attempt(7, 3), epoch: TERM.epoch, reason };
    let all = [
        ToWorker::HelloAck(TERM),
        ToWorker::HelloRefused(HelloRefusal::NameInUse),
        ToWorker::HelloRefused(HelloRefusal::Replaced),
        ToWorker::HeartbeatAck(TERM.epoch),
        ToWorker::Execute(execute.clone()),
        ToWorker::Execute(Execute { timeout: None, payload: Payload::NONE, ..execute }),
        ack(AckVerdict::Committed),
        ack(AckVerdict::Superseded),
        stop(StopReason::Cancelled),
        stop(StopReason::Superseded),
        ToWorker::NotLeader(Epoch(0)),
        ToWorker::Drain,
        ToWorker::Ping,
    ];
    for said in all {
        let wire = write_to_worker(&said, Dialect::Native).expect("a native worker takes all");
        assert_eq!(read_to_worker(wire), Ok(Some(said)));
    }
}

#[test]
fn a_documented_worker_is_sent_orders_to_run_alone_and_only_the_fields_that_it_knows() {
    let body = pb::TaskBody {
        algorithm: "PPO".to_owned(),
        episodes: 5,
        learning_rate: 0.001,
        trace_id: "trace-1".to_owned(),
        command: vec!["true".to_owned()],
        ..Default::default()
    };
    let order = ToWorker::Execute(Execute {
        at: attempt(42, 3),
        term: TERM,
        shape: Shape::default(),
        timeout: Some(Millis(1)),
        resumes: false,
        payload: Payload::of(&body.to_bytes()),
    });
    let expected = pb::ExecuteTaskRequest {
        task_id: "42".to_owned(),
        algorithm: "PPO".to_owned(),
        episodes: 5,
        learning_rate: 0.001,
        trace_id: "trace-1".to_owned(),
        attempt: 3,
        ..Default::default()
    };
    assert_eq!(write_to_worker(&order, Dialect::Documented), Some(Message::Execute(expected)));
    for other in [ToWorker::Ping, ToWorker::HeartbeatAck(Epoch(1)), ToWorker::HelloAck(TERM)] {
        assert_eq!(write_to_worker(&other, Dialect::Documented), None);
    }
}

#[test]
fn a_documented_worker_is_read_as_one() {
    let names = Names::new();
    let log = DocumentedLog { reward: Some("94.73".to_owned()), lines: 54 };
    let read = |message: Message| read_documented(&message, &log, &names);
    let beat = |task: &str| pb::HeartbeatRequest {
        worker_id: "netty-1".to_owned(),
        current_task_id: task.to_owned(),
        ..Default::default()
    };
    let worker = names.worker("netty-1");
    let busy = Some(TaskId(42));
    assert_eq!(
        read(beat("").into()),
        Ok(Some(ToMaster::DocumentedHeartbeat { worker, busy: None }))
    );
    assert_eq!(read(beat("42").into()), Ok(Some(ToMaster::DocumentedHeartbeat { worker, busy })));
    let foreign = read(beat("task-42").into());
    assert!(
        matches!(foreign, Ok(Some(ToMaster::DocumentedHeartbeat { busy: Some(task), .. })) if task != TaskId(42)),
        "it is busy, with nothing of ours: {foreign:?}"
    );

    let answer =
        pb::ExecuteTaskResponse { task_id: "42".to_owned(), accepted: true, ..Default::default() };
    let accepted = ToMaster::DocumentedAnswer { task: TaskId(42), accepted: true };
    assert_eq!(read(answer.into()), Ok(Some(accepted.clone())));

    let report = |status: &str, attempt| pb::TaskStatusReport {
        task_id: "42".to_owned(),
        status: status.to_owned(),
        attempt,
        ..Default::default()
    };
    assert_eq!(read(report("RUNNING", 0).into()), Ok(Some(accepted)));
    let details =
        pb::OutcomeReport { reward: "94.73".to_owned(), log_lines: 54, ..Default::default() };
    let ended = |attempt| ToMaster::DocumentedReport {
        task: TaskId(42),
        attempt,
        verdict: Verdict::Succeeded,
        report: Payload::of(&details.to_bytes()),
    };
    assert_eq!(read(report("COMPLETED", 0).into()), Ok(Some(ended(None))));
    assert_eq!(read(report("COMPLETED", 3).into()), Ok(Some(ended(Attempt::new(3)))));
    assert!(read(report("COMPLETED", -1).into()).is_err());
    assert!(read(report("DONE", 3).into()).is_err());
}

#[test]
fn parts_that_cannot_be_are_refused_with_their_place_and_value() {
    let names = Names::new();
    let at = Some(pb::AttemptRef { task: 1, attempt: 1 });
    let hello = pb::Hello {
        worker: "w".to_owned(),
        incarnation: 1,
        slots: 1,
        inventory: Some(pb::Inventory::default()),
        ..Default::default()
    };
    let report = pb::TaskStatusReport { task: 1, attempt: 1, verdict: 1, ..Default::default() };
    let answer = pb::ExecuteTaskResponse { task: 1, attempt: 1, ..Default::default() };
    let bad_inventory =
        pb::Inventory { running: vec![pb::AttemptRef { task: 1, attempt: 0 }], finished: vec![] };
    let to_master: Vec<(Message, &str)> = vec![
        (pb::Hello { worker: String::new(), ..hello.clone() }.into(), "Hello.worker"),
        (pb::Hello { incarnation: 0, ..hello.clone() }.into(), "Hello.incarnation"),
        (pb::Hello { slots: 70_000, ..hello.clone() }.into(), "70000"),
        (pb::Hello { inventory: None, ..hello.clone() }.into(), "Hello.inventory"),
        (pb::Hello { inventory: Some(bad_inventory), ..hello }.into(), "inventory.running"),
        (pb::HeartbeatRequest { incarnation: 1, ..Default::default() }.into(), "inventory"),
        (pb::TaskStatusReport { attempt: 0, ..report.clone() }.into(), "attempt"),
        (pb::TaskStatusReport { attempt: -3, ..report.clone() }.into(), "-3"),
        (pb::TaskStatusReport { verdict: 0, ..report.clone() }.into(), "verdict"),
        (pb::TaskStatusReport { verdict: 99, ..report.clone() }.into(), "99"),
        (pb::TaskStatusReport { task: 0, ..report }.into(), "task"),
        (pb::ExecuteTaskResponse { attempt: 0, ..answer.clone() }.into(), "attempt"),
        (pb::ExecuteTaskResponse { decline: 99, ..answer }.into(), "decline"),
        (pb::Ping {}.into(), "Ping"),
    ];
    for (message, told) in to_master {
        let error = read_to_master(message, &names).expect_err(told).to_string();
        assert!(error.contains(told), "{error} does not say {told}");
    }
    let to_worker: Vec<(Message, &str)> = vec![
        (pb::HelloAck { epoch: 0, ..Default::default() }.into(), "epoch"),
        (pb::HelloAck { refused: 9, ..Default::default() }.into(), "refused"),
        (pb::Cancel { at, reason: 9, ..Default::default() }.into(), "reason"),
        (pb::Cancel { at: None, ..Default::default() }.into(), "Cancel.at"),
        (pb::ExecuteTaskRequest { task: 1, attempt: 0, ..Default::default() }.into(), "attempt"),
        (pb::ExecuteTaskRequest { task: 0, attempt: 1, ..Default::default() }.into(), "task"),
        (pb::Hello::default().into(), "Hello"),
    ];
    for (message, told) in to_worker {
        let error = read_to_worker(message).expect_err(told).to_string();
        assert!(error.contains(told), "{error} does not say {told}");
    }
}

#[test]
fn a_long_bad_value_is_told_shortened() {
    let names = Names::new();
    let report = pb::TaskStatusReport { status: "x".repeat(1 << 20), ..Default::default() };
    let error = read_documented(&report.into(), &DocumentedLog::default(), &names);
    let Err(ConvertError::Impossible { value, .. }) = error else {
        panic!("{error:?} is no refusal of a value");
    };
    assert_eq!(value.len(), 64);
}

#[test]
fn an_acknowledgement_of_an_unknown_kind_lets_no_outcome_go() {
    let at = Some(pb::AttemptRef { task: 1, attempt: 1 });
    let ack = pb::ResultAck { at, epoch: 1, ..Default::default() };
    assert_eq!(read_to_worker(ack.into()), Ok(None));
}
