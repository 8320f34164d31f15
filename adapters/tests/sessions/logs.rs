//! Log lines with offsets.

use tenure_core::ids::{Attempt, AttemptRef, TaskId};
use tenure_proto::{Message, messages as pb};

use crate::support::{Bench, Worker, attempt_of};

fn lines(at: pb::AttemptRef, offsets: impl IntoIterator<Item = u64>) -> pb::LogDataRequest {
    let lines = offsets.into_iter().map(|offset| pb::LogLine {
        offset,
        text: format!("line {offset}").into_bytes().into(),
        ..Default::default()
    });
    pb::LogDataRequest {
        task: at.task,
        attempt: at.attempt,
        lines: lines.collect(),
        ..Default::default()
    }
}

async fn stored_up_to(worker: &mut Worker) -> u64 {
    worker
        .pick(|message| match message {
            Message::LogAck(ack) => Some(ack.next_offset),
            _ => None,
        })
        .await
}

async fn running(bench: &Bench) -> (Worker, pb::AttemptRef) {
    bench.submit("k").await;
    let mut worker = bench.worker("w", 1).await;
    let order = worker.ordered().await;
    worker.accept(&order).await;
    (worker, attempt_of(&order))
}

#[tokio::test]
async fn repeated_and_gapped_lines_are_stored_once_and_in_order() {
    let bench = Bench::start().await;
    let (mut worker, at) = running(&bench).await;
    let sent: [(Vec<u64>, u64); 6] = [
        (vec![0, 1, 2], 3),
        // Said again, with more.
        (vec![1, 2, 3, 4], 5),
        // Something is missing: nothing is taken, and the answer says from where.
        (vec![7, 8], 5),
        (vec![5, 6, 7, 8], 9),
        // A gap within one message.
        (vec![9, 11], 10),
        (vec![10, 11], 12),
    ];
    for (offsets, expected) in sent {
        worker.say(lines(at, offsets)).await;
        assert_eq!(stored_up_to(&mut worker).await, expected);
    }
    let attempt = AttemptRef::new(TaskId(at.task), Attempt::FIRST);
    let stored = bench.master.logs().read(attempt, 0, 100).await.expect("readable");
    let texts: Vec<String> =
        stored.iter().map(|line| String::from_utf8_lossy(&line.text).into_owned()).collect();
    let expected: Vec<String> = (0..12).map(|offset| format!("line {offset}")).collect();
    assert_eq!(texts, expected);
}

#[tokio::test]
async fn a_hello_is_told_where_the_logs_of_its_attempts_go_on() {
    let bench = Bench::start().await;
    let (mut worker, at) = running(&bench).await;
    worker.say(lines(at, 0..7)).await;
    assert_eq!(stored_up_to(&mut worker).await, 7);
    let mut again = Worker::connect(bench.master.address()).await;
    let inventory = pb::Inventory { running: vec![at], finished: Vec::new() };
    let ack = again.hello("w", 1, inventory).await;
    assert_eq!(ack.log_positions, [pb::LogPosition { at: Some(at), next_offset: 7 }]);
}

#[tokio::test]
async fn log_lines_of_no_attempt_end_their_connection() {
    let bench = Bench::start().await;
    let (mut worker, _) = running(&bench).await;
    worker.say(lines(pb::AttemptRef { task: 1, attempt: 0 }, 0..1)).await;
    worker.ended().await;
    assert_eq!(bench.master.complaints().get("bad_value"), Some(&1));
}
