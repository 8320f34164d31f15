//! What a documented worker and its master really said decodes to what it means, however it is cut.

mod feed;

use bytes::BytesMut;
use feed::{Random, in_random_cuts, read_all};
use tenure_proto::messages::{
    ExecuteTaskRequest, ExecuteTaskResponse, HeartbeatRequest, LogDataRequest, TaskStatusReport,
};
use tenure_proto::{Decoded, FrameCodec, Limits, Message};

const TO_WORKER: &[u8] = include_bytes!("../../tests/data/wire/master_to_worker.bin");
const TO_MASTER: &[u8] = include_bytes!("../../tests/data/wire/worker_to_master.bin");

fn order() -> Message {
    Message::Execute(ExecuteTaskRequest {
        task_id: "task-42".into(),
        algorithm: "PPO".into(),
        episodes: 5,
        learning_rate: 0.001,
        trace_id: "trace-1".into(),
        attempt: 3,
        ..Default::default()
    })
}

#[test]
fn the_masters_bytes_are_one_order_to_run_task_42() {
    assert_eq!(TO_WORKER.len(), 46);
    assert_eq!(messages(&[TO_WORKER]), [order()]);
}

#[test]
fn an_order_with_documented_fields_only_is_written_as_the_documented_master_writes_it() {
    let mut out = BytesMut::new();
    FrameCodec::default().write(&order(), &mut out).expect("small");
    assert_eq!(out[..], *TO_WORKER);
}

#[test]
fn the_workers_bytes_are_one_run_of_task_42() {
    assert_eq!(TO_MASTER.len(), 3155);
    check_run(&messages(&[TO_MASTER]));
}

#[test]
fn the_workers_bytes_read_the_same_byte_by_byte() {
    let bytes: Vec<&[u8]> = TO_MASTER.chunks(1).collect();
    check_run(&messages(&bytes));
}

#[test]
fn the_workers_bytes_read_the_same_in_random_cuts() {
    let whole = messages(&[TO_MASTER]);
    for seed in 0..200 {
        assert_eq!(messages(&in_random_cuts(TO_MASTER, seed)), whole, "seed {seed}");
    }
}

#[test]
fn the_workers_messages_are_written_as_it_wrote_them() {
    let mut out = BytesMut::new();
    for message in messages(&[TO_MASTER]) {
        FrameCodec::default().write(&message, &mut out).expect("small");
    }
    assert_eq!(out[..], *TO_MASTER);
}

#[test]
fn damaged_bytes_end_in_the_same_error_however_they_are_cut() {
    let mut refused = 0;
    for seed in 0..2_000 {
        let mut random = Random(seed);
        let mut damaged = TO_MASTER.to_vec();
        for _ in 0..=random.below(3) {
            let at = random.below(damaged.len());
            damaged[at] = random.below(256) as u8;
        }
        let whole = read_all(Limits::default(), &[&damaged]);
        let cut = read_all(Limits::default(), &in_random_cuts(&damaged, seed));
        // Compared as text: a damaged number may be none, and that does not equal itself.
        assert_eq!(format!("{whole:?}"), format!("{cut:?}"), "seed {seed}");
        refused += usize::from(whole.is_err());
    }
    assert!(refused > 100, "only {refused} of 2000 were refused: is anything checked?");
}

/// Messages of a stream that is all frames of known types.
fn messages(parts: &[&[u8]]) -> Vec<Message> {
    let decoded = read_all(Limits::default(), parts).expect("every frame is right");
    decoded
        .into_iter()
        .map(|decoded| match decoded {
            Decoded::Message(message) => message,
            Decoded::Unknown { type_code, .. } => panic!("type {type_code} is documented"),
        })
        .collect()
}

fn check_run(messages: &[Message]) {
    assert_eq!(messages.len(), 62);
    let (mut beats, mut answers, mut logs, mut reports) = (vec![], vec![], vec![], vec![]);
    for message in messages {
        match message {
            Message::Heartbeat(beat) => beats.push(beat),
            Message::ExecuteAnswer(answer) => answers.push(answer),
            Message::Log(log) => logs.push(log),
            Message::Report(report) => reports.push(report),
            other => panic!("a documented worker never sends {}", other.name()),
        }
    }
    check_beats(&beats);
    check_answer(&answers);
    check_logs(&logs);
    check_report(&reports);
    assert!(matches!(messages[0], Message::Heartbeat(_)), "it begins with a heartbeat");
}

fn check_beats(beats: &[&HeartbeatRequest]) {
    assert_eq!(beats.len(), 6);
    assert!(beats.iter().all(|beat| beat.worker_id == "netty-worker-1"));
    assert!(beats.iter().all(|beat| beat.inventory.is_none() && beat.incarnation == 0));
    let tasks: Vec<&str> = beats.iter().map(|beat| beat.current_task_id.as_str()).collect();
    assert_eq!(tasks, ["", "task-42", "task-42", "task-42", "task-42", "task-42"]);
    assert_eq!((beats[0].available_gpus, beats[0].cpu_usage, beats[0].memory_usage), (1, 0.5, 0.0));
}

fn check_answer(answers: &[&ExecuteTaskResponse]) {
    let expected = ExecuteTaskResponse {
        task_id: "task-42".into(),
        accepted: true,
        message: "Task received by worker netty-worker-1".into(),
        ..Default::default()
    };
    assert_eq!(answers, [&expected]);
}

fn check_logs(logs: &[&LogDataRequest]) {
    assert_eq!(logs.len(), 54);
    assert!(logs.iter().all(|log| log.task_id == "task-42" && !log.is_error));
    assert!(logs.iter().all(|log| log.lines.is_empty()));
    assert!(logs.is_sorted_by_key(|log| log.timestamp));
    // 2020 to 2100: milliseconds, not seconds or microseconds.
    assert!(logs.iter().all(|log| (1_577_836_800_000..4_102_444_800_000).contains(&log.timestamp)));
    let rewards = logs.iter().filter(|log| log.log_line.contains("FINAL_REWARD:94.73"));
    assert_eq!(rewards.count(), 1);
}

fn check_report(reports: &[&TaskStatusReport]) {
    let expected = TaskStatusReport {
        task_id: "task-42".into(),
        status: "COMPLETED".into(),
        attempt: 3,
        ..Default::default()
    };
    assert_eq!(reports, [&expected]);
}
