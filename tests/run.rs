//! `tenure run` runs one command to its end, with its output and its exit code.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use common::cluster::Cluster;
use common::events::{Lines, Pipe};
use common::{LIMIT, Process, code, output, stderr, stdout, tenure};
use nix::sys::signal::Signal;
use tempfile::TempDir;

fn dir() -> TempDir {
    tempfile::tempdir().expect("a directory")
}

fn run(dir: &Path, options: &[&str], script: &str) -> Output {
    output(tenure(dir).arg("run").args(options).args(["--", "sh", "-c", script]))
}

/// What runs left in the data directory.
fn left(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir.join("runs")) else { return Vec::new() };
    entries.map(|entry| entry.expect("readable").path()).collect()
}

#[test]
fn both_streams_pass_through_and_the_exit_code_is_the_tasks() {
    let dir = dir();
    let done = run(dir.path(), &[], "echo out; echo err >&2; exit 7");
    assert_eq!(code(&done), 7, "{}", stderr(&done));
    assert_eq!(stdout(&done), "out\n");
    assert!(stderr(&done).lines().any(|line| line == "err"), "{}", stderr(&done));
    assert_eq!(left(dir.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_command_that_succeeds_leaves_nothing_behind() {
    let dir = dir();
    fs::write(dir.path().join("beside"), "here").expect("written");
    let done = run(
        dir.path(),
        &["--env", "WHO=me"],
        "cat beside; echo $WHO; : > $TENURE_CHECKPOINT_DIR/x",
    );
    assert_eq!((code(&done), stdout(&done).as_str()), (0, "hereme\n"), "{}", stderr(&done));
    assert_eq!(left(dir.path()), Vec::<PathBuf>::new());
}

#[test]
fn bytes_pass_through_unchanged() {
    let dir = dir();
    let done = run(dir.path(), &[], r"printf 'a\377b\303\n\r\n'");
    assert_eq!(done.stdout, b"a\xffb\xc3\n\r\n");
}

#[test]
fn a_missing_program_is_named_with_where_it_was_looked_for() {
    let dir = dir();
    let done = output(tenure(dir.path()).args(["run", "--", "no-such-program"]));
    assert_eq!(code(&done), 127);
    let said = stderr(&done);
    assert!(said.contains("no-such-program") && said.contains("PATH"), "{said}");
}

#[test]
fn a_signal_and_a_timeout_have_codes_of_their_own() {
    let dir = dir();
    assert_eq!(code(&run(dir.path(), &[], "kill -9 $$")), 128 + 9);
    let done = run(dir.path(), &["--timeout", "200ms", "--stop-grace", "100ms"], "sleep 60");
    assert_eq!(code(&done), 124, "{}", stderr(&done));
}

#[test]
fn tenures_own_failures_have_code_125_and_wrong_usage_2() {
    let dir = dir();
    fs::write(dir.path().join("file"), "x").expect("written");
    let done = output(tenure(dir.path()).args(["run", "--data-dir", "file", "--", "true"]));
    assert_eq!(code(&done), 125, "{}", stderr(&done));
    assert_eq!(code(&output(tenure(dir.path()).arg("run"))), 2);
}

#[test]
fn a_failed_attempt_is_tried_again_if_asked_for() {
    let dir = dir();
    let script = "echo try $TENURE_ATTEMPT; [ $TENURE_ATTEMPT = 2 ]";
    let done = run(dir.path(), &["--retries", "1", "--timing", "retry_min=10ms"], script);
    assert_eq!((code(&done), stdout(&done).as_str()), (0, "try 1\ntry 2\n"), "{}", stderr(&done));
    assert_eq!(stdout(&run(dir.path(), &[], script)), "try 1\n", "not unless asked for");
}

/// A run whose script has said its first line.
fn started(command: &mut Command) -> (Process, Lines) {
    let mut process = Process::start(command.stdout(Stdio::piped()));
    let lines = Lines::of_child(&mut process.0);
    lines.wait_for("started");
    (process, lines)
}

#[test]
fn ctrl_c_ends_the_task_and_all_it_started() {
    let dir = dir();
    let alive = Pipe::new(dir.path(), "alive");
    let held = alive.lines();
    let script = format!("exec 9>{}; trap '' TERM; sleep 1000 & echo started; wait", alive.path());
    let mut command = tenure(dir.path());
    command.args(["run", "--stop-grace", "100ms", "--", "sh", "-c", &script]);
    let (mut process, _lines) = started(&mut command);
    process.signal(Signal::SIGINT);
    assert_eq!(process.0.wait().expect("it ends").code(), Some(130));
    assert!(held.ends_within(LIMIT), "a process of the task is left");
}

#[test]
fn a_run_that_was_killed_goes_on_where_it_was() {
    let dir = dir();
    let alive = Pipe::new(dir.path(), "alive");
    let held = alive.lines();
    let script = format!(
        "if [ -e $TENURE_CHECKPOINT_DIR/half ]; then echo the rest of attempt $TENURE_ATTEMPT; exit 3; fi
         exec 9>{}; touch $TENURE_CHECKPOINT_DIR/half; echo started; sleep 1000",
        alive.path()
    );
    let (mut process, _lines) =
        started(tenure(dir.path()).args(["run", "--", "sh", "-c", &script]));
    process.kill();
    assert!(held.ends_within(LIMIT), "what the task ran ends with its worker");
    let left = left(dir.path());
    assert_eq!(left.len(), 1);
    let hint = stderr(&run(dir.path(), &[], "true"));
    assert!(hint.contains(left[0].to_str().expect("text")), "{hint}");
    let done = output(tenure(dir.path()).args(["run", "--resume"]).arg(&left[0]));
    assert_eq!(code(&done), 3, "{}", stderr(&done));
    assert_eq!(stdout(&done), "the rest of attempt 2\n");
}

#[test]
fn a_configured_server_runs_it_and_ctrl_c_only_detaches() {
    let cluster = Cluster::with_worker(&[]);
    let done = output(&mut cluster.tenure(&["run", "--", "sh", "-c", "echo there; exit 4"]));
    assert_eq!((code(&done), stdout(&done).as_str()), (4, "there\n"), "{}", stderr(&done));

    let go = Pipe::new(cluster.path(), "go");
    let script = format!("echo started; read word < {}; echo $word", go.path());
    let mut command = cluster.tenure(&["run", "--", "sh", "-c", &script]);
    let (mut process, _lines) = started(command.stderr(Stdio::piped()));
    process.signal(Signal::SIGINT);
    let said = Lines::of(process.0.stderr.take().expect("piped")).wait_for("detached");
    assert!(said.contains("logs -f 2"), "{said}");
    assert_eq!(process.0.wait().expect("it ends").code(), Some(130));
    fs::write(go.path(), "went on\n").expect("the task reads");
    assert_eq!(cluster.log("2"), ["started", "went on"]);
    assert_eq!(cluster.end_of("2")["status"], "COMPLETED");
}
