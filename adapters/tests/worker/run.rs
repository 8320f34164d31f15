//! Running commands.

use tenure_adapters::driver::worker::{WorkerEnd, WorkerHandle, WorkerOptions};
use tenure_proto::Message;
use tenure_proto::messages as pb;

use crate::support::{Master, end, end_alone, eventually, execute, processes_of, refusal, sh};

#[tokio::test]
async fn a_command_runs_and_its_lines_come_once_in_order_before_its_outcome() {
    let master = Master::start().await;
    let (worker, _dir) = master.worker().await;
    let mut session = master.session().await;
    assert_eq!((session.hello.worker.as_str(), session.hello.slots), ("w-test", 1));
    let outcome = session.run(7, 1, &sh("echo one; echo two >&2; sleep 0.1; printf three")).await;
    assert_eq!(outcome.verdict, pb::Verdict::Succeeded);
    assert_eq!((outcome.details.exit_code, outcome.details.log_lines), (Some(0), 3));
    assert_eq!(outcome.report.ran_by, session.hello.incarnation);
    assert!(outcome.details.started_at_ms > 0);
    assert!(outcome.details.started_at_ms <= outcome.details.ended_at_ms);
    // All that is there when the outcome comes; which stream is read first is open.
    let mut texts = session.texts(7, 1);
    assert_eq!(texts.pop().as_deref(), Some("three"));
    texts.sort();
    assert_eq!(texts, ["one", "two"]);
    let lines = &session.lines[&(7, 1)];
    assert!(lines.iter().map(|line| line.offset).eq(0..3));
    assert!(lines.iter().all(|line| line.is_error == (line.text == "two")));
    end(worker, session).await;
}

#[tokio::test]
async fn a_failure_says_its_exit_code_and_a_signal_its_name() {
    let master = Master::start().await;
    let (worker, _dir) = master.worker().await;
    let mut session = master.session().await;
    let failed = session.run(1, 1, &sh("exit 3")).await;
    assert_eq!((failed.verdict, failed.details.exit_code), (pb::Verdict::Failed, Some(3)));
    assert_eq!(failed.details.message, "exited with code 3");
    let killed = session.run(2, 1, &sh("kill -9 $$")).await;
    assert_eq!((killed.verdict, killed.details.signal), (pb::Verdict::Failed, Some(9)));
    assert_eq!(killed.details.message, "killed by signal 9 (SIGKILL)");
    end(worker, session).await;
}

#[tokio::test]
async fn a_program_that_does_not_exist_fails_for_good_and_is_named() {
    let master = Master::start().await;
    let (worker, _dir) = master.worker().await;
    let mut session = master.session().await;
    let command = vec!["no-such-program-here".to_owned()];
    let body = pb::TaskBody { command, ..Default::default() };
    let outcome = session.run(1, 1, &body).await;
    assert_eq!(outcome.verdict, pb::Verdict::FailedForGood);
    assert_eq!(outcome.details.cause, "spawn_failed");
    let message = &outcome.details.message;
    assert!(message.contains("no-such-program-here"), "{message}");
    assert_eq!(outcome.details.started_at_ms, 0);
    end(worker, session).await;
}

#[tokio::test]
async fn a_body_that_cannot_be_read_fails_for_good() {
    let master = Master::start().await;
    let (worker, _dir) = master.worker().await;
    let mut session = master.session().await;
    let body = vec![0xff; 9].into();
    let broken = pb::ExecuteTaskRequest { task: 5, attempt: 1, body, ..execute(&sh("")) };
    session.order(broken).await;
    let outcome = session.outcome().await;
    assert_eq!(outcome.verdict, pb::Verdict::FailedForGood);
    let message = &outcome.details.message;
    assert!(message.contains("task 5") && message.contains("TaskBody"), "{message}");
    session.acknowledge_outcome(&outcome).await;
    let handler = pb::TaskBody { handler: "train".to_owned(), ..Default::default() };
    let outcome = session.run(6, 1, &handler).await;
    assert_eq!(outcome.verdict, pb::Verdict::FailedForGood);
    assert!(outcome.details.message.contains("`train`"), "{}", outcome.details.message);
    end(worker, session).await;
}

#[tokio::test]
async fn a_stop_ends_everything_that_the_task_started() {
    let master = Master::start().await;
    let (worker, dir) = master.worker().await;
    let mut session = master.session().await;
    let script = "trap '' TERM; sleep 1000 & setsid sleep 1000 & echo up; wait; wait; wait";
    let body = pb::TaskBody { stop_grace_ms: 50, ..sh(script) };
    session.execute(4, 1, &body).await;
    session.line(4, "up").await;
    eventually("both sleeps run", || processes_of(dir.path()).len() >= 3).await;
    session.cancel(4, 1).await;
    let outcome = session.outcome().await;
    assert_eq!(outcome.verdict, pb::Verdict::Stopped);
    assert_eq!(processes_of(dir.path()), [0; 0]);
    assert_eq!(outcome.details.cause, "stopped");
    assert!(outcome.details.message.contains("cancelled"), "{}", outcome.details.message);
    session.acknowledge_outcome(&outcome).await;
    end(worker, session).await;
}

#[tokio::test]
async fn a_task_that_runs_too_long_is_ended_and_says_so() {
    let master = Master::start().await;
    let (worker, _dir) = master.worker().await;
    let mut session = master.session().await;
    let timeout_ms = 150;
    let order =
        pb::ExecuteTaskRequest { task: 4, attempt: 1, timeout_ms, ..execute(&sh("sleep 1000")) };
    session.order(order).await;
    let outcome = session.outcome().await;
    assert_eq!(outcome.verdict, pb::Verdict::TimedOut);
    assert_eq!(outcome.details.cause, "timeout");
    assert!(outcome.details.message.contains("150 ms"), "{}", outcome.details.message);
    session.acknowledge_outcome(&outcome).await;
    end(worker, session).await;
}

#[tokio::test]
async fn result_file_and_reward_reach_the_report() {
    let master = Master::start().await;
    let (worker, dir) = master.worker().await;
    let mut session = master.session().await;
    let script = "echo FINAL_REWARD:94.73; echo '{\"loss\": 0.25}' > $TENURE_RESULT";
    let outcome = session.run(1, 1, &sh(script)).await;
    assert_eq!(outcome.details.reward, "94.73");
    assert_eq!(outcome.details.result_json, r#"{"loss":0.25}"#);
    assert!((outcome.report.final_reward - 94.73).abs() < 1e-9);
    let outcome = session.run(2, 1, &sh("echo '{' > $TENURE_RESULT")).await;
    assert_eq!(outcome.verdict, pb::Verdict::Succeeded);
    assert!(outcome.details.message.contains("not one JSON"), "{}", outcome.details.message);
    let left = std::fs::read_dir(dir.path().join("scratch")).expect("there").count();
    assert_eq!(left, 0, "scratch directories go with their attempts");
    end(worker, session).await;
}

#[tokio::test]
async fn checkpoints_survive_attempts_and_empty_directories_do_not() {
    let master = Master::start().await;
    let (worker, dir) = master.worker().await;
    let mut session = master.session().await;
    let script = "cd $TENURE_CHECKPOINT_DIR; test $TENURE_RESUMES = 1 && exec cat model; echo 41 > model; exit 1";
    let body = pb::TaskBody { resumable: true, ..sh(script) };
    let first = session.run(9, 1, &body).await;
    assert_eq!(first.verdict, pb::Verdict::Failed);
    let order = pb::ExecuteTaskRequest { task: 9, attempt: 2, resumes: true, ..execute(&body) };
    session.order(order).await;
    let second = session.outcome().await;
    assert_eq!((second.verdict, session.texts(9, 2)), (pb::Verdict::Succeeded, vec!["41".into()]));
    session.acknowledge_outcome(&second).await;
    session.run(10, 1, &sh("true")).await;
    let left = std::fs::read_dir(dir.path().join("checkpoints")).expect("there").flatten();
    let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["9"]);
    end(worker, session).await;
}

#[tokio::test]
async fn tasks_see_their_own_gpus_and_environment() {
    let master = Master::start().await;
    let dir = tempfile::tempdir().expect("a directory");
    let options = WorkerOptions { slots: 3, gpus: 3, ..master.options(dir.path()) };
    let worker = WorkerHandle::start(options).await.expect("it starts");
    let mut session = master.session().await;
    assert_eq!((session.hello.slots, session.hello.gpus), (3, 3));
    let show = "echo gpus=$CUDA_VISIBLE_DEVICES; sleep 1000";
    for (task, gpus) in [(1, 2), (2, 1)] {
        session
            .order(pb::ExecuteTaskRequest { task, attempt: 1, gpus, ..execute(&sh(show)) })
            .await;
    }
    session.line(1, "gpus=0,1").await;
    session.line(2, "gpus=2").await;
    session.cancel(1, 1).await;
    let outcome = session.outcome().await;
    session.acknowledge_outcome(&outcome).await;
    let env = [("COLOUR".to_owned(), "blue".to_owned())].into();
    let body = pb::TaskBody {
        env,
        ..sh("echo $COLOUR $TENURE_WORKER $TENURE_ATTEMPT gpus=$CUDA_VISIBLE_DEVICES")
    };
    session.order(pb::ExecuteTaskRequest { task: 3, attempt: 1, gpus: 1, ..execute(&body) }).await;
    session.line(3, "blue w-test 1 gpus=0").await;
    end(worker, session).await;
}

#[tokio::test]
async fn a_second_worker_in_one_directory_is_refused() {
    let master = Master::start().await;
    let (worker, dir) = master.worker().await;
    let refused = refusal(WorkerHandle::start(master.options(dir.path())).await);
    assert!(refused.contains(&dir.path().display().to_string()), "{refused}");
    assert!(refused.contains("in use"), "{refused}");
    end_alone(worker).await;
    let again = WorkerHandle::start(master.options(dir.path())).await.expect("it is free again");
    end_alone(again).await;
}

#[tokio::test]
async fn a_worker_whose_name_is_in_use_ends_and_says_where() {
    let master = Master::start().await;
    let (worker, _dir) = master.worker().await;
    let mut session = master.accept().await;
    let refused = pb::Refusal::NameInUse.into();
    let detail = "w-test runs on host-b".to_owned();
    session.say(pb::HelloAck { refused, detail: detail.clone(), ..Default::default() }).await;
    assert_eq!(worker.closed().await, WorkerEnd::NameInUse(detail));
}

#[tokio::test]
async fn an_attempt_is_never_started_twice() {
    let master = Master::start().await;
    let (worker, _dir) = master.worker().await;
    let mut session = master.session().await;
    session.run(1, 1, &sh("echo once")).await;
    session.say(pb::ExecuteTaskRequest { task: 1, attempt: 1, ..execute(&sh("echo twice")) }).await;
    match session.next().await {
        Message::ExecuteAnswer(answer) => {
            assert_eq!((answer.accepted, answer.decline()), (false, pb::Decline::OldAttempt));
        }
        other => panic!("an answer, not {other:?}"),
    }
    end(worker, session).await;
}
