//! A worker that is killed at an exact point, and its next start in the same directory.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tenure_adapters::driver::worker::WorkerHandle;
use tenure_proto::messages as pb;

use crate::support::{Master, Session, end, execute, guardian, processes_of, sh};

const DIR: &str = "TENURE_TEST_WORKER_DIR";
const MASTER: &str = "TENURE_TEST_WORKER_MASTER";

/// Not a test by itself: the worker that the tests below start as a process of its own.
#[tokio::test]
async fn worker_process() {
    let (Some(dir), Ok(master)) = (std::env::var_os(DIR), std::env::var(MASTER)) else {
        return;
    };
    let mut options = tenure_adapters::driver::worker::WorkerOptions::new(
        vec![master],
        PathBuf::from(dir),
        guardian(),
    );
    options.name = "w-test".to_owned();
    let worker = WorkerHandle::start(options).await.expect("it starts");
    worker.closed().await;
}

/// Starts this program as a worker and waits, beside the returned session, for its end.
fn start(master: &Master, dir: &Path, fault: &str) -> tokio::task::JoinHandle<Option<i32>> {
    let program = std::env::current_exe().expect("this program");
    let mut child = Command::new(program)
        .args(["--exact", "restart::worker_process", "--test-threads=1"])
        .env(DIR, dir)
        .env(MASTER, master.address())
        .env("TENURE_TEST_FAULT", fault)
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    tokio::task::spawn_blocking(move || child.wait().expect("it is ours").signal())
}

/// Runs one task on a worker that dies of it.
async fn run_until_killed(master: &Master, dir: &Path, fault: &str, script: &str) -> Session {
    let killed = start(master, dir, fault);
    let mut session = master.session().await;
    session.execute(1, 1, &sh(script)).await;
    while session.read().await.is_some_and(|message| {
        assert_ne!(message.name(), "TaskStatusReport", "nobody was told");
        true
    }) {}
    assert_eq!(killed.await.expect("no panic"), Some(9), "it died at the fault point");
    session
}

#[tokio::test]
async fn killed_after_the_record_the_outcome_is_told_by_the_next_start() {
    let master = Master::start().await;
    let dir = tempfile::tempdir().expect("a directory");
    let script = "echo done; exit 5";
    let first = run_until_killed(&master, dir.path(), "exit-after-outcome-record", script).await;
    let worker = WorkerHandle::start(master.options(dir.path())).await.expect("it starts");
    let mut second = master.session_from(&[(1, 1, 0)]).await;
    let inventory = second.hello.inventory.take().expect("an inventory");
    assert_ne!(second.hello.incarnation, first.hello.incarnation);
    assert_eq!(inventory.finished.len(), 1);
    let outcome = second.outcome().await;
    assert_eq!(outcome.details.exit_code, Some(5));
    assert_eq!(outcome.report.ran_by, first.hello.incarnation, "who ran it, not who tells it");
    second.acknowledge_outcome(&outcome).await;
    assert_eq!(second.lines_of(1, 1, 1).await, ["done"]);
    end(worker, second).await;
}

#[tokio::test]
async fn killed_before_the_record_the_attempt_is_gone_and_never_starts_again() {
    let master = Master::start().await;
    let dir = tempfile::tempdir().expect("a directory");
    run_until_killed(&master, dir.path(), "exit-before-outcome-record", "echo done").await;
    let worker = WorkerHandle::start(master.options(dir.path())).await.expect("it starts");
    let mut second = master.session().await;
    let inventory = second.hello.inventory.take().expect("an inventory");
    assert_eq!((inventory.running.len(), inventory.finished.len()), (0, 0));
    assert_eq!((second.hello.highest_epoch, second.hello.highest_leader), (3, 77));
    // Its lines were kept all the same.
    assert_eq!(second.lines_of(1, 1, 1).await, ["done"]);
    second.say(pb::ExecuteTaskRequest { task: 1, attempt: 1, ..execute(&sh("echo again")) }).await;
    match second.next().await {
        tenure_proto::Message::ExecuteAnswer(answer) => {
            assert_eq!(answer.decline(), pb::Decline::OldAttempt);
        }
        other => panic!("an answer, not {other:?}"),
    }
    let outcome = second.run(1, 2, &sh("echo second")).await;
    assert_eq!(outcome.verdict, pb::Verdict::Succeeded);
    end(worker, second).await;
}

#[tokio::test]
async fn a_start_says_hello_when_nothing_of_the_last_one_runs_any_more() {
    let master = Master::start().await;
    let dir = tempfile::tempdir().expect("a directory");
    let ended = start(&master, dir.path(), "");
    let mut first = master.session().await;
    let body = sh("trap '' TERM HUP; setsid sleep 1000 & echo up; wait; wait");
    first.execute(1, 1, &body).await;
    first.line(1, "up").await;
    let pid = i32::try_from(first.hello.pid).expect("a process id");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL)
        .expect("it runs");
    assert_eq!(ended.await.expect("no panic"), Some(9));
    let worker = WorkerHandle::start(master.options(dir.path())).await.expect("it starts");
    let mut second = master.accept().await;
    assert_eq!(processes_of(dir.path()), [0; 0]);
    second.acknowledge(&[]).await;
    end(worker, second).await;
}
