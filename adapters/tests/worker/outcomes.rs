//! Outcomes: told until they are acknowledged.

use tenure_adapters::driver::worker::{WorkerHandle, WorkerOptions};

use crate::support::{Master, end, sh};

#[tokio::test]
async fn an_outcome_without_acknowledgement_is_told_again_in_the_next_session() {
    let master = Master::start().await;
    let (worker, _dir) = master.worker().await;
    let mut first = master.session().await;
    first.execute(1, 1, &sh("exit 4")).await;
    let told = first.outcome().await;
    drop(first);
    let mut second = master.session().await;
    let inventory = second.hello.inventory.take().expect("an inventory");
    assert_eq!(inventory.finished.len(), 1);
    assert!(inventory.running.is_empty());
    let again = second.outcome().await;
    assert_eq!((again.details.exit_code, again.report.ran_by), (Some(4), told.report.ran_by));
    second.acknowledge_outcome(&again).await;
    second.beats(2).await;
    assert!(second.last_beat.as_ref().is_some_and(|beat| beat.finished.is_empty()));
    drop(second);
    let third = master.session().await;
    assert!(third.hello.inventory.as_ref().is_some_and(|held| held.finished.is_empty()));
    end(worker, third).await;
}

#[tokio::test]
async fn the_outcome_of_a_task_that_ends_while_no_master_is_there_is_told_later() {
    let master = Master::start().await;
    let (worker, dir) = master.worker().await;
    let gate = crate::support::Gate::new(dir.path());
    let mut first = master.session().await;
    let script = format!("echo up; {}; echo down", gate.wait());
    first.execute(1, 1, &sh(&script)).await;
    first.line(1, "up").await;
    drop(first);
    // Not answered: for the worker there is no master.
    let silent = master.accept().await;
    gate.open().await;
    let mut states = worker.changes();
    states.wait_for(|state| state.unacknowledged == 1).await.expect("the worker lives");
    drop(silent);
    let mut second = master.session_from(&[(1, 1, 1)]).await;
    let outcome = second.outcome().await;
    assert_eq!(outcome.details.log_lines, 2);
    second.acknowledge_outcome(&outcome).await;
    assert_eq!(second.lines_of(1, 1, 1).await, ["down"]);
    end(worker, second).await;
}

#[tokio::test]
async fn every_known_master_is_tried() {
    let gone = Master::start().await.address();
    let master = Master::start().await;
    let dir = tempfile::tempdir().expect("a directory");
    let masters = vec![gone, master.address()];
    let options = WorkerOptions { masters, ..master.options(dir.path()) };
    let worker = WorkerHandle::start(options).await.expect("it starts");
    let mut session = master.session().await;
    session.run(1, 1, &sh("true")).await;
    end(worker, session).await;
}
