//! Log lines: none lost, none twice, and in nobody's way.

use std::time::Duration;

use tenure_adapters::driver::worker::{WorkerHandle, WorkerOptions};
use tenure_proto::messages as pb;

use crate::support::{Gate, Master, end, sh};

#[tokio::test]
async fn a_lost_connection_loses_no_line_and_doubles_none() {
    let master = Master::start().await;
    let (worker, dir) = master.worker().await;
    let gate = Gate::new(dir.path());
    let count = "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done";
    let script = format!("{count}; {}; echo end", gate.wait());
    let mut first = master.session().await;
    first.execute(1, 1, &sh(&script)).await;
    first.lines_of(1, 1, 1).await;
    let mut stored = first.lines.remove(&(1, 1)).expect("some lines");
    drop(first);
    let next = stored.len() as u64;
    assert!(next < 3001, "the connection ends in the middle");
    let mut second = master.session_from(&[(1, 1, next)]).await;
    let inventory = second.hello.inventory.take().expect("an inventory");
    assert_eq!(inventory.running, [pb::AttemptRef { task: 1, attempt: 1 }]);
    gate.open().await;
    second.line(1, "end").await;
    let outcome = second.outcome().await;
    assert_eq!(outcome.details.log_lines, 3001);
    second.acknowledge_outcome(&outcome).await;
    stored.extend(second.lines.remove(&(1, 1)).expect("the rest"));
    let offsets: Vec<u64> = stored.iter().map(|line| line.offset).collect();
    let broken = offsets.windows(2).find(|pair| pair[1] != pair[0] + 1);
    assert_eq!((broken, offsets.len()), (None, 3001), "once, in order, without a gap; {next}");
    assert!(stored[..3000].iter().enumerate().all(|(n, line)| line.text == format!("line {n}")));
    end(worker, second).await;
}

#[tokio::test]
async fn a_master_that_stores_no_logs_holds_up_neither_task_nor_heartbeats() {
    let master = Master::start().await;
    let (worker, _dir) = master.worker().await;
    let mut session = master.session().await;
    session.acks_logs = false;
    // 4 MB: more than window, pipes and budgets hold together.
    let script = "yes 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde | head -n 60000; echo end >&2";
    session.execute(1, 1, &sh(script)).await;
    let outcome = session.outcome().await;
    assert_eq!((outcome.verdict, outcome.details.log_lines), (pb::Verdict::Succeeded, 60_001));
    let bytes: usize = session.lines[&(1, 1)].iter().map(|line| line.text.len()).sum();
    assert!(bytes < 2 << 20, "{bytes} bytes sent without an acknowledgement");
    session.beats(2).await;
    session.acknowledge_outcome(&outcome).await;
    // It stores them after all: all come, though the outcome is long acknowledged.
    drop(session);
    let mut second = master.session_from(&[(1, 1, 0)]).await;
    let lines = second.lines_of(1, 1, 60_001).await;
    assert!(second.lines[&(1, 1)].iter().map(|line| line.offset).eq(0..60_001));
    assert!(lines.iter().any(|line| line == "end"));
    end(worker, second).await;
}

#[tokio::test]
async fn lines_that_are_never_acknowledged_are_sent_again() {
    let master = Master::start().await;
    let dir = tempfile::tempdir().expect("a directory");
    let mut settings = tenure_core::policy::Settings::DEFAULT;
    settings.result_timeout = tenure_core::time::Millis(200);
    let policy = tenure_core::policy::Policy::new(settings).expect("safe");
    let options = WorkerOptions { policy, ..master.options(dir.path()) };
    let worker = WorkerHandle::start(options).await.expect("it starts");
    let mut session = master.session().await;
    session.acks_logs = false;
    session.execute(1, 1, &sh("echo here; sleep 1000")).await;
    assert_eq!(session.lines_of(1, 1, 2).await, ["here", "here"]);
    assert!(session.lines[&(1, 1)].iter().all(|line| line.offset == 0));
    end(worker, session).await;
}

#[tokio::test]
async fn a_log_that_the_master_has_leaves_the_disk_with_its_outcome() {
    let master = Master::start().await;
    let (worker, dir) = master.worker().await;
    let mut session = master.session().await;
    session.run(1, 1, &sh("echo kept for a while")).await;
    session.lines_of(1, 1, 1).await;
    end(worker, session).await;
    // A later start finds nothing to send.
    let again = WorkerHandle::start(master.options(dir.path())).await.expect("it starts");
    let mut session = master.session().await;
    session.beats(2).await;
    assert!(session.lines.is_empty());
    end(again, session).await;
}

#[tokio::test]
async fn a_line_over_the_cap_comes_in_pieces_that_join() {
    let master = Master::start().await;
    let dir = tempfile::tempdir().expect("a directory");
    let options = WorkerOptions { line_cap: 10, ..master.options(dir.path()) };
    let worker = WorkerHandle::start(options).await.expect("it starts");
    let mut session = master.session().await;
    let outcome = session.run(1, 1, &sh("echo 0123456789abcdef; echo FINAL_REWARD:1")).await;
    let lines = session.lines_of(1, 1, 4).await;
    assert_eq!(lines[..2], ["0123456789", "abcdef"]);
    let continues: Vec<bool> = session.lines[&(1, 1)].iter().map(|line| line.continues).collect();
    assert_eq!(continues, [true, false, true, false]);
    assert_eq!(outcome.details.reward, "", "a piece of a line is no line");
    end(worker, session).await;
}

#[tokio::test]
async fn a_leaving_worker_waits_for_its_last_lines() {
    let master = Master::start().await;
    let (worker, _dir) = master.worker().await;
    let mut session = master.session().await;
    session.acks_logs = false;
    session.execute(1, 1, &sh("echo last")).await;
    let outcome = session.outcome().await;
    session.acknowledge_outcome(&outcome).await;
    worker.drain().await;
    let early = tokio::time::timeout(Duration::from_millis(100), worker.closed()).await;
    assert!(early.is_err(), "its lines are not stored");
    let at = Some(pb::AttemptRef { task: 1, attempt: 1 });
    session.say(pb::LogAck { at, next_offset: 1, closed: false }).await;
    worker.closed().await;
}
