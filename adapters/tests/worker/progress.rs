//! What tasks say of themselves while they run.

use crate::support::{Gate, Master, end, sh};

#[tokio::test]
async fn a_progress_line_comes_with_a_heartbeat_once_a_session() {
    let master = Master::start().await;
    let (worker, dir) = master.worker().await;
    let gate = Gate::new(dir.path());
    let mut first = master.session().await;
    first.execute(1, 1, &sh(&format!("echo progress 1/2; {}; sleep 1000", gate.wait()))).await;
    first.progress_of(1, "1/2").await;
    first.beats(2).await;
    assert_eq!(first.progress, [(1, "1/2".to_owned())], "it has not changed since");
    drop(first);
    let mut second = master.session().await;
    second.progress_of(1, "1/2").await;
    end(worker, second).await;
}

#[tokio::test]
async fn the_progress_file_is_read_while_the_task_runs_and_goes_before_lines() {
    let master = Master::start().await;
    let (worker, dir) = master.worker().await;
    let gate = Gate::new(dir.path());
    let write = "echo file 1 > $TENURE_PROGRESS";
    let then = "echo progress line; echo file 2 >> $TENURE_PROGRESS; echo said";
    let mut session = master.session().await;
    let script = format!("{write}; {}; {then}; sleep 1000", gate.wait());
    session.execute(1, 1, &sh(&script)).await;
    session.progress_of(1, "file 1").await;
    gate.open().await;
    session.line(1, "said").await;
    session.progress_of(1, "file 2").await;
    let texts: Vec<&str> = session.progress.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["file 1", "file 2"]);
    end(worker, session).await;
}
