//! A task whose worker is killed or frozen runs again on another one, soon, and only its outcome counts.

mod common;

use std::time::Duration;

use common::cluster::Cluster;
use common::events::Pipe;
use common::{LIMIT, code, json, output, stderr, tenure};
use nix::sys::signal::Signal;
use serde_json::Value;

fn worker_of(task: &Value) -> String {
    task["worker"].as_str().expect("a worker").to_owned()
}

fn states(task: &Value) -> Vec<&str> {
    let attempts = task["attempts"].as_array().expect("a list");
    attempts.iter().map(|attempt| attempt["state"].as_str().expect("a state")).collect()
}

#[test]
fn a_training_goes_on_from_its_checkpoint_on_another_worker() {
    let mut cluster = Cluster::with_worker(&[]);
    cluster.add_worker("two", &[]);
    let script = format!("{}/examples/train_cartpole.py", env!("CARGO_MANIFEST_DIR"));
    let done = output(cluster.tenure(&["submit", "--resumable", "--", "python3"]).args([
        &script,
        "--episodes",
        "80",
        "--pause",
        "0.2",
    ]));
    let id = String::from_utf8(done.stdout).expect("text").trim().to_owned();
    let (_follow, lines) = cluster.follow(&id);
    lines.wait_for("progress 20/80");
    lines.wait_for("progress 40/80");
    let task = cluster.json(&["show", &id]);
    cluster.worker(&worker_of(&task)).kill();
    let resumed = lines.wait_for("resumed at episode");
    let episode: u32 = resumed.rsplit(' ').next().expect("a word").parse().expect("a number");
    assert!(episode > 0, "{resumed}");
    let task = cluster.end_of(&id);
    assert_eq!(task["status"], "COMPLETED", "{task:#}");
    assert_eq!(states(&task), ["LOST", "ENDED"]);
    assert!(task["outcome"]["reward"].is_string(), "{task:#}");
}

#[test]
fn nothing_of_a_killed_workers_tasks_is_left_after_a_second() {
    let mut cluster = Cluster::with_worker(&[]);
    let alive = Pipe::new(cluster.path(), "alive");
    let held = alive.lines();
    let script = format!(
        "exec 9>{}; trap '' TERM; setsid sh -c 'trap \"\" TERM; (sleep 1000 & sleep 1000) & echo deep >&9; wait' & wait",
        alive.path()
    );
    cluster.submit(&[], &script);
    held.wait_for("deep");
    cluster.worker("one").kill();
    assert!(held.ends_within(Duration::from_secs(1)), "a process of the task is left");
}

#[test]
fn a_frozen_workers_outcome_is_refused_when_it_wakes() {
    let timings = ["heartbeat=100ms", "suspect_after=300ms", "heartbeat_ttl=650ms"];
    let mut cluster = Cluster::with_worker(&timings);
    cluster.add_worker("two", &[]);
    let first = Pipe::new(cluster.path(), "first");
    let held = first.lines();
    let script = format!(
        "[ $TENURE_ATTEMPT != 1 ] || {{ exec 9>{}; echo up >&9; trap '' TERM; sleep 1000; }}",
        first.path()
    );
    let id = cluster.submit(&["--stop-grace", "100ms"], &script);
    held.wait_for("up");
    let worker = worker_of(&cluster.json(&["show", &id]));
    cluster.signal_worker(&worker, Signal::SIGSTOP);
    let task = cluster.end_of(&id);
    assert_eq!((task["status"].as_str(), task["attempt"].as_u64()), (Some("COMPLETED"), Some(2)));
    assert_ne!(worker_of(&task), worker);
    cluster.signal_worker(&worker, Signal::SIGCONT);
    assert!(held.ends_within(LIMIT), "the first process is stopped");
    let task = cluster.json(&["show", &id]);
    assert_eq!(task["status"], "COMPLETED");
    assert_ne!(states(&task)[0], "ENDED", "{task:#}");
}

#[test]
fn the_bench_measures_kills_within_their_bound() {
    let dir = tempfile::tempdir().expect("a directory");
    let args = ["-o", "json", "bench", "recovery", "--kill", "worker", "--runs", "3"];
    let done = output(tenure(dir.path()).args(args));
    assert_eq!(code(&done), 0, "{}", stderr(&done));
    let report = json(&done);
    let number = |name: &str| report[name].as_f64().expect("a number");
    assert_eq!(number("runs"), 3.0);
    // The grace is 250 ms, so less would mean that the clock began too late.
    assert!(number("min_ms") >= 250.0 && number("p99_ms") >= number("p50_ms"), "{report:#}");
    // Twice the promise: other tests run beside this one.
    assert!(number("p99_ms") < 2.0 * number("bound_ms"), "{report:#}");
}
