//! A real worker and a real master, in one process.

use std::path::Path;

use tenure_adapters::driver::master::MasterHandle;
use tenure_adapters::driver::worker::{WorkerHandle, WorkerOptions};
use tenure_adapters::process::GuardianCommand;
use tenure_core::command::Reply;
use tenure_core::ids::{Attempt, AttemptRef, TaskId};
use tenure_core::store::Status;
use tenure_proto::messages as pb;

use crate::support::{Bench, options, soon, submit_command};

async fn worker(bench: &Bench, dir: &Path) -> WorkerHandle {
    let guardian = GuardianCommand::new(env!("CARGO_BIN_EXE_tenure-guardian"), [] as [&str; 0]);
    let masters = vec![bench.master.address().to_string()];
    let options = WorkerOptions {
        name: "real".to_owned(),
        ..WorkerOptions::new(masters, dir.to_owned(), guardian)
    };
    WorkerHandle::start(options).await.expect("it starts")
}

async fn submit(bench: &Bench, script: &str) -> TaskId {
    match submit_command(&bench.master, script, &["sh", "-c", script]).await {
        Reply::Submitted { task, .. } => task,
        other => panic!("{other:?}"),
    }
}

async fn report(bench: &Bench, task: TaskId) -> pb::OutcomeReport {
    let attempts = bench.master.store().attempts(task).await.expect("readable");
    assert_eq!(attempts.len(), 1);
    pb::OutcomeReport::from_bytes(attempts[0].report.bytes()).expect("a report")
}

async fn log(bench: &Bench, task: TaskId, lines: u64) -> Vec<String> {
    let at = AttemptRef::new(task, Attempt::FIRST);
    let mut grown = bench.master.logs().follow(at);
    soon("its lines", grown.wait_for(|next| *next >= lines)).await.expect("the store is open");
    let stored = bench.master.logs().read(at, 0, 1_000).await.expect("readable");
    stored.into_iter().map(|line| String::from_utf8_lossy(&line.text).into_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_to_its_end_and_its_output_and_result_are_with_the_master() {
    let bench = Bench::start().await;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let worker = worker(&bench, dir.path()).await;
    let task = submit(&bench, "echo one; echo two; echo FINAL_REWARD:1.5").await;
    bench.until(task, Status::Completed).await;
    let report = report(&bench, task).await;
    assert_eq!((report.exit_code, report.reward.as_str(), report.log_lines), (Some(0), "1.5", 3));
    assert_eq!(log(&bench, task, 3).await, ["one", "two", "FINAL_REWARD:1.5"]);
    worker.drain().await;
    soon("the worker's end", worker.closed()).await;
    bench.shows(|status| status.connected == 0).await;
    bench.master.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_goes_on_while_its_master_is_started_again() {
    let mut bench = Bench::start().await;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let gate = dir.path().join("gate");
    let worker = worker(&bench, dir.path()).await;
    let script =
        format!("echo before; while [ ! -e {} ]; do sleep 0.05; done; echo after", gate.display());
    let task = submit(&bench, &script).await;
    log(&bench, task, 1).await;

    let mut again = options(bench.dir.path());
    again.listen = bench.master.address();
    soon("the end", bench.master.stop()).await;
    std::fs::write(&gate, "").expect("writable");
    bench.master = MasterHandle::start(again).await.expect("it leads");
    bench.until(task, Status::Completed).await;
    assert_eq!(report(&bench, task).await.log_lines, 2);
    assert_eq!(log(&bench, task, 2).await, ["before", "after"]);
    worker.drain().await;
    soon("the worker's end", worker.closed()).await;
    bench.master.stop().await;
}
