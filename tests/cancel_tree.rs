//! A cancel ends everything that a task started, whatever it does to stay.

mod common;

use std::time::Duration;

use common::cluster::Cluster;
use common::events::Pipe;
use common::{code, output, stderr};

#[test]
fn children_of_children_that_ignore_term_and_call_setsid_are_gone_after_the_grace() {
    let cluster = Cluster::with_worker(&[]);
    let alive = Pipe::new(cluster.path(), "alive");
    let held = alive.lines();
    let inner = "trap \"\" TERM; (trap \"\" TERM; sleep 1000 & wait) & echo deep >&9; wait";
    let script = format!(
        "exec 9>{}; trap '' TERM; setsid sh -c '{inner}' & setsid sleep 1000 & wait",
        alive.path()
    );
    let id = cluster.submit(&["--stop-grace", "300ms"], &script);
    held.wait_for("deep");
    let answer = cluster.json(&["cancel", &id]);
    assert_eq!(answer["id"], id.as_str());
    let task = cluster.end_of(&id);
    assert_eq!(task["status"], "CANCELLED", "{task:#}");
    // The outcome is told only when the tree is gone; a second is for the pipe's reader.
    assert!(held.ends_within(Duration::from_secs(1)), "a process of the task is left");
}

#[test]
fn term_comes_first_so_that_a_task_can_clear_up() {
    let cluster = Cluster::with_worker(&[]);
    let id = cluster
        .submit(&[], "trap 'echo cleared; exit 0' TERM; echo up; while :; do sleep 0.05; done");
    let (_follow, lines) = cluster.follow(&id);
    lines.wait_for("up");
    cluster.json(&["cancel", &id]);
    lines.wait_for("cleared");
    assert_ne!(cluster.end_of(&id)["status"], "FAILED");
}

#[test]
fn a_task_that_waits_is_cancelled_at_once_and_one_that_is_over_is_not() {
    let mut cluster = Cluster::start(&[]);
    let waiting = cluster.submit(&[], "echo never");
    assert_eq!(cluster.json(&["cancel", &waiting])["status"], "CANCELLED");
    assert_eq!(cluster.json(&["cancel", &waiting])["status"], "CANCELLED", "said again");
    cluster.add_worker("one", &[]);
    let over = cluster.submit(&[], "true");
    assert_eq!(cluster.end_of(&over)["status"], "COMPLETED");
    let done = output(&mut cluster.tenure(&["cancel", &over]));
    assert_eq!(code(&done), 4);
    assert!(stderr(&done).contains("COMPLETED"), "{}", stderr(&done));
    assert_eq!(cluster.json(&["show", &over])["status"], "COMPLETED");
}

#[test]
fn force_ends_a_task_whose_worker_cannot_be_told() {
    let mut cluster = Cluster::with_worker(&[]);
    let alive = Pipe::new(cluster.path(), "alive");
    let held = alive.lines();
    let id =
        cluster.submit(&["--patience", "1m"], &format!("echo up > {}; sleep 1000", alive.path()));
    held.wait_for("up");
    cluster.worker("one").kill();
    let done = output(&mut cluster.tenure(&["cancel", &id]));
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    assert_eq!(cluster.json(&["cancel", "--force", &id])["status"], "CANCELLED");
}
