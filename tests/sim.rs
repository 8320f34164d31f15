//! `tenure sim` explores every placement of a fault, and the same seed gives the same histories.

mod common;

use std::fs;

use common::{code, json, output, stderr, stdout, tenure};
use serde_json::Value;

fn explore(args: &[&str]) -> Value {
    let dir = tempfile::tempdir().expect("a directory");
    let done = output(tenure(dir.path()).args(["-o", "json", "sim", "explore"]).args(args));
    assert_eq!(code(&done), 0, "{}{}", stderr(&done), stdout(&done));
    json(&done)
}

#[test]
fn every_placement_of_one_fault_is_run_and_two_processes_agree() {
    let first = explore(&["--faults", "1", "--jobs", "1"]);
    let second = explore(&["--faults", "1", "--jobs", "2"]);
    assert_eq!(first["complete"], true);
    assert_eq!(first["violations"], serde_json::json!([]));
    assert!(first["histories"].as_u64().expect("a number") > 100, "{first:#}");
    assert_eq!(first["trace_hash"], second["trace_hash"]);
    assert_ne!(first["trace_hash"], explore(&["--faults", "1", "--seed", "2"])["trace_hash"]);
}

#[test]
fn random_worlds_keep_to_their_budget() {
    let report = explore(&["--random", "--seed", "7", "--seeds", "20"]);
    assert_eq!(report["histories"], 20, "{report:#}");
    explore(&["--random", "--budget", "200ms"]);
}

#[test]
fn a_replay_is_read_from_a_file_or_the_command_line_and_what_is_none_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    let replay =
        r#"{"version":1,"scenario":"dispatch","policy":"small-world","seed":1,"choices":[]}"#;
    fs::write(dir.path().join("replay.json"), replay).expect("written");
    let by_file = output(tenure(dir.path()).args(["-o", "json", "sim", "replay", "replay.json"]));
    assert_eq!(code(&by_file), 0, "{}", stderr(&by_file));
    let by_text = output(tenure(dir.path()).args(["-o", "json", "sim", "replay", replay]));
    assert_eq!(json(&by_file)["trace_hash"], json(&by_text)["trace_hash"]);
    assert!(!json(&by_file)["timeline"].as_array().expect("lines").is_empty());
    let none = output(tenure(dir.path()).args(["sim", "replay", "missing.json"]));
    assert_eq!(code(&none), 2);
    assert!(stderr(&none).contains("missing.json"), "{}", stderr(&none));
}
