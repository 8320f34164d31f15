//! Bytes that are not ours, and connections that say nothing.

use std::time::{Duration, Instant};

use bytes::BytesMut;
use tenure_proto::{FrameCodec, Message, messages as pb};

use crate::lines;
use crate::support::{Bench, Worker, heartbeat, hello};

fn frame(message: impl Into<Message>) -> Vec<u8> {
    let mut out = BytesMut::new();
    FrameCodec::default().write(&message.into(), &mut out).expect("small");
    out.to_vec()
}

fn header(length: u32, type_code: u8) -> Vec<u8> {
    let mut bytes = vec![0xCA, 0xFE, 0xBA, 0xBE, 1];
    bytes.extend(length.to_be_bytes());
    bytes.push(type_code);
    bytes
}

/// Each kind of bad bytes, and the word under which it is counted.
fn bad_bytes() -> Vec<(Vec<u8>, &'static str)> {
    let limit = 16 << 20;
    let attempt_zero = pb::AttemptRef { task: 1, attempt: 0 };
    let broken_inventory = pb::Inventory { running: vec![attempt_zero], finished: Vec::new() };
    vec![
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), "bad_magic"),
        (vec![0x16, 0x03, 0x01, 0x02, 0x00], "bad_magic"),
        (vec![0xFF; 10], "bad_magic"),
        (vec![0xCA, 0xFE, 0xBA, 0xBE, 2], "bad_version"),
        (header(9, 1), "too_short"),
        (header(0, 1), "too_short"),
        (header(limit + 1, 1), "too_long"),
        (header(u32::MAX, 1), "too_long"),
        (header(u32::MAX - 5, 99), "too_long"),
        (header(10, 99), "unknown_type"),
        ([header(12, 1), vec![0xFF, 0xFF]].concat(), "bad_body"),
        (frame(pb::Ping {}), "wrong_side"),
        (frame(hello("", 1, pb::Inventory::default())), "bad_value"),
        (frame(hello("w", 1, broken_inventory)), "bad_value"),
        (frame(hello("w", 0, pb::Inventory::default())), "bad_value"),
        (
            [
                frame(pb::HeartbeatRequest { worker_id: "old".to_owned(), ..Default::default() }),
                frame(hello("w", 1, pb::Inventory::default())),
            ]
            .concat(),
            "late_hello",
        ),
        (
            [
                frame(hello("w2", 1, pb::Inventory::default())),
                frame(pb::HeartbeatRequest { incarnation: 1, ..Default::default() }),
            ]
            .concat(),
            "bad_value",
        ),
        (
            [
                frame(hello("w3", 1, pb::Inventory::default())),
                frame(pb::TaskStatusReport {
                    task: 1,
                    attempt: 1,
                    verdict: 77,
                    ..Default::default()
                }),
            ]
            .concat(),
            "bad_value",
        ),
    ]
}

#[tokio::test]
async fn bad_bytes_end_their_own_connection_and_a_good_worker_goes_on() {
    let bench = Bench::start().await;
    let mut good = bench.worker("good", 1).await;
    let mut expected = std::collections::BTreeMap::new();
    for (bytes, kind) in bad_bytes() {
        let began = Instant::now();
        let mut bad = Worker::connect(bench.master.address()).await;
        bad.say_bytes(&bytes).await;
        bad.ended().await;
        assert!(began.elapsed() < Duration::from_secs(1), "{kind}: {:?}", began.elapsed());
        *expected.entry(kind).or_insert(0) += 1;
        assert_eq!(bench.master.complaints(), expected, "after {kind}");
        good.beat(1, Vec::new()).await;
    }
    bench.shows(|status| status.connections == 1).await;
}

#[tokio::test]
async fn many_bad_connections_are_counted_and_told_in_few_lines() {
    let bench = Bench::start().await;
    let mut good = bench.worker("good", 1).await;
    let began = Instant::now();
    for _ in 0..300 {
        let mut bad = Worker::connect(bench.master.address()).await;
        bad.say_bytes(b"GET / HTTP/1.1\r\n\r\n").await;
        bad.ended().await;
    }
    good.beat(1, Vec::new()).await;
    assert_eq!(bench.master.complaints().get("bad_magic"), Some(&300));
    // Ten lines for each second begun, and one more that says how many were kept back.
    let seconds = usize::try_from(began.elapsed().as_secs()).expect("a short test") + 1;
    assert!((10..=11 * seconds).contains(&lines::told()), "{} lines", lines::told());
}

#[tokio::test]
async fn a_frame_that_is_cut_anywhere_and_closed_makes_no_noise() {
    let bench = Bench::start().await;
    let whole = frame(hello("w", 1, pb::Inventory::default()));
    for cut in 0..whole.len() {
        let mut worker = Worker::connect(bench.master.address()).await;
        worker.say_bytes(&whole[..cut]).await;
    }
    let mut good = bench.worker("good", 1).await;
    bench.shows(|status| status.connections == 1).await;
    good.beat(1, Vec::new()).await;
    assert_eq!(lines::told(), 0);
    let truncated = whole.len() as u64 - 1;
    assert_eq!(
        bench.master.complaints().into_iter().collect::<Vec<_>>(),
        [("truncated", truncated)]
    );
}

#[tokio::test]
async fn a_frame_of_exactly_the_limit_is_taken_and_one_byte_more_is_not() {
    const LIMIT: usize = 64 << 10;
    let bench = Bench::start_with(|options| options.frame_limit = LIMIT).await;
    let padded = |length: usize| {
        let mut hello = hello("w", 1, pb::Inventory::default());
        hello.version = "x".repeat(LIMIT / 2);
        let short = length - frame(hello.clone()).len();
        hello.version.push_str(&"x".repeat(short));
        hello
    };
    let mut worker = Worker::connect(bench.master.address()).await;
    let exact = frame(padded(LIMIT));
    assert_eq!(exact.len(), LIMIT);
    worker.say_bytes(&exact).await;
    assert!(matches!(worker.hear().await, Message::HelloAck(_)));
    let mut worker = Worker::connect(bench.master.address()).await;
    worker.say(padded(LIMIT + 1)).await;
    assert!(worker.ended().await.is_empty());
}

#[tokio::test]
async fn a_connection_that_says_nothing_is_closed_after_the_hello_timeout() {
    let bench =
        Bench::start_with(|options| options.hello_timeout = Duration::from_millis(100)).await;
    let mut good = bench.worker("good", 1).await;
    let mut silent = Worker::connect(bench.master.address()).await;
    let mut slow = Worker::connect(bench.master.address()).await;
    slow.say_bytes(&header(1 << 20, 16)).await;
    let mut early = Worker::connect(bench.master.address()).await;
    early.say(heartbeat(1, Vec::new())).await;
    for worker in [&mut silent, &mut slow, &mut early] {
        assert!(worker.ended().await.is_empty());
    }
    good.beat(1, Vec::new()).await;
}
