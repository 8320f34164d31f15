//! Output of commands: nothing lost, nothing changed, nothing held up.

use std::time::{Duration, Instant};

use crate::support::{executor, executor_with, launch, sh, unique_id};
use tenure_adapters::process::{Ending, Exit, ProcessEvent, Settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_million_lines_arrive_unchanged() {
    let (executor, mut events) = executor().await;
    executor.launch(launch(1, &unique_id(), "seq", &["1", "2000000"]));
    let story = events.story().await;
    let mut expected = Vec::with_capacity(14_888_896);
    for number in 1..=2_000_000 {
        use std::io::Write;
        writeln!(expected, "{number}").expect("memory");
    }
    assert_eq!(story.stdout.len(), 14_888_896);
    assert!(story.stdout == expected, "same length, other bytes");
    assert_eq!(story.exit, Some(Exit::Code(0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_over_the_cap_comes_in_parts_that_make_the_same_bytes() {
    let (executor, mut events) = executor().await;
    executor.launch(sh(1, &unique_id(), "head -c 5000000 /dev/zero | tr '\\0' x"));
    let story = events.story().await;
    assert_eq!(story.stdout, vec![b'x'; 5_000_000]);
    assert_eq!(story.longest, 64 << 10);
    assert_eq!(story.endings.last(), Some(&Ending::End));
    assert!(story.endings.iter().rev().skip(1).all(|ending| *ending == Ending::Continues));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_not_utf8_and_carriage_returns_stay_as_they_are() {
    let (executor, mut events) = executor().await;
    executor.launch(sh(1, &unique_id(), r"printf 'a\377\376\r\n\000b'; printf 'e\n' >&2"));
    let story = events.story().await;
    assert_eq!(story.stdout, b"a\xff\xfe\r\n\0b");
    assert_eq!(story.stderr, b"e\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_may_close_its_output_early_and_go_on() {
    let (executor, mut events) = executor().await;
    executor.launch(sh(1, &unique_id(), "echo out; exec >&-; echo err >&2; exit 3"));
    let story = events.story().await;
    assert_eq!((story.stdout.as_slice(), story.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
    assert_eq!(story.exit, Some(Exit::Code(3)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standard_input_is_empty() {
    let (executor, mut events) = executor().await;
    executor.launch(sh(1, &unique_id(), "cat; readlink /proc/self/fd/0"));
    assert_eq!(events.story().await.stdout, b"/dev/null\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_background_child_that_holds_the_pipe_does_not_hold_up_the_end() {
    let (executor, mut events) = executor().await;
    let (id, start) = (unique_id(), Instant::now());
    executor.launch(sh(1, &id, "sleep 100000 & setsid sleep 100000 & echo done"));
    let story = events.story().await;
    assert_eq!(story.stdout, b"done\n");
    assert_eq!((story.exit, story.killed), (Some(Exit::Code(0)), 2));
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    crate::support::assert_none_left(&id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_that_holds_the_pipe_delays_the_end_by_no_more_than_the_drain_limit() {
    let drain_limit = Duration::from_millis(400);
    let (executor, mut events) =
        executor_with(Settings { drain_limit, ..Settings::default() }).await;
    executor.launch(sh(1, &unique_id(), "printf 'up\\ntail'; sleep 1000; :"));
    let pid = events.started().await;
    let held = std::fs::OpenOptions::new().write(true).open(format!("/proc/{pid}/fd/1"));
    let held = held.expect("a pipe can be opened by its owner");
    assert_eq!(events.line().await, "up");
    let start = Instant::now();
    executor.stop(1, Duration::ZERO);
    let story = events.story().await;
    let took = start.elapsed();
    assert_eq!((story.stdout.as_slice(), story.exit), (&b"tail"[..], Some(Exit::Signal(9))));
    assert!(took >= drain_limit && took < Duration::from_secs(5), "{took:?}");
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_that_stands_still_holds_up_the_command_and_not_its_end() {
    let settings = Settings { output_budget: 256 << 10, ..Settings::default() };
    let (executor, mut events) = executor_with(settings).await;
    // Writes without end; what it could write shows how much was buffered for it.
    executor.launch(sh(1, &unique_id(), "exec yes 0123456789012345678901234567890123456789"));
    let pid = events.started().await;
    wait_until_blocked(pid);
    executor.launch(sh(2, &unique_id(), "exit 7"));
    executor.stop(1, Duration::ZERO);
    // Held, not dropped: that would make room for more.
    let (mut held, mut ends) = (Vec::new(), Vec::new());
    while ends.len() < 2 {
        match events.next().await {
            ProcessEvent::Line { line, .. } => held.push(line),
            ProcessEvent::Ended { key, exit, .. } => ends.push((key, exit)),
            _ => {}
        }
    }
    ends.sort_by_key(|(key, _)| *key);
    assert_eq!(ends, [(1, Exit::Signal(9)), (2, Exit::Code(7))]);
    let bytes: usize = held.iter().map(|line| line.bytes.len() + 1).sum();
    // The budget, a chunk that was read, and a full pipe.
    assert!(bytes > 32 << 10 && bytes < 512 << 10, "{bytes} bytes were let through");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_lines_come_although_the_consumer_holds_all_before_them() {
    let drain_limit = crate::support::PATIENCE * 2;
    let settings = Settings { output_budget: 1000, drain_limit, ..Settings::default() };
    let (executor, mut events) = executor_with(settings).await;
    // Under 64 KiB, so that the pipe takes it all and the command can end.
    executor.launch(launch(1, &unique_id(), "seq", &["1", "10000"]));
    let mut held = Vec::new();
    loop {
        match events.next().await {
            ProcessEvent::Line { line, .. } => held.push(line),
            ProcessEvent::Ended { exit, .. } => break assert_eq!(exit, Exit::Code(0)),
            _ => {}
        }
    }
    assert_eq!(held.len(), 10_000);
    assert_eq!(held.last().expect("lines").bytes, b"10000");
}

/// Until a process sleeps in a write to its pipe, seen twice in a row.
fn wait_until_blocked(pid: i32) {
    let start = Instant::now();
    let mut last = None;
    loop {
        let io = std::fs::read_to_string(format!("/proc/{pid}/io")).expect("it lives");
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
        let sleeps = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'));
        if sleeps && last.as_ref() == Some(&io) {
            return;
        }
        last = sleeps.then_some(io);
        assert!(start.elapsed() < crate::support::PATIENCE, "it never blocks: {stat}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
