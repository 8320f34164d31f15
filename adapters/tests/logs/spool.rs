//! The worker's side.

use tempfile::TempDir;
use tenure_adapters::logs::{Line, LogOptions, LogStore, Spool, StoredLine};
use tenure_core::ids::AttemptRef;

use crate::{assert_are, at, lines, text};

fn place() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn open(dir: &TempDir, limit: u64) -> (Spool, Vec<(AttemptRef, u64)>) {
    Spool::open(&dir.path().join("spool"), limit).expect("the directory opens")
}

/// Everything from an offset on, in batches as a sender reads it.
async fn all(spool: &Spool, log: AttemptRef, mut from: u64) -> Vec<StoredLine> {
    let mut read = Vec::new();
    loop {
        let batch = spool.read(log, from, 4_000).await.expect("readable");
        let Some(last) = batch.last() else { return read };
        from = last.offset + 1;
        read.extend(batch);
    }
}

#[tokio::test]
async fn lines_are_read_from_any_offset_in_batches() {
    let dir = place();
    let (spool, held) = open(&dir, 1 << 20);
    assert_eq!(held, []);
    for first in (0..3_000).step_by(7) {
        let next = spool.append(at(1, 1), lines(first..first + 7)).await.expect("written");
        assert_eq!(next, first + 7);
    }
    for from in [0, 1, 1_500, 3_002] {
        assert_are(&all(&spool, at(1, 1), from).await, from..3_003);
    }
    let one = spool.read(at(1, 1), 10, 1).await.expect("readable");
    assert_are(&one, 10..11);
    assert_eq!(spool.read(at(9, 9), 0, 100).await.expect("readable"), []);
}

#[tokio::test]
async fn a_killed_worker_finds_every_line_that_was_taken() {
    let dir = place();
    let (spool, _) = open(&dir, 1 << 20);
    spool.append(at(1, 1), lines(0..2_000)).await.expect("written");
    spool.append(at(2, 3), lines(0..10)).await.expect("written");
    // Nothing is closed; the files are as a kill leaves them.
    let (again, held) = open(&dir, 1 << 20);
    assert_eq!(held, [(at(1, 1), 2_000), (at(2, 3), 10)]);
    assert_are(&all(&again, at(1, 1), 0).await, 0..2_000);
    assert_eq!(again.append(at(2, 3), lines(10..12)).await.expect("written"), 12);
    assert_are(&all(&again, at(2, 3), 0).await, 0..12);
}

#[tokio::test]
async fn a_removed_attempt_leaves_no_file() {
    let dir = place();
    let (spool, _) = open(&dir, 1 << 20);
    spool.append(at(1, 1), lines(0..2_000)).await.expect("written");
    spool.remove(at(1, 1)).await.expect("deleted");
    let left = std::fs::read_dir(dir.path().join("spool")).expect("readable").count();
    assert_eq!(left, 0);
    assert_eq!(open(&dir, 1 << 20).1, []);
}

#[tokio::test]
async fn over_the_limit_the_oldest_lines_go_and_a_line_says_how_many() {
    let dir = place();
    let (spool, _) = open(&dir, 64 << 10);
    let log = at(1, 1);
    for first in (0..10_000).step_by(50) {
        spool.append(log, lines(first..first + 50)).await.expect("written");
    }
    let read = all(&spool, log, 0).await;
    // Offsets have no gap, so that a master takes them.
    let offsets: Vec<u64> = read.iter().map(|line| line.offset).collect();
    assert_eq!(offsets, (0..10_000).collect::<Vec<u64>>());
    let gone = read.iter().filter(|line| line.at_ms == 0).count();
    assert!((5_000..9_900).contains(&gone), "{gone}");
    assert!(text(&read[0]).contains(&format!("{gone} lines")), "{}", text(&read[0]));
    assert!(read[0].continues && !read[gone - 1].continues);
    assert!(read[1..gone].iter().all(|line| line.text.is_empty()));
    assert_are(&read[gone..], gone as u64..10_000);
    assert!(size(&dir) <= (64 << 10) + (8 << 10), "{} bytes", size(&dir));

    let master = place();
    let logs = LogStore::open(master.path(), LogOptions::default()).expect("opens");
    let sent: Vec<Line> = read
        .into_iter()
        .map(|StoredLine { is_error, at_ms, text, continues, .. }| Line {
            is_error,
            at_ms,
            text,
            continues,
        })
        .collect();
    assert_eq!(logs.append(log, 0, sent).await.expect("written"), 10_000);
    let shown = logs.read(log, 0, 2).await.expect("readable");
    assert!(text(&shown[0]).contains("missing"), "{}", text(&shown[0]));
}

#[tokio::test]
async fn lines_that_a_master_has_go_before_lines_that_none_has() {
    let dir = place();
    let (spool, _) = open(&dir, 64 << 10);
    let (old, new) = (at(1, 1), at(2, 1));
    spool.append(old, lines(0..1_000)).await.expect("written");
    for first in (0..1_000).step_by(100) {
        spool.append(new, lines(first..first + 100)).await.expect("written");
    }
    spool.acknowledged(new, 1_000);
    for first in (1_000..2_000).step_by(100) {
        spool.append(new, lines(first..first + 100)).await.expect("written");
    }
    assert_are(&all(&spool, old, 0).await, 0..1_000);
    assert_are(&all(&spool, new, 1_000).await, 1_000..2_000);
}

#[tokio::test]
async fn where_a_log_goes_on_is_known_although_all_its_lines_were_dropped() {
    let dir = place();
    let (spool, _) = open(&dir, 16 << 10);
    let (small, large) = (at(1, 1), at(2, 1));
    spool.append(small, lines(0..10)).await.expect("written");
    for first in (0..2_000).step_by(100) {
        spool.append(large, lines(first..first + 100)).await.expect("written");
    }
    let (again, held) = open(&dir, 16 << 10);
    assert_eq!(held, [(small, 10), (large, 2_000)]);
    assert_eq!(again.append(small, lines(10..11)).await.expect("written"), 11);
    let read = all(&again, small, 0).await;
    assert!(text(&read[0]).contains("10 lines"), "{}", text(&read[0]));
    assert_are(&read[10..], 10..11);
}

#[tokio::test]
async fn lines_that_the_disk_does_not_take_are_counted_in_the_log() {
    let dir = place();
    let (spool, _) = open(&dir, 1 << 20);
    let log = at(1, 1);
    let hidden = dir.path().join("hidden");
    std::fs::rename(dir.path().join("spool"), &hidden).expect("moved");
    let refused = spool.append(log, lines(0..7)).await.expect_err("no directory").to_string();
    assert!(refused.contains("spool") && refused.contains("free space"), "{refused}");
    std::fs::rename(&hidden, dir.path().join("spool")).expect("moved back");
    assert_eq!(spool.append(log, lines(1..3)).await.expect("written"), 3);
    let read = all(&spool, log, 0).await;
    assert!(text(&read[0]).contains("7 lines"), "{}", text(&read[0]));
    assert_are(&read[1..], 1..3);
}

#[tokio::test]
async fn a_bad_place_on_the_disk_leaves_no_gap_in_the_offsets() {
    let dir = place();
    let (spool, _) = open(&dir, 1 << 20);
    let log = at(1, 1);
    for first in (0..100).step_by(10) {
        spool.append(log, lines(first..first + 10)).await.expect("written");
    }
    let file = dir.path().join("spool").join("1.1.0.lines");
    let mut bytes = std::fs::read(&file).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).expect("written");
    let (again, held) = open(&dir, 1 << 20);
    assert_eq!(held, [(log, 100)]);
    let read = all(&again, log, 0).await;
    let offsets: Vec<u64> = read.iter().map(|line| line.offset).collect();
    assert_eq!(offsets, (0..100).collect::<Vec<u64>>());
    let gone = read.iter().position(|line| line.at_ms == 0).expect("ten were lost");
    assert!(text(&read[gone]).contains("10 lines"), "{}", text(&read[gone]));
    assert_are(&read[..gone], 0..gone as u64);
    assert_are(&read[gone + 10..], gone as u64 + 10..100);
}

fn size(dir: &TempDir) -> u64 {
    let files = std::fs::read_dir(dir.path().join("spool")).expect("readable");
    files.map(|file| file.and_then(|file| file.metadata()).expect("readable").len()).sum()
}
