//! Every type of message survives its frame, and keeps its number.

use bytes::{Bytes, BytesMut};
use tenure_proto::messages::*;
use tenure_proto::{Decoded, FrameCodec, Message, OpaqueError, Peer};

const AT: AttemptRef = AttemptRef { task: u64::MAX, attempt: u32::MAX };
const RAN_BY: u64 = 0xFEDC_BA98_7654_3210;

#[test]
fn every_type_survives_its_frame() {
    let samples = samples();
    let codes: Vec<u8> = samples.iter().map(Message::type_code).collect();
    assert_eq!(codes, Message::TYPE_CODES, "a sample of every type, in order");
    for message in samples {
        let mut bytes = BytesMut::new();
        let mut codec = FrameCodec::default();
        codec.write(&message, &mut bytes).expect("within the limit");
        let read = codec.read(&mut bytes).expect("right");
        assert_eq!(read, Some(Decoded::Message(message)));
        assert!(bytes.is_empty());
    }
}

#[test]
fn every_type_survives_its_frame_when_empty() {
    for &type_code in Message::TYPE_CODES {
        let message = Message::decode(type_code, Bytes::new()).expect("right").expect("known");
        assert_eq!(message.type_code(), type_code);
        assert_eq!(message.body_length(), 0);
    }
}

#[test]
fn types_keep_their_numbers_names_and_senders() {
    let table: Vec<(u8, &str, Peer)> = samples()
        .iter()
        .map(|sample| (sample.type_code(), sample.name(), sample.sender()))
        .collect();
    let expected = [
        (1, "HeartbeatRequest", Peer::Worker),
        (2, "ExecuteTaskRequest", Peer::Master),
        (3, "ExecuteTaskResponse", Peer::Worker),
        (4, "LogDataRequest", Peer::Worker),
        (5, "TaskStatusReport", Peer::Worker),
        (16, "Hello", Peer::Worker),
        (17, "HelloAck", Peer::Master),
        (18, "HeartbeatAck", Peer::Master),
        (19, "ResultAck", Peer::Master),
        (20, "Cancel", Peer::Master),
        (21, "LogAck", Peer::Master),
        (22, "NotLeader", Peer::Master),
        (23, "Drain", Peer::Master),
        (24, "Ping", Peer::Master),
    ];
    assert_eq!(table, expected);
    assert_eq!(Message::understands(), expected.map(|(code, ..)| u32::from(code)));
}

#[test]
fn only_the_documented_types_go_to_a_peer_without_hello() {
    let documented = samples().into_iter().filter(Message::is_documented);
    assert_eq!(documented.map(|sample| sample.type_code()).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
}

#[test]
fn a_type_that_is_not_known_is_no_message() {
    for type_code in (0..=u8::MAX).filter(|code| !Message::TYPE_CODES.contains(code)) {
        assert_eq!(Message::decode(type_code, Bytes::from_static(b"\xFF")), Ok(None));
        assert_eq!(Message::name_of(type_code), None);
        assert!(!Message::knows(type_code));
    }
}

#[test]
fn a_value_that_is_not_known_yet_reads_as_unspecified() {
    let newer = TaskStatusReport { verdict: 99, ..Default::default() };
    let bytes = prost_bytes(&Message::Report(newer));
    let Ok(Some(Message::Report(read))) = Message::decode(5, bytes) else { panic!("a report") };
    assert_eq!(read.verdict(), Verdict::Unspecified);
    assert_eq!(read.verdict, 99, "and is kept");
}

#[test]
fn body_and_report_survive_being_stored() {
    assert_eq!(TaskBody::from_bytes(&body().to_bytes()), Ok(body()));
    assert_eq!(OutcomeReport::from_bytes(&report().to_bytes()), Ok(report()));
}

#[test]
fn an_exit_code_of_zero_is_not_the_same_as_none() {
    let exited = OutcomeReport { exit_code: Some(0), ..Default::default() };
    let read = OutcomeReport::from_bytes(&exited.to_bytes()).expect("right");
    assert_eq!((read.exit_code, read.signal), (Some(0), None));
}

#[test]
fn bytes_that_are_no_body_or_report_are_refused_by_name() {
    let body: OpaqueError = TaskBody::from_bytes(&[0xFF]).expect_err("no body");
    assert_eq!((body.name, body.length), ("TaskBody", 1));
    let report = OutcomeReport::from_bytes(&[0x0A]).expect_err("no report");
    assert!(report.to_string().contains("1 bytes are no OutcomeReport"), "{report}");
}

fn prost_bytes(message: &Message) -> Bytes {
    let mut out = BytesMut::new();
    message.encode_body(&mut out);
    out.freeze()
}

fn inventory() -> Inventory {
    Inventory {
        running: vec![AT, AttemptRef { task: 1, attempt: 1 }],
        finished: vec![Finished { at: Some(AT), ran_by: RAN_BY }],
    }
}

fn body() -> TaskBody {
    TaskBody {
        name: "nightly train".into(),
        command: vec!["python3".into(), "train.py".into(), String::new()],
        env: [("LANG", "C"), ("EMPTY", "")].map(|(k, v)| (k.into(), v.into())).into(),
        cwd: "/srv/train".into(),
        resumable: true,
        trace_id: "trace-1".into(),
        algorithm: "PPO".into(),
        episodes: -1,
        learning_rate: 0.001,
        handler: "train".into(),
        stop_grace_ms: 10_000,
    }
}

fn report() -> OutcomeReport {
    OutcomeReport {
        exit_code: Some(-1),
        signal: Some(9),
        message: "killed".into(),
        reward: "94.730".into(),
        result_json: Bytes::from_static(b"{\"a\":1}"),
        log_lines: 54,
        started_at_ms: 1_700_000_000_000,
        ended_at_ms: u64::MAX,
        cause: "signal".into(),
    }
}

/// One message of each type with a value in every field.
fn samples() -> Vec<Message> {
    let mut samples = documented_samples();
    samples.extend(session_samples());
    samples.extend(order_samples());
    samples
}

fn documented_samples() -> Vec<Message> {
    vec![
        Message::from(HeartbeatRequest {
            worker_id: "w1".into(),
            hostname: "host".into(),
            available_gpus: 2,
            cpu_usage: 0.25,
            memory_usage: 0.5,
            current_task_id: "7".into(),
            inventory: Some(inventory()),
            incarnation: RAN_BY,
            progress: vec![Progress { at: Some(AT), text: "1/2".into(), at_ms: 1_700_000_000_000 }],
        }),
        Message::from(ExecuteTaskRequest {
            task_id: "7".into(),
            algorithm: "PPO".into(),
            episodes: 5,
            learning_rate: 0.001,
            trace_id: "trace-1".into(),
            attempt: 3,
            task: 7,
            epoch: 4,
            leader: RAN_BY,
            body: body().to_bytes(),
            timeout_ms: 60_000,
            resumes: true,
            slots: 1,
            gpus: 2,
        }),
        Message::from(ExecuteTaskResponse {
            task_id: "7".into(),
            accepted: true,
            message: "no".into(),
            task: 7,
            attempt: 3,
            decline: Decline::OldAttempt.into(),
        }),
        Message::from(LogDataRequest {
            task_id: "7".into(),
            log_line: "line".into(),
            timestamp: -1,
            is_error: true,
            task: 7,
            attempt: 3,
            lines: vec![LogLine {
                offset: u64::MAX,
                is_error: true,
                text: Bytes::from_static(b"\xFF\0\n"),
                at_ms: 1_700_000_000_000,
                continues: true,
            }],
        }),
        Message::from(TaskStatusReport {
            task_id: "7".into(),
            status: "COMPLETED".into(),
            final_reward: 94.73,
            error_message: "none".into(),
            attempt: 3,
            task: 7,
            ran_by: RAN_BY,
            verdict: Verdict::HandedBack.into(),
            report: report().to_bytes(),
        }),
    ]
}

fn session_samples() -> Vec<Message> {
    vec![
        Message::from(Hello {
            worker: "w1".into(),
            incarnation: RAN_BY,
            hostname: "host".into(),
            pid: 4711,
            slots: 4,
            gpus: 2,
            labels: vec!["gpu".into(), "eu".into()],
            highest_epoch: 4,
            inventory: Some(inventory()),
            understands: Message::understands(),
            version: "0.1.0".into(),
            draining: true,
            highest_leader: RAN_BY,
        }),
        Message::from(HelloAck {
            epoch: 4,
            leader: RAN_BY,
            refused: Refusal::Replaced.into(),
            detail: "w1 runs on host, process 4711".into(),
            understands: Message::understands(),
            heartbeat_ms: 1000,
            log_positions: vec![LogPosition { at: Some(AT), next_offset: 54 }],
        }),
        Message::from(HeartbeatAck { epoch: 4 }),
    ]
}

fn order_samples() -> Vec<Message> {
    vec![
        Message::from(ResultAck {
            at: Some(AT),
            ran_by: RAN_BY,
            epoch: 4,
            verdict: AckVerdict::Superseded.into(),
        }),
        Message::from(Cancel {
            at: Some(AT),
            epoch: 4,
            reason: StopReason::Superseded.into(),
            grace_ms: 10_000,
        }),
        Message::from(LogAck { at: Some(AT), next_offset: 54, closed: true }),
        Message::from(NotLeader { epoch: 4, leader: "10.0.0.1:9000".into() }),
        Message::from(Drain {}),
        Message::from(Ping {}),
    ]
}
