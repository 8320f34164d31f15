//! Many tasks at once over one connection.

use std::collections::BTreeMap;

use tenure_core::command::Reply;
use tenure_proto::{Message, messages as pb};

use crate::support::{Bench, Worker, hello, soon, submit};

const CLIENTS: usize = 32;
const TASKS_OF_EACH: usize = 20;

#[tokio::test(flavor = "multi_thread")]
async fn many_tasks_are_each_run_once_and_share_commits() {
    let bench = Bench::start().await;
    let mut worker = Worker::connect(bench.master.address()).await;
    worker.say(pb::Hello { slots: 64, ..hello("w", 1, pb::Inventory::default()) }).await;
    assert!(matches!(worker.hear().await, Message::HelloAck(_)));
    for client in 0..CLIENTS {
        let master = bench.master.clone();
        tokio::spawn(async move {
            for n in 0..TASKS_OF_EACH {
                let reply = submit(&master, &format!("{client}-{n}")).await;
                assert!(matches!(reply, Reply::Submitted { existed: false, .. }), "{reply:?}");
            }
        });
    }
    let work = async {
        let (mut ordered, mut acknowledged) = (BTreeMap::new(), 0);
        while acknowledged < CLIENTS * TASKS_OF_EACH {
            match worker.hear().await {
                Message::Execute(order) => {
                    *ordered.entry(order.task).or_insert(0) += 1;
                    worker.accept(&order).await;
                    worker.succeed(&order, 1).await;
                }
                Message::ResultAck(_) => acknowledged += 1,
                _ => {}
            }
        }
        ordered
    };
    let ordered = soon("the last acknowledgement", work).await;
    assert_eq!(ordered.len(), CLIENTS * TASKS_OF_EACH);
    assert!(ordered.values().all(|times| *times == 1), "{ordered:?}");
    // Two writes a task: what waits while one commit is under way shares the next.
    let (commits, writes) = (bench.master.store().commits(), 2 * CLIENTS * TASKS_OF_EACH);
    assert!(commits < writes as u64 / 2, "{commits} commits for {writes} writes");
}
