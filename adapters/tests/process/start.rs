//! How a start can fail, how an end is told, and what a command sees.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::{Events, Story, executor, launch, sh, unique_id};
use tenure_adapters::process::{
    Executor, Exit, Fault, GuardianCommand, Launch, ProcessEvent, Settings,
};

async fn run(launch: Launch) -> Story {
    let (executor, mut events) = executor().await;
    executor.launch(launch);
    let story = events.story().await;
    executor.close().await;
    story
}

async fn run_sh(script: &str) -> Story {
    run(sh(1, &unique_id(), script)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exit_codes_and_signals_are_told_apart() {
    for (script, exit) in [
        ("exit 0", Exit::Code(0)),
        ("exit 255", Exit::Code(255)),
        ("exit 137", Exit::Code(137)),
        ("kill -9 $$", Exit::Signal(9)),
        ("kill -TERM $$", Exit::Signal(15)),
        ("kill -SEGV $$", Exit::Signal(11)),
    ] {
        let story = run_sh(script).await;
        assert_eq!((story.exit, story.failure), (Some(exit), None), "{script}");
        assert!(story.pid.is_some());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_executed_is_a_failed_start_and_no_exit_code() {
    let dir = tempfile::tempdir().expect("a directory");
    let plain = dir.path().join("plain");
    fs::write(&plain, "#!/bin/sh\n").expect("written");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).expect("ours");
    let junk = dir.path().join("junk");
    fs::write(&junk, "no program").expect("written");
    fs::set_permissions(&junk, fs::Permissions::from_mode(0o755)).expect("ours");
    let path = |path: &std::path::Path| path.to_str().expect("text").to_owned();
    for (program, expected) in [
        ("no-such-program".to_owned(), "No such file or directory"),
        ("/no/such/program".to_owned(), "No such file or directory"),
        (path(&plain), "Permission denied"),
        (path(&junk), "Exec format error"),
        (path(dir.path()), "Permission denied"),
    ] {
        let story = run(launch(1, &unique_id(), &program, &[])).await;
        let failure =
            story.failure.unwrap_or_else(|| panic!("{program} started: {:?}", story.exit));
        assert!(failure.contains(&program) && failure.contains(expected), "{failure}");
        assert_eq!((story.exit, story.pid), (None, None));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_working_directory_is_named() {
    let missing = Launch { cwd: "/no/such/dir".into(), ..sh(1, &unique_id(), "true") };
    let failure = run(missing).await.failure.expect("it cannot start");
    assert!(failure.contains("working directory `/no/such/dir`"), "{failure}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_longer_than_the_kernel_takes_fail_by_name() {
    let long = "x".repeat(3 << 20);
    let story = run(launch(1, &unique_id(), "true", &[&long])).await;
    let failure = story.failure.expect("it cannot start");
    assert!(failure.contains("Argument list too long"), "{}", &failure[..200]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_sees_its_arguments_environment_and_directory_and_nothing_else() {
    let dir = tempfile::tempdir().expect("a directory");
    let cwd = dir.path().canonicalize().expect("there");
    let script =
        r#"printf '%s|' "$@"; pwd; env | grep -v '^PWD=\|^_=\|^SHLVL=\|^TENURE_PROCESS_TAG='"#;
    let mut command = launch(1, "t1", "/bin/sh", &["-c", script, "sh", "a b", "", "ü"]);
    command.cwd.clone_from(&cwd);
    command.env = vec![("PATH".into(), "/usr/bin:/bin".into()), ("A".into(), "b=c\nd".into())];
    let story = run(command).await;
    let text = String::from_utf8(story.stdout).expect("text");
    let (first, env) = text.split_once('\n').expect("two lines");
    assert_eq!(first, format!("a b||ü|{}", cwd.display()));
    let mut env: Vec<&str> = env.lines().collect();
    env.sort_unstable();
    assert_eq!(env, ["A=b=c", "PATH=/usr/bin:/bin", "d"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_has_the_three_standard_descriptors_and_no_other() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    // One that the worker failed to mark: inherited by the guardian, not by the command.
    let leaked = nix::unistd::dup(&listener).expect("a descriptor");
    nix::fcntl::fcntl(&leaked, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()))
        .expect("ours");
    // By name: a listing would show the directory that it has open.
    let script = "for n in $(seq 0 200); do [ -e /proc/$$/fd/$n ] && printf '%s ' $n; done; :";
    let story = run_sh(script).await;
    assert_eq!(String::from_utf8_lossy(&story.stdout), "0 1 2 ");
    // Held by nobody else, the port is free at once.
    let address = listener.local_addr().expect("bound");
    let (executor, mut events) = executor().await;
    executor.launch(sh(1, &unique_id(), "echo up; exec sleep 1000"));
    assert_eq!(events.line().await, "up");
    drop((listener, leaked));
    // A guardian that another test is just starting may hold it for a moment.
    let start = std::time::Instant::now();
    while let Err(error) = std::net::TcpListener::bind(address) {
        assert!(start.elapsed().as_secs() < 5, "guardian or command holds the port: {error}");
        tokio::task::yield_now().await;
    }
    executor.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signals_have_their_default_effect_in_a_command() {
    let story = run_sh("grep -E 'Sig(Blk|Ign)' /proc/self/status | tr -d '\\n\\t '").await;
    assert_eq!(
        String::from_utf8_lossy(&story.stdout),
        "SigBlk:0000000000000000SigIgn:0000000000000000"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_is_no_guardian_is_refused_with_the_remedy() {
    let stranger = vec!["-c".to_owned(), "echo hello >&0".to_owned()];
    for (program, args) in [("/no/such/guardian", vec![]), ("true", vec![]), ("sh", stranger)] {
        let command = GuardianCommand::new(program, args);
        let error = Executor::start(command, Settings::default()).await.expect_err("no guardian");
        let text = error.to_string();
        assert!(text.contains(program) && text.contains("tenure-guardian"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guardian_without_descriptors_refuses_tasks_and_takes_them_again_later() {
    // Each task that runs takes one; a new one takes three for a moment.
    let program = env!("CARGO_BIN_EXE_tenure-guardian");
    let script = format!("ulimit -n 16; exec {program}");
    let command = GuardianCommand::new("sh", ["-c", &script]);
    let started = Executor::start(command, Settings::default()).await;
    let (executor, events) = started.expect("it starts");
    let mut events = Events(events);
    for key in 0..30 {
        executor.launch(launch(key, &unique_id(), "sleep", &["1000"]));
    }
    let (mut running, mut refused) = (Vec::new(), 0);
    while running.len() + refused < 30 {
        match events.next().await {
            ProcessEvent::Started { key, .. } => running.push(key),
            ProcessEvent::FailedToStart { fault, error, .. } => {
                assert_eq!(fault, Fault::Worker);
                assert!(error.contains("Too many open files"), "{error}");
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(running.len() >= 5 && refused >= 10, "{running:?}, {refused}");
    for key in &running {
        executor.stop(*key, std::time::Duration::ZERO);
        assert_eq!(events.story().await.exit, Some(Exit::Signal(9)));
    }
    executor.launch(sh(99, &unique_id(), "exit 9"));
    assert_eq!(events.story().await.exit, Some(Exit::Code(9)));
    executor.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_commands_at_once_all_end_with_their_own_output() {
    let (executor, mut events) = executor().await;
    for key in 0..200 {
        executor.launch(sh(key, &unique_id(), &format!("echo {key}; exit {}", key % 256)));
    }
    let mut lines = std::collections::BTreeMap::new();
    let mut started = std::collections::BTreeSet::new();
    let mut ended = 0;
    while ended < 200 {
        match events.next().await {
            ProcessEvent::Line { key, line } => {
                assert!(started.contains(&key), "the start of {key} comes before its output");
                assert_eq!(lines.insert(key, line.into_bytes()), None, "{key} has one line");
            }
            ProcessEvent::Ended { key, exit, .. } => {
                assert_eq!(exit, Exit::Code((key % 256) as i32));
                assert_eq!(lines[&key], key.to_string().as_bytes());
                ended += 1;
            }
            ProcessEvent::Started { key, .. } => assert!(started.insert(key)),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_can_be_used_again_after_its_last_event() {
    let (executor, mut events) = executor().await;
    for code in 0..50 {
        executor.launch(sh(1, &unique_id(), &format!("exit {code}")));
        assert_eq!(events.story().await.exit, Some(Exit::Code(code)));
    }
}
