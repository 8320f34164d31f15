//! TERM drains: what runs goes on to its end, nothing new begins.

mod common;

use std::fs;
use std::process::Stdio;

use common::cluster::Cluster;
use common::events::{Lines, Pipe};
use common::{Process, code, json, output, tenure};
use nix::sys::signal::Signal;

#[test]
fn a_worker_that_drains_finishes_its_task_and_takes_no_other() {
    let mut cluster = Cluster::with_worker(&[]);
    let go = Pipe::new(cluster.path(), "go");
    let running = cluster.submit(&[], &format!("echo up; read word < {}; echo $word", go.path()));
    let (_follow, lines) = cluster.follow(&running);
    lines.wait_for("up");
    cluster.signal_worker("one", Signal::SIGTERM);
    let waiting = cluster.submit(&[], "true");
    fs::write(go.path(), "finished\n").expect("the task reads");
    assert_eq!(cluster.end_of(&running)["attempt"], 1);
    assert_eq!(cluster.log(&running), ["up", "finished"]);
    assert_eq!(cluster.worker("one").0.wait().expect("it ends").code(), Some(0));
    // An order may have crossed the drain; it counts as nothing, and another worker does the task.
    cluster.add_worker("two", &[]);
    let task = cluster.end_of(&waiting);
    assert_eq!(
        (task["status"].as_str(), task["worker"].as_str()),
        (Some("COMPLETED"), Some("two"))
    );
    assert_eq!((task["lost"].as_u64(), task["failures"].as_u64()), (Some(0), Some(0)), "{task:#}");
}

#[test]
fn a_second_signal_gives_the_task_back_uncounted() {
    let mut cluster = Cluster::with_worker(&[]);
    let script = "[ $TENURE_ATTEMPT != 1 ] || { echo up; sleep 1000; }";
    let id = cluster.submit(&["--stop-grace", "100ms"], script);
    let (_follow, lines) = cluster.follow(&id);
    lines.wait_for("up");
    let said = cluster.stderr_of("one");
    cluster.signal_worker("one", Signal::SIGTERM);
    said.wait_for("draining");
    cluster.signal_worker("one", Signal::SIGTERM);
    assert_eq!(cluster.worker("one").0.wait().expect("it ends").code(), Some(0));
    cluster.add_worker("two", &[]);
    let task = cluster.end_of(&id);
    assert_eq!((task["status"].as_str(), task["attempt"].as_u64()), (Some("COMPLETED"), Some(2)));
    assert_eq!((task["lost"].as_u64(), task["failures"].as_u64()), (Some(0), Some(0)), "{task:#}");
}

#[test]
fn dev_is_a_whole_system_in_one_process() {
    let dir = tempfile::tempdir().expect("a directory");
    let any = "127.0.0.1:0";
    let args = ["-o", "json", "dev", "--end-with-stdin", "--http", any, "--listen", any];
    let mut dev = Process::start(tenure(dir.path()).args(args).stdout(Stdio::piped()));
    let ready = Lines::of_child(&mut dev.0).next();
    let ready: serde_json::Value = serde_json::from_str(&ready).expect("a document");
    let server = ready["server"].as_str().expect("an address");
    let done = output(tenure(dir.path()).args(["--server", server, "run", "--", "echo", "hello"]));
    assert_eq!((code(&done), done.stdout.as_slice()), (0, b"hello\n".as_slice()));
    // A second one would take its data away.
    let second = output(tenure(dir.path()).args(["dev", "--http", any, "--listen", any]));
    assert_eq!(code(&second), 4);
    let list = json(&output(tenure(dir.path()).args(["--server", server, "-o", "json", "ps"])));
    assert_eq!(list["tasks"][0]["status"], "COMPLETED");
    let script = "[ $TENURE_ATTEMPT != 1 ] || { echo up; sleep 1000; }";
    let mut run = tenure(dir.path());
    run.args(["--server", server, "run", "--stop-grace", "100ms", "--", "sh", "-c", script]);
    let mut run = Process::start(run.stdout(Stdio::piped()));
    Lines::of_child(&mut run.0).wait_for("up");
    dev.signal(Signal::SIGTERM);
    assert_eq!(dev.0.wait().expect("it ends").code(), Some(0));
    // Again at the same addresses: whoever waited, goes on.
    let (http, listen) = (server.trim_start_matches("http://"), &ready["worker_address"]);
    let listen = listen.as_str().expect("an address");
    let args = ["-o", "json", "dev", "--end-with-stdin", "--http", http, "--listen", listen];
    let _dev = Process::start(tenure(dir.path()).args(args).stdout(Stdio::null()));
    assert_eq!(run.0.wait().expect("it ends").code(), Some(0));
    let task =
        json(&output(tenure(dir.path()).args(["--server", server, "-o", "json", "show", "2"])));
    assert_eq!((task["attempt"].as_u64(), task["lost"].as_u64()), (Some(2), Some(0)), "{task:#}");
}
