//! The master's side.

use tempfile::TempDir;
use tenure_adapters::logs::{Line, LogOptions, LogStore};
use tenure_core::ids::{Attempt, TaskId};

use crate::{assert_are, at, line, lines, text};

fn open(dir: &TempDir, task_limit: u64) -> LogStore {
    LogStore::open(&dir.path().join("logs"), LogOptions { task_limit })
        .expect("the directory is new")
}

fn place() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

#[tokio::test]
async fn lines_that_are_sent_again_are_stored_once() {
    let dir = place();
    let logs = open(&dir, 1 << 20);
    let log = at(7, 1);
    assert_eq!(logs.next_offset(log).await.expect("readable"), 0);
    assert_eq!(logs.append(log, 0, lines(0..5)).await.expect("written"), 5);
    assert_eq!(logs.append(log, 3, lines(3..8)).await.expect("written"), 8);
    assert_eq!(logs.append(log, 0, lines(0..2)).await.expect("written"), 8);
    assert_are(&logs.read(log, 0, 100).await.expect("readable"), 0..8);
    assert_are(&logs.read(log, 2, 3).await.expect("readable"), 2..5);
    assert_are(&logs.read(log, 8, 3).await.expect("readable"), 8..8);
}

#[tokio::test]
async fn a_gap_is_refused_with_where_to_go_on() {
    let dir = place();
    let logs = open(&dir, 1 << 20);
    let log = at(7, 1);
    logs.append(log, 0, lines(0..5)).await.expect("written");
    assert_eq!(logs.append(log, 6, lines(6..9)).await.expect("answered"), 5);
    assert_are(&logs.read(log, 0, 100).await.expect("readable"), 0..5);
    assert_eq!(logs.append(log, 5, lines(5..9)).await.expect("written"), 9);
}

#[tokio::test]
async fn a_later_process_goes_on_where_the_first_ended() {
    let dir = place();
    let logs = open(&dir, 1 << 20);
    logs.append(at(7, 1), 0, lines(0..5)).await.expect("written");
    logs.append(at(7, 2), 0, lines(0..3)).await.expect("written");
    logs.close().await;
    let logs = open(&dir, 1 << 20);
    assert_eq!(logs.next_offset(at(7, 1)).await.expect("readable"), 5);
    assert_eq!(logs.append(at(7, 1), 4, lines(4..6)).await.expect("written"), 6);
    assert_are(&logs.read(at(7, 1), 0, 100).await.expect("readable"), 0..6);
    assert_are(&logs.read(at(7, 2), 0, 100).await.expect("readable"), 0..3);
    let attempts = logs.attempts(TaskId(7)).await.expect("readable");
    assert_eq!(attempts.into_iter().map(Attempt::number).collect::<Vec<_>>(), [1, 2]);
}

#[tokio::test]
async fn a_follower_wakes_for_every_addition() {
    let dir = place();
    let logs = open(&dir, 1 << 20);
    let mut follow = logs.follow(at(7, 1));
    follow.mark_unchanged();
    for end in 1..4 {
        logs.append(at(7, 1), end - 1, lines(end - 1..end)).await.expect("written");
        follow.changed().await.expect("the store lives");
        assert_eq!(*follow.borrow_and_update(), end);
    }
}

#[tokio::test]
async fn what_is_over_a_tasks_limit_is_counted_and_said() {
    let dir = place();
    let logs = open(&dir, 2_000);
    let (first, second) = (at(7, 1), at(7, 2));
    // The limit is the task's, not the attempt's.
    logs.append(first, 0, lines(0..20)).await.expect("written");
    assert_eq!(logs.append(second, 0, lines(0..1_000)).await.expect("answered"), 1_000);
    assert_eq!(logs.append(second, 1_000, lines(1_000..1_010)).await.expect("answered"), 1_010);
    let read = logs.read(second, 0, 10_000).await.expect("readable");
    let (notice, kept) = read.split_last().expect("some were kept");
    assert_are(kept, 0..kept.len() as u64);
    assert!((20..100).contains(&kept.len()), "{}", kept.len());
    let missing = 1_010 - kept.len();
    assert_eq!(notice.offset, 1_009);
    assert!(text(notice).contains(&format!("{missing} more lines")), "{}", text(notice));

    logs.close().await;
    let logs = open(&dir, 2_000);
    assert_eq!(logs.next_offset(second).await.expect("readable"), 1_010);
    assert_eq!(logs.read(second, 0, 10_000).await.expect("readable"), read);
    // A reader who saw the notice reads on behind it.
    assert_eq!(logs.read(second, 1_010, 10).await.expect("readable"), []);
    let others = at(8, 1);
    logs.append(others, 0, lines(0..5)).await.expect("written");
    assert_are(&logs.read(others, 0, 10).await.expect("readable"), 0..5);
}

#[tokio::test]
async fn many_logs_at_once_stay_apart() {
    let dir = place();
    let logs = open(&dir, 1 << 20);
    for round in 0..3 {
        let appends = (1..200).map(|task| {
            let first = round * 2;
            logs.append(at(task, 1), first, lines(first..first + 2))
        });
        for next in futures_util::future::join_all(appends).await {
            assert_eq!(next.expect("written"), round * 2 + 2);
        }
    }
    for task in 1..200 {
        assert_are(&logs.read(at(task, 1), 0, 100).await.expect("readable"), 0..6);
    }
}

#[tokio::test]
async fn a_removed_tasks_lines_are_gone() {
    let dir = place();
    let logs = open(&dir, 1 << 20);
    logs.append(at(7, 1), 0, lines(0..5)).await.expect("written");
    logs.remove(TaskId(7)).await.expect("deleted");
    assert_eq!(logs.read(at(7, 1), 0, 100).await.expect("readable"), []);
    assert_eq!(logs.attempts(TaskId(7)).await.expect("readable"), []);
    logs.remove(TaskId(7)).await.expect("nothing to delete");
}

#[tokio::test]
async fn a_disk_that_takes_nothing_is_named_and_the_lines_can_come_again() {
    let dir = place();
    let logs = open(&dir, 1 << 20);
    let way = dir.path().join("logs").join("0");
    std::fs::write(&way, "a file where a directory should be").expect("written");
    let refused = logs.append(at(7, 1), 0, lines(0..2)).await.expect_err("no room").to_string();
    assert!(refused.contains("7") && refused.contains("free space"), "{refused}");
    std::fs::remove_file(&way).expect("removed");
    assert_eq!(logs.append(at(7, 1), 0, lines(0..2)).await.expect("written"), 2);
}

#[tokio::test]
async fn fillers_of_dropped_lines_take_no_room_and_are_not_shown() {
    let dir = place();
    let logs = open(&dir, 1_000);
    let filler = Line { is_error: true, at_ms: 0, text: Vec::new(), continues: true };
    let mut sent = vec![Line { text: b"dropped".to_vec(), ..filler.clone() }];
    sent.extend(std::iter::repeat_n(filler.clone(), 100_000));
    sent.push(Line { continues: false, ..filler });
    sent.push(line(100_002));
    assert_eq!(logs.append(at(7, 1), 0, sent).await.expect("written"), 100_003);
    let read = logs.read(at(7, 1), 0, 10).await.expect("readable");
    assert_eq!(read.iter().map(|line| line.offset).collect::<Vec<_>>(), [0, 100_001, 100_002]);
}
