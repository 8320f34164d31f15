//! Leaving.

use tenure_adapters::driver::worker::WorkerEnd;
use tenure_proto::Message;
use tenure_proto::messages as pb;

use crate::support::{Gate, Master, execute, processes_of, sh};

#[tokio::test]
async fn a_draining_worker_finishes_what_runs_and_takes_nothing_more() {
    let master = Master::start().await;
    let (worker, dir) = master.worker().await;
    let gate = Gate::new(dir.path());
    let mut session = master.session().await;
    session.execute(1, 1, &sh(&format!("echo up; {}; echo down", gate.wait()))).await;
    session.line(1, "up").await;
    worker.drain().await;
    let mut states = worker.changes();
    states.wait_for(|state| state.draining).await.expect("the worker lives");
    session.say(pb::ExecuteTaskRequest { task: 2, attempt: 1, ..execute(&sh("true")) }).await;
    match session.next().await {
        Message::ExecuteAnswer(answer) => assert_eq!(answer.decline(), pb::Decline::Cannot),
        other => panic!("an answer, not {other:?}"),
    }
    gate.open().await;
    let outcome = session.outcome().await;
    assert_eq!(outcome.verdict, pb::Verdict::Succeeded);
    session.acknowledge_outcome(&outcome).await;
    assert_eq!(worker.closed().await, WorkerEnd::Drained);
    assert!(session.read().await.is_none_or(|last| matches!(last, Message::Heartbeat(_))));
}

#[tokio::test]
async fn a_second_drain_gives_back_what_runs() {
    let master = Master::start().await;
    let (worker, dir) = master.worker().await;
    let mut session = master.session().await;
    session.execute(1, 1, &sh("echo up; sleep 1000")).await;
    session.line(1, "up").await;
    worker.drain().await;
    worker.drain().await;
    let outcome = session.outcome().await;
    assert_eq!(outcome.verdict, pb::Verdict::HandedBack);
    assert_eq!(outcome.details.cause, "handed_back");
    session.acknowledge_outcome(&outcome).await;
    assert_eq!(worker.closed().await, WorkerEnd::Drained);
    assert_eq!(processes_of(dir.path()), [0; 0]);
}
