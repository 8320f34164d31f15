//! What running tasks say of themselves, as the master shows it.

use tenure_core::ids::{Attempt, AttemptRef, TaskId};
use tenure_core::store::Status;
use tenure_proto::{Message, messages as pb};

use crate::support::{Bench, Worker, attempt_of, heartbeat, soon};

async fn tell(worker: &mut Worker, at: pb::AttemptRef, text: &str) {
    let said = pb::Progress { at: Some(at), text: text.to_owned(), at_ms: 7 };
    worker.say(pb::HeartbeatRequest { progress: vec![said], ..heartbeat(1, vec![at]) }).await;
    worker.pick(|message| matches!(message, Message::HeartbeatAck(_)).then_some(())).await;
}

fn shown(bench: &Bench, task: TaskId) -> Option<String> {
    let at = AttemptRef::new(task, Attempt::FIRST);
    bench.master.progress(at).map(|progress| progress.text.to_string())
}

#[tokio::test]
async fn progress_is_shown_while_its_attempt_runs_and_gone_after_its_end() {
    let bench = Bench::start().await;
    let task = bench.submit("k").await;
    let mut worker = bench.worker("w", 1).await;
    let order = worker.ordered().await;
    worker.accept(&order).await;
    tell(&mut worker, attempt_of(&order), "1/2").await;
    assert_eq!(shown(&bench, task).as_deref(), Some("1/2"));
    worker.beat(1, vec![attempt_of(&order)]).await;
    assert_eq!(shown(&bench, task).as_deref(), Some("1/2"), "a heartbeat without news");
    tell(&mut worker, attempt_of(&order), "2/2").await;
    assert_eq!(shown(&bench, task).as_deref(), Some("2/2"));
    worker.succeed(&order, 1).await;
    bench.until(task, Status::Completed).await;
    assert_eq!(shown(&bench, task), None);
}

#[tokio::test]
async fn progress_is_gone_with_its_session() {
    let bench = Bench::start().await;
    let task = bench.submit("k").await;
    let mut worker = bench.worker("w", 1).await;
    let order = worker.ordered().await;
    worker.accept(&order).await;
    tell(&mut worker, attempt_of(&order), "1/2").await;
    // A newer session of the same start takes over, and says nothing of it.
    let mut newer = Worker::connect(bench.master.address()).await;
    let running = vec![attempt_of(&order)];
    newer.hello("w", 1, pb::Inventory { running, finished: Vec::new() }).await;
    worker.ended().await;
    drop(worker);
    bench.shows(|status| status.connections == 1).await;
    let gone = async {
        while shown(&bench, task).is_some() {
            tokio::task::yield_now().await;
        }
    };
    soon("the end of its progress", gone).await;
}
