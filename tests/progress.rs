//! A running task tells people how far it is.

mod common;

use std::time::{Duration, Instant};

use common::cluster::Cluster;
use common::{LIMIT, output, stdout};
use serde_json::Value;

#[test]
fn progress_is_shown_while_the_task_runs_and_not_after_its_end() {
    let cluster = Cluster::with_worker(&[]);
    let script = "echo progress 20%; until [ -e go ]; do sleep 0.05; done";
    let id = cluster.submit(&[], script);
    let start = Instant::now();
    let shown = loop {
        let shown = cluster.json(&["show", &id]);
        if !shown["progress"].is_null() {
            break shown;
        }
        assert!(start.elapsed() < LIMIT, "{shown:#}");
        // Nothing tells that a worker has beaten.
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(shown["progress"]["text"], "20%");
    assert_eq!(cluster.json(&["ps"])["tasks"][0]["progress"], shown["progress"]);
    let printed = |args: &[&str]| stdout(&output(&mut cluster.tenure(args)));
    let text = printed(&["show", &id]);
    assert!(text.lines().any(|line| line.starts_with("progress   20% (")), "{text}");
    let table = printed(&["ps"]);
    assert!(table.contains("PROGRESS") && table.contains("20%"), "{table}");
    std::fs::write(cluster.path().join("go"), "").expect("written");
    let end = cluster.end_of(&id);
    assert_eq!((end["status"].as_str(), &end["progress"]), (Some("COMPLETED"), &Value::Null));
    let table = printed(&["ps"]);
    assert!(!table.contains("PROGRESS"), "{table}");
}
