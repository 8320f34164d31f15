//! Log lines: no line lost, none twice, whatever is sent again or cut short.

mod spool;
mod store;

use tenure_adapters::logs::{Line, StoredLine};
use tenure_core::ids::{Attempt, AttemptRef, TaskId};

fn at(task: u64, attempt: u32) -> AttemptRef {
    AttemptRef::new(TaskId(task), Attempt::new(attempt).expect("attempts begin at 1"))
}

/// Lines that say their own offset.
fn lines(offsets: std::ops::Range<u64>) -> Vec<Line> {
    offsets.map(line).collect()
}

fn line(offset: u64) -> Line {
    let text = format!("line {offset}").into_bytes();
    Line {
        is_error: offset.is_multiple_of(3),
        at_ms: 1_000 + offset,
        text,
        continues: offset.is_multiple_of(5),
    }
}

fn assert_are(stored: &[StoredLine], offsets: std::ops::Range<u64>) {
    let found: Vec<u64> = stored.iter().map(|line| line.offset).collect();
    assert_eq!(found, offsets.collect::<Vec<u64>>());
    for stored in stored {
        let Line { is_error, at_ms, text, continues } = line(stored.offset);
        let expected = StoredLine { offset: stored.offset, is_error, at_ms, text, continues };
        assert_eq!(*stored, expected);
    }
}

fn text(line: &StoredLine) -> &str {
    std::str::from_utf8(&line.text).expect("our own lines are UTF-8")
}
