//! A master that is killed and started again finds its tasks running, and neither loses nor repeats one.

mod common;

use std::fs;

use common::cluster::Cluster;
use common::events::Pipe;
use common::{code, json, output, stderr, tenure};
use serde_json::Value;

fn bench(args: &[&str]) -> Value {
    let dir = tempfile::tempdir().expect("a directory");
    let done = output(tenure(dir.path()).args(["-o", "json", "bench", "recovery"]).args(args));
    assert_eq!(code(&done), 0, "{}{}", stderr(&done), String::from_utf8_lossy(&done.stdout));
    json(&done)
}

#[test]
fn ten_tasks_start_once_commit_once_and_print_every_line_once() {
    let report = bench(&["--kill", "master", "--runs", "2", "--tasks", "10"]);
    assert_eq!(report["starts"], 20, "{report:#}");
    assert_eq!(report["commits"], 20, "{report:#}");
    assert_eq!(report["lines"], 20 * 50, "{report:#}");
    assert_eq!(report["wrong"], serde_json::json!([]));
}

#[test]
fn a_storm_of_kills_loses_and_doubles_nothing() {
    let report = bench(&["--kill", "master", "--storm", "--seconds", "8", "--tasks", "60"]);
    assert!(report["kills"].as_u64().expect("a number") >= 4, "{report:#}");
    assert_eq!((report["starts"].as_u64(), report["commits"].as_u64()), (Some(60), Some(60)));
}

#[test]
fn followers_and_waiters_go_on_over_a_restart() {
    let mut cluster = Cluster::with_worker(&[]);
    let go = Pipe::new(cluster.path(), "go");
    let id = cluster.submit(&[], &format!("echo before; read word < {}; echo $word", go.path()));
    let (mut follow, lines) = cluster.follow(&id);
    lines.wait_for("before");
    let mut wait = cluster.tenure(&["wait", &id]).spawn().expect("it starts");
    cluster.kill_master();
    cluster.restart_master();
    fs::write(go.path(), "after\n").expect("the task reads");
    lines.wait_for("after");
    assert_eq!(follow.0.wait().expect("it ends").code(), Some(0));
    assert_eq!(wait.wait().expect("it ends").code(), Some(0));
    let task = cluster.end_of(&id);
    assert_eq!((task["status"].as_str(), task["attempt"].as_u64()), (Some("COMPLETED"), Some(1)));
}

#[test]
fn an_acknowledged_submission_survives_a_kill_right_after_it() {
    let mut cluster = Cluster::start(&[]);
    let id = cluster.submit(&["--idempotency-key", "once"], "echo done");
    cluster.kill_master();
    cluster.restart_master();
    assert_eq!(cluster.submit(&["--idempotency-key", "once"], "echo done"), id);
    cluster.add_worker("one", &[]);
    assert_eq!(cluster.log(&id), ["done"]);
}
