//! Masters that start, stop and start again on the same data, and a store that does not answer.

use std::time::Duration;

use sqlx::{ConnectOptions, Connection};
use tenure_adapters::data_dir::DirError;
use tenure_adapters::driver::master::{MasterHandle, StartError};
use tenure_core::command::Reply;
use tenure_core::store::Status;
use tenure_proto::messages as pb;

use crate::support::{Bench, Worker, attempt_of, options, soon, submit};

#[tokio::test]
async fn a_master_started_again_takes_a_higher_epoch_and_adopts_what_runs() {
    let mut bench = Bench::start().await;
    let mut worker = bench.worker("w", 1).await;
    let task = bench.submit("k").await;
    let order = worker.ordered().await;
    worker.accept(&order).await;
    worker.beat(1, vec![attempt_of(&order)]).await;
    let first = bench.master.status().leads.expect("it leads");
    soon("the end", bench.master.stop()).await;

    bench.master = MasterHandle::start(options(bench.dir.path())).await.expect("it leads");
    let second = bench.master.status().leads.expect("it leads");
    assert!(second.epoch > first.epoch && second.leader != first.leader);
    let mut worker = Worker::connect(bench.master.address()).await;
    let running = pb::Inventory { running: vec![attempt_of(&order)], finished: Vec::new() };
    let ack = worker.hello("w", 1, running).await;
    assert_eq!(ack.epoch, second.epoch.0);
    worker.succeed(&order, 1).await;
    assert_eq!(worker.acknowledged().await.at, Some(attempt_of(&order)));
    bench.until(task, Status::Completed).await;
    let attempts = bench.master.store().attempts(task).await.expect("readable");
    assert_eq!(attempts.len(), 1, "it was not run again");
}

#[tokio::test]
async fn a_second_master_on_the_same_data_is_refused_by_name() {
    let bench = Bench::start().await;
    let refused = MasterHandle::start(options(bench.dir.path())).await.err();
    assert!(matches!(refused, Some(StartError::Dir(DirError::InUse { .. }))), "{refused:?}");
    let told = refused.expect("refused").to_string();
    assert!(told.contains(&bench.dir.path().display().to_string()), "{told}");
    assert!(told.contains(&std::process::id().to_string()), "{told}");
    bench.worker("w", 1).await.beat(1, Vec::new()).await;
}

#[tokio::test]
async fn a_port_in_use_is_refused_by_name_and_leaves_the_directory_free() {
    let bench = Bench::start().await;
    let dir = tempfile::tempdir().expect("a temporary directory");
    let mut options = options(dir.path());
    options.listen = bench.master.address();
    let told = MasterHandle::start(options.clone()).await.err().expect("refused").to_string();
    assert!(told.contains(&bench.master.address().to_string()), "{told}");
    options.listen.set_port(0);
    MasterHandle::start(options).await.expect("nothing is left of the first try").stop().await;
}

#[tokio::test]
async fn a_store_that_does_not_answer_in_time_is_unknown_and_the_same_key_tells() {
    let bench =
        Bench::start_with(|options| options.store_timeout = Duration::from_millis(100)).await;
    let other = sqlx::sqlite::SqliteConnectOptions::new().filename(bench.master.store().path());
    let mut other = other.connect().await.expect("the file is there");
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.expect("nobody writes");
    assert_eq!(submit(&bench.master, "k").await, Reply::Unknown);
    assert!(!bench.master.status().store_works);
    sqlx::query("ROLLBACK").execute(&mut other).await.expect("begun above");
    other.close().await.expect("an idle connection");
    // The order may have been carried out meanwhile; either way there is one task.
    let settled = async {
        loop {
            if let Reply::Submitted { task, .. } = submit(&bench.master, "k").await {
                return task;
            }
        }
    };
    let task = soon("an answer", settled).await;
    assert_eq!(task.0, 1);
    assert!(bench.master.status().store_works);
}
