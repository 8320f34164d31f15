//! A documented worker, with the bytes that a real one sent.

use bytes::BytesMut;
use tenure_core::store::Status;
use tenure_proto::{Decoded, FrameCodec, Message, messages as pb};

use crate::support::{Bench, Worker};

const CAPTURED: &[u8] = include_bytes!("../../../tests/data/wire/worker_to_master.bin");

/// What the worker said, about the task of this order.
fn captured(order: &pb::ExecuteTaskRequest) -> Vec<Message> {
    let mut bytes = BytesMut::from(CAPTURED);
    let mut codec = FrameCodec::default();
    let mut said = Vec::new();
    while let Some(Decoded::Message(mut message)) = codec.read(&mut bytes).expect("frames") {
        match &mut message {
            Message::Heartbeat(beat) if !beat.current_task_id.is_empty() => {
                beat.current_task_id.clone_from(&order.task_id);
            }
            Message::ExecuteAnswer(answer) => answer.task_id.clone_from(&order.task_id),
            Message::Log(line) => line.task_id.clone_from(&order.task_id),
            Message::Report(report) => {
                report.task_id.clone_from(&order.task_id);
                report.attempt = order.attempt;
            }
            _ => {}
        }
        said.push(message);
    }
    said
}

fn idle() -> pb::HeartbeatRequest {
    pb::HeartbeatRequest { worker_id: "netty-worker-1".to_owned(), ..Default::default() }
}

#[tokio::test]
async fn a_documented_worker_gets_a_task_and_its_logs_and_reward_arrive() {
    let bench = Bench::start().await;
    let task = bench.submit("k").await;
    let mut worker = Worker::connect(bench.master.address()).await;
    worker.say(idle()).await;
    let Message::Execute(order) = worker.hear().await else { panic!("no order") };
    let expected = pb::ExecuteTaskRequest {
        task_id: task.0.to_string(),
        algorithm: "PPO".to_owned(),
        episodes: 5,
        learning_rate: 0.001,
        trace_id: "trace-1".to_owned(),
        attempt: 1,
        ..Default::default()
    };
    assert_eq!(order, expected);

    let said = captured(&order);
    let lines: Vec<String> = said
        .iter()
        .filter_map(|message| match message {
            Message::Log(line) => Some(line.log_line.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(lines.len(), 54);
    let first_busy = said.iter().position(|message| matches!(message, Message::ExecuteAnswer(_)));
    for message in said.into_iter().skip(first_busy.expect("it answered")) {
        worker.say(message).await;
    }
    bench.until(task, Status::Completed).await;

    let attempts = bench.master.store().attempts(task).await.expect("readable");
    let report = pb::OutcomeReport::from_bytes(attempts[0].report.bytes()).expect("a report");
    assert_eq!((report.reward.as_str(), report.log_lines), ("94.73", 54));

    let at = tenure_core::ids::AttemptRef::new(task, attempts[0].attempt);
    let mut grown = bench.master.logs().follow(at);
    crate::support::soon("its lines", grown.wait_for(|next| *next == 54)).await.expect("stored");
    let stored = bench.master.logs().read(at, 0, 1_000).await.expect("readable");
    let stored: Vec<String> =
        stored.into_iter().map(|line| String::from_utf8_lossy(&line.text).into_owned()).collect();
    assert_eq!(stored, lines);
}

#[tokio::test]
async fn a_documented_worker_is_shown_as_one_and_told_nothing_that_it_does_not_know() {
    let bench = Bench::start().await;
    let mut worker = Worker::connect(bench.master.address()).await;
    for _ in 0..3 {
        worker.say(idle()).await;
    }
    bench.shows(|status| status.connected == 1).await;
    let shown = bench.master.workers().await;
    assert!(shown[0].documented && shown[0].incarnation.0 == 0);
    assert_eq!(&*shown[0].name, "netty-worker-1");
    bench.submit("k").await;
    let first = worker.hear().await;
    assert!(matches!(first, Message::Execute(_)), "{first:?}");
}

#[tokio::test]
async fn a_report_without_attempt_belongs_to_the_attempt_that_was_sent() {
    let bench = Bench::start().await;
    let task = bench.submit("k").await;
    let mut worker = Worker::connect(bench.master.address()).await;
    worker.say(idle()).await;
    let order = worker.ordered().await;
    let answer = pb::ExecuteTaskResponse {
        task_id: order.task_id.clone(),
        accepted: true,
        ..Default::default()
    };
    worker.say(answer).await;
    let report = pb::TaskStatusReport {
        task_id: order.task_id,
        status: "COMPLETED".to_owned(),
        final_reward: 1.5,
        ..Default::default()
    };
    worker.say(report).await;
    bench.until(task, Status::Completed).await;
}
