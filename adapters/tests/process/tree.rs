//! Nothing of a task is left after its end, whatever its processes do and whoever is killed.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{
    Events, assert_none_left, executor, guardian, left_of, parent_of, sh, unique_id,
    wait_until_none_left, wait_until_there_are,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tenure_adapters::process::{Executor, Exit, ProcessEvent, Settings};

/// Children that have children, ignore TERM, leave the session, fork twice.
const STUBBORN: &str = r#"
trap '' TERM
(trap '' TERM; sleep 1000 & sleep 1000) &
setsid sh -c 'trap "" TERM; sleep 1000 & sleep 1000' &
(setsid sh -c 'sleep 1000 & trap "" TERM; wait; sleep 1000' &) 
python3 -c 'import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(2):
    if os.fork(): time.sleep(0.01); os._exit(0)
    os.setsid()
time.sleep(1000)' &
while :; do sleep 1000; done
"#;

/// What stays of the above: three shells, six sleeps, the last Python process.
const STUBBORN_COUNT: usize = 10;

fn send(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).expect("it lives");
}

async fn end_of(events: &mut Events, wanted: u64) -> Exit {
    loop {
        if let ProcessEvent::Ended { key, exit, survivors, .. } = events.next().await
            && key == wanted
        {
            assert_eq!(survivors, 0);
            return exit;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_that_ignores_term_is_gone_after_the_grace() {
    let (executor, mut events) = executor().await;
    let id = unique_id();
    executor.launch(sh(1, &id, STUBBORN));
    events.started().await;
    wait_until_there_are(&id, STUBBORN_COUNT);
    let start = Instant::now();
    executor.stop(1, Duration::from_millis(500));
    assert_eq!(end_of(&mut events, 1).await, Exit::Signal(9));
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(500) && took < Duration::from_secs(3), "{took:?}");
    assert_none_left(&id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn term_reaches_every_descendant_and_the_end_comes_without_waiting_for_the_grace() {
    let (executor, mut events) = executor().await;
    let id = unique_id();
    let script = r#"setsid sh -c 'trap "echo child; exit" TERM; echo up; while :; do sleep 0.05; done' &
        trap 'wait; exit 5' TERM; while :; do sleep 0.05; done"#;
    executor.launch(sh(1, &id, script));
    assert_eq!(events.line().await, "up");
    let start = Instant::now();
    executor.stop(1, Duration::from_secs(50));
    let story = events.story().await;
    assert_eq!((story.stdout.as_slice(), story.exit), (&b"child\n"[..], Some(Exit::Code(5))));
    assert!(start.elapsed() < Duration::from_secs(10));
    assert_none_left(&id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_may_use_the_grace_although_the_command_has_ended() {
    let (executor, mut events) = executor().await;
    let id = unique_id();
    let script = r#"sh -c 'trap "sleep 0.5; echo saved; exit" TERM; echo up; while :; do sleep 0.05; done'
        echo not reached"#;
    executor.launch(sh(1, &id, script));
    assert_eq!(events.line().await, "up");
    executor.stop(1, Duration::from_secs(50));
    let story = events.story().await;
    assert_eq!((story.stdout.as_slice(), story.exit), (&b"saved\n"[..], Some(Exit::Signal(15))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_stop_shortens_the_grace() {
    let (executor, mut events) = executor().await;
    let id = unique_id();
    executor.launch(sh(1, &id, STUBBORN));
    wait_until_there_are(&id, STUBBORN_COUNT);
    executor.stop(1, Duration::from_secs(1000));
    executor.stop(1, Duration::ZERO);
    assert_eq!(end_of(&mut events, 1).await, Exit::Signal(9));
    assert_none_left(&id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_right_after_the_launch_leaves_none() {
    let (executor, mut events) = executor().await;
    let ids: Vec<String> = (0..100).map(|_| unique_id()).collect();
    for (key, id) in (0..).zip(&ids) {
        executor.launch(sh(key, id, "sleep 1000 & setsid sleep 1000 & wait"));
        executor.stop(key, if key % 2 == 0 { Duration::ZERO } else { Duration::from_secs(20) });
    }
    let mut ended = 0;
    while ended < ids.len() {
        match events.next().await {
            ProcessEvent::Ended { key, exit, .. } => {
                assert!(matches!(exit, Exit::Signal(9 | 15)), "{key}: {exit:?}");
                assert_none_left(&ids[key as usize]);
                ended += 1;
            }
            ProcessEvent::Started { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bomb_of_forks_is_gone_after_the_end() {
    let (executor, mut events) = executor().await;
    let id = unique_id();
    // Each keeps about two alive that do the same in sessions of their own.
    let script = r#"f() { [ $1 -gt 6 ] && sleep 1000; setsid sh -c "$F" sh $(($1+1)) & setsid sh -c "$F" sh $(($1+1)) & wait; }"#;
    let mut launch = sh(1, &id, &format!("{script}; f 0"));
    launch.env.push(("F".into(), format!("{script}; f $1").into()));
    executor.launch(launch);
    wait_until_there_are(&id, 40);
    executor.stop(1, Duration::ZERO);
    end_of(&mut events, 1).await;
    assert_none_left(&id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_a_task_init_ends_its_task_and_no_other() {
    let (executor, mut events) = executor().await;
    let (id, other) = (unique_id(), unique_id());
    executor.launch(sh(2, &other, "exec sleep 1000"));
    events.started().await;
    executor.launch(sh(1, &id, STUBBORN));
    let pid = events.started().await;
    wait_until_there_are(&id, STUBBORN_COUNT);
    send(parent_of(pid), Signal::SIGKILL);
    assert_eq!(end_of(&mut events, 1).await, Exit::Lost);
    assert_none_left(&id);
    assert_eq!(left_of(&other).len(), 1);
    executor.close().await;
    assert_none_left(&other);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_outlive_a_killed_guardian_and_launches_start_another() {
    let (executor, mut events) = executor().await;
    let (id, next) = (unique_id(), unique_id());
    executor.launch(sh(1, &id, STUBBORN));
    let pid = events.started().await;
    wait_until_there_are(&id, STUBBORN_COUNT);
    send(parent_of(parent_of(pid)), Signal::SIGKILL);
    match events.next().await {
        ProcessEvent::GuardianLost { error, running } => {
            assert!(error.contains("signal: 9"), "{error}");
            assert_eq!(running, [1]);
        }
        other => panic!("{other:?}"),
    }
    executor.launch(sh(2, &next, "exit 4"));
    assert_eq!(end_of(&mut events, 2).await, Exit::Code(4));
    executor.stop(1, Duration::ZERO);
    assert_eq!(end_of(&mut events, 1).await, Exit::Signal(9));
    assert_none_left(&id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn even_init_and_guardian_killed_together_leave_none() {
    let (executor, mut events) = executor().await;
    let id = unique_id();
    executor.launch(sh(1, &id, STUBBORN));
    let pid = events.started().await;
    wait_until_there_are(&id, STUBBORN_COUNT);
    let init = parent_of(pid);
    let guardian = parent_of(init);
    // Stopped first, so that it cannot act between the two.
    send(guardian, Signal::SIGSTOP);
    send(init, Signal::SIGKILL);
    send(guardian, Signal::SIGKILL);
    assert_eq!(end_of(&mut events, 1).await, Exit::Lost);
    assert_none_left(&id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signals_to_guardian_and_init_that_can_be_blocked_are() {
    let (executor, mut events) = executor().await;
    let id = unique_id();
    executor.launch(sh(1, &id, "echo up; sleep 0.3; exit 6"));
    let pid = events.started().await;
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        send(parent_of(pid), signal);
        send(parent_of(parent_of(pid)), signal);
    }
    assert_eq!(end_of(&mut events, 1).await, Exit::Code(6));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closing_and_dropping_an_executor_kill_what_it_runs() {
    let id = unique_id();
    let (first, mut events) = executor().await;
    first.launch(sh(1, &id, STUBBORN));
    events.started().await;
    wait_until_there_are(&id, STUBBORN_COUNT);
    first.close().await;
    assert_none_left(&id);
    let (second, mut events) = executor().await;
    second.launch(sh(1, &id, STUBBORN));
    events.started().await;
    drop(second);
    tokio::task::spawn_blocking(move || wait_until_none_left(&id, Duration::from_secs(5)))
        .await
        .expect("none is left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_without_guardian_still_ends_with_its_executor() {
    let id = unique_id();
    let (executor, mut events) = executor().await;
    executor.launch(sh(1, &id, STUBBORN));
    let pid = events.started().await;
    wait_until_there_are(&id, STUBBORN_COUNT);
    send(parent_of(parent_of(pid)), Signal::SIGKILL);
    assert!(matches!(events.next().await, ProcessEvent::GuardianLost { .. }));
    drop(executor);
    wait_until_none_left(&id, Duration::from_secs(5));
}

#[test]
fn a_worker_killed_with_sigkill_leaves_nothing_within_a_second() {
    let id = unique_id();
    let mut worker = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "tree::worker_to_be_killed", "--ignored", "--nocapture"])
        .env("WORKER_TO_BE_KILLED", &id)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut output = BufReader::new(worker.stdout.take().expect("piped")).lines();
    let up = output.find(|line| line.as_ref().is_ok_and(|line| line.contains("worker is up")));
    assert!(up.is_some());
    wait_until_there_are(&id, STUBBORN_COUNT * 2);
    worker.kill().expect("it lives");
    worker.wait().expect("ours");
    let took = wait_until_none_left(&id, Duration::from_secs(10));
    assert!(took < Duration::from_secs(1), "{took:?}");
    // The pipe was inherited by the guardian too: its end says that it has gone.
    assert!(output.all(|line| line.is_ok()));
}

/// Not a test: the worker of the one above, in a process of its own.
#[test]
#[ignore = "started by another test"]
fn worker_to_be_killed() {
    let Ok(id) = std::env::var("WORKER_TO_BE_KILLED") else { return };
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let started = Executor::start(guardian(), Settings::default()).await;
        let (executor, events) = started.expect("it starts");
        let mut events = Events(events);
        executor.launch(sh(1, &id, STUBBORN));
        executor.launch(sh(2, &id, STUBBORN));
        events.started().await;
        events.started().await;
        println!("worker is up");
        std::future::pending::<()>().await
    });
}
