//! An outcome that is on the worker's disk is committed, however the worker ends after that.

mod common;

use std::fs;

use common::cluster::Cluster;
use serde_json::Value;

/// Runs a task on a worker that dies at this point, starts the worker again, and gives the task and how
/// often it was started.
fn with_fault(fault: &str) -> (Value, usize) {
    let mut cluster = Cluster::start(&[]);
    cluster.add_worker("one", &[("TENURE_TEST_FAULT", fault)]);
    let starts = cluster.file("starts");
    let id = cluster.submit(&["--patience", "1m"], &format!("echo start >> {starts}"));
    let died = cluster.worker("one").0.wait().expect("it ends");
    assert_eq!(died.code(), None, "by a signal, as after kill -9");
    cluster.add_worker("one", &[]);
    let task = cluster.end_of(&id);
    (task, fs::read_to_string(starts).expect("there").lines().count())
}

#[test]
fn a_worker_killed_after_the_record_delivers_it_when_it_is_back() {
    let (task, starts) = with_fault("exit-after-outcome-record");
    assert_eq!((task["status"].as_str(), task["attempt"].as_u64()), (Some("COMPLETED"), Some(1)));
    assert_eq!(starts, 1);
}

#[test]
fn a_worker_killed_before_the_record_runs_it_again() {
    let (task, starts) = with_fault("exit-before-outcome-record");
    assert_eq!((task["status"].as_str(), task["attempt"].as_u64()), (Some("COMPLETED"), Some(2)));
    assert_eq!(starts, 2);
}
