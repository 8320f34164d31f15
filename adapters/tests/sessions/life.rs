//! Sessions of native workers.

use tenure_adapters::driver::master::MasterStatus;
use tenure_core::store::Status;
use tenure_proto::{Message, messages as pb};

use crate::support::{Bench, Worker, attempt_of, heartbeat, hello, soon};

#[tokio::test]
async fn a_task_goes_from_submission_to_acknowledged_outcome() {
    let bench = Bench::start().await;
    let mut worker = Worker::connect(bench.master.address()).await;
    let ack = worker.hello("w", 1, pb::Inventory::default()).await;
    let term = bench.master.status().leads.expect("it leads");
    assert_eq!((ack.epoch, ack.leader), (term.epoch.0, term.leader.0));
    assert_eq!(ack.heartbeat_ms, 1_000);
    assert_eq!(ack.understands, Message::understands());

    let task = bench.submit("k").await;
    let order = worker.ordered().await;
    assert_eq!((order.task, order.attempt, order.epoch), (task.0, 1, term.epoch.0));
    let body = pb::TaskBody::from_bytes(&order.body).expect("a body");
    assert_eq!(body.command, ["true"]);

    worker.accept(&order).await;
    worker.succeed(&order, 1).await;
    let ack = worker.acknowledged().await;
    assert_eq!(ack.at, Some(attempt_of(&order)));
    assert_eq!(ack.verdict(), pb::AckVerdict::Committed);
    bench.until(task, Status::Completed).await;
}

#[tokio::test]
async fn workers_are_shown_with_where_they_are_and_what_they_have() {
    let bench = Bench::start().await;
    let mut worker = bench.worker("gpu-1", 5).await;
    bench.submit("k").await;
    let order = worker.ordered().await;
    worker.accept(&order).await;
    worker.beat(5, vec![attempt_of(&order)]).await;

    let shown = bench.master.workers().await;
    let [one] = shown.as_slice() else { panic!("{shown:?}") };
    assert_eq!((&*one.name, one.incarnation.0, one.documented), ("gpu-1", 5, false));
    assert_eq!((one.slots, one.used_slots), (1, 1));
    assert_eq!((one.hostname.as_deref(), one.pid), (Some("test-host"), Some(77)));
    assert!(one.is_connected() && one.last_heard.is_some());
    let status = bench.shows(|status| status.connected == 1).await;
    assert_eq!((status.connections, status.open, status.queued), (1, 1, 0));

    drop(worker);
    bench.shows(|status| status.connected == 0 && status.connections == 0).await;
    assert!(!bench.master.workers().await[0].is_connected());
}

#[tokio::test]
async fn a_second_live_process_of_a_name_is_refused_and_told_where_the_first_runs() {
    let bench = Bench::start().await;
    let mut first = bench.worker("w", 1).await;
    let mut second = Worker::connect(bench.master.address()).await;
    second.say(hello("w", 2, pb::Inventory::default())).await;
    first.pick(|message| matches!(message, Message::Ping(_)).then_some(())).await;
    first.beat(1, Vec::new()).await;
    let heard = second.ended().await;
    let [Message::HelloAck(refusal)] = heard.as_slice() else { panic!("{heard:?}") };
    assert_eq!(refusal.refused(), pb::Refusal::NameInUse);
    assert!(
        refusal.detail.contains("test-host") && refusal.detail.contains("77"),
        "{}",
        refusal.detail
    );
    first.beat(1, Vec::new()).await;
}

#[tokio::test]
async fn a_new_start_takes_the_name_of_one_that_is_gone() {
    let bench = Bench::start().await;
    drop(bench.worker("w", 1).await);
    bench.shows(|status| status.connected == 0).await;
    bench.worker("w", 2).await.beat(2, Vec::new()).await;
}

#[tokio::test]
async fn a_type_that_is_not_known_is_skipped_if_the_peer_said_hello() {
    let bench = Bench::start().await;
    let mut worker = bench.worker("w", 1).await;
    worker.say_bytes(&[0xCA, 0xFE, 0xBA, 0xBE, 1, 0, 0, 0, 13, 200, 1, 2, 3]).await;
    worker.beat(1, Vec::new()).await;
    assert_eq!(bench.master.complaints().get("unknown_type"), Some(&1));
}

#[tokio::test]
async fn a_worker_is_not_sent_types_that_it_did_not_list() {
    let bench = Bench::start().await;
    let mut worker = Worker::connect(bench.master.address()).await;
    let hello = hello("w", 1, pb::Inventory::default());
    worker.say(pb::Hello { understands: vec![2, 17, 24], ..hello }).await;
    assert!(matches!(worker.hear().await, Message::HelloAck(_)));
    worker.say(heartbeat(1, Vec::new())).await;
    bench.submit("k").await;
    let next = worker.hear().await;
    assert!(matches!(next, Message::Execute(_)), "{next:?} was not listed");
}

#[tokio::test]
async fn a_second_hello_ends_its_connection_alone() {
    let bench = Bench::start().await;
    let mut good = bench.worker("good", 1).await;
    let mut worker = bench.worker("w", 1).await;
    worker.say(hello("w", 1, pb::Inventory::default())).await;
    worker.ended().await;
    good.beat(1, Vec::new()).await;
}

#[tokio::test]
async fn a_newer_session_of_the_same_start_ends_the_older() {
    let bench = Bench::start().await;
    let mut older = bench.worker("w", 1).await;
    let mut newer = bench.worker("w", 1).await;
    older.ended().await;
    newer.beat(1, Vec::new()).await;
    assert_eq!(bench.shows(|status| status.connections == 1).await.connected, 1);
}

#[tokio::test]
async fn a_master_that_stops_sends_its_workers_away_and_frees_port_and_directory() {
    let bench = Bench::start().await;
    let mut worker = bench.worker("w", 1).await;
    let mut fresh = Worker::connect(bench.master.address()).await;
    bench.shows(|status| status.connections == 2).await;
    let (heard, ()) = tokio::join!(worker.ended(), soon("the end", bench.master.stop()));
    assert!(matches!(heard.as_slice(), [Message::NotLeader(_)]), "{heard:?}");
    assert!(fresh.ended().await.is_empty());
    let MasterStatus { leads, stopped, .. } = bench.master.status();
    assert_eq!((leads, stopped), (None, true));
    assert!(bench.master.workers().await.is_empty());
    let mut again = crate::support::options(bench.dir.path());
    again.listen = bench.master.address();
    let again = tenure_adapters::driver::master::MasterHandle::start(again).await;
    again.expect("port and directory are free").stop().await;
}
