//! Settings come from flags, the environment, a file and defaults, in that order, and say which.

mod common;

use std::fs;

use common::{code, json, output, stderr, tenure};

#[test]
fn every_value_is_shown_with_its_origin() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = "[worker]\nslots = 3\nlabels = [\"gpu\"]\n[timings]\nheartbeat = \"500ms\"\n";
    fs::write(dir.path().join("tenure.toml"), file).expect("written");
    let mut command = tenure(dir.path());
    command.env("TENURE_SLOTS", "4").args([
        "-o",
        "json",
        "--server",
        "http://x:1",
        "config",
        "show",
    ]);
    let shown = json(&output(&mut command));
    let one = |name: &str| {
        let setting = &shown["settings"][name];
        let text = |part: &str| setting[part].as_str().expect("a text").to_owned();
        (text("value"), text("origin"))
    };
    assert_eq!(one("server"), ("http://x:1".into(), "flag --server".into()));
    assert_eq!(one("worker.slots"), ("4".into(), "environment TENURE_SLOTS".into()));
    assert_eq!(one("worker.labels"), ("gpu".into(), "file tenure.toml".into()));
    assert_eq!(one("timings.heartbeat"), ("500ms".into(), "file tenure.toml".into()));
    assert_eq!(one("timings.heartbeat_ttl"), ("4500ms".into(), "default".into()));
}

#[test]
fn an_unknown_key_ends_every_command_with_the_nearest_right_one() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("tenure.toml"), "[timings]\nheartbeet = \"1s\"\n").expect("written");
    let done = output(tenure(dir.path()).arg("ps"));
    assert_eq!(code(&done), 2);
    let said = stderr(&done);
    assert!(said.contains("timings.heartbeet") && said.contains("timings.heartbeat`"), "{said}");
}

#[test]
fn unsafe_timings_and_open_listeners_are_refused_before_anything_starts() {
    let dir = tempfile::tempdir().expect("a directory");
    let done = output(tenure(dir.path()).args(["master", "--timing", "heartbeat_ttl=1s"]));
    assert_eq!(code(&done), 2);
    assert!(stderr(&done).contains("2.5 heartbeats"), "{}", stderr(&done));
    let done = output(tenure(dir.path()).args(["master", "--http", "0.0.0.0:0"]));
    assert_eq!(code(&done), 5);
    assert!(stderr(&done).contains("--insecure-no-auth"), "{}", stderr(&done));
    assert!(!dir.path().join("master").exists());
}
