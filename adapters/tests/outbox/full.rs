//! A disk that takes no more: a limit on the size of files, set for a process of its own.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tenure_core::command::Record;

use crate::support::{Place, open, outcome};

const DIR: &str = "TENURE_TEST_FULL_DIR";

#[test]
fn a_full_disk_is_named_and_corrupts_nothing() {
    let place = Place::new();
    let program = std::env::current_exe().expect("this test's program");
    // 8 blocks of 512 bytes, 1024 in some shells; the signal that would end the process is ignored.
    let limited = "trap '' XFSZ; ulimit -f 8; exec \"$0\" --exact full::within_the_limit --ignored";
    let ran = Command::new("sh")
        .args(["-c", limited])
        .arg(program)
        .env(DIR, place.dir.path())
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");

    let after = place.open();
    let tasks: Vec<u64> = after.remembered.outcomes.iter().map(|kept| kept.at.task.0).collect();
    assert_eq!(tasks, [1, 3], "what was refused is not there, what was taken is");
    assert_eq!(after.outbox.recovered(), Default::default());
}

/// Run by the test above, under its limit.
#[test]
#[ignore = "needs a limit on the size of files"]
fn within_the_limit() {
    let dir = PathBuf::from(std::env::var_os(DIR).expect("given by the test above"));
    let mut opened = open(&dir, Arc::new(AtomicU64::new(0))).expect("the file opens");
    opened.write(&Record::Outcome(outcome(1, 1, b"fits")));
    let large = Record::Outcome(outcome(2, 1, &[7; 20_000]));
    let refused = opened.outbox.append(&large).expect_err("it is too large").to_string();
    assert!(refused.contains("outbox.records") && refused.contains("free space"), "{refused}");
    opened.write(&Record::Outcome(outcome(3, 1, b"fits too")));
}
