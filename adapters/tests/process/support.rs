//! Shared by the tests of the process executor.

use std::ffi::OsString;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tenure_adapters::process::{
    Ending, Executor, Exit, GuardianCommand, Launch, ProcessEvent, Settings, Stream,
};
use tokio::sync::mpsc::UnboundedReceiver;

/// How long an event may take before a test fails. Generous: the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn guardian() -> GuardianCommand {
    GuardianCommand::new(env!("CARGO_BIN_EXE_tenure-guardian"), [] as [&str; 0])
}

pub(crate) async fn executor() -> (Executor, Events) {
    executor_with(Settings::default()).await
}

pub(crate) async fn executor_with(settings: Settings) -> (Executor, Events) {
    let (executor, events) = Executor::start(guardian(), settings).await.expect("it starts");
    (executor, Events(events))
}

/// An id that no other process on this machine has in its environment.
pub(crate) fn unique_id() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_nanos();
    format!("test-{}-{now}-{next}", std::process::id())
}

pub(crate) fn launch(key: u64, id: &str, program: &str, args: &[&str]) -> Launch {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Launch {
        key,
        program: program.into(),
        args: args.iter().map(OsString::from).collect(),
        env: vec![("PATH".into(), path), ("TENURE_TASK_ID".into(), id.into())],
        cwd: "/".into(),
    }
}

pub(crate) fn sh(key: u64, id: &str, script: &str) -> Launch {
    launch(key, id, "sh", &["-c", script])
}

pub(crate) struct Events(pub(crate) UnboundedReceiver<ProcessEvent>);

/// Everything that one command did.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) pid: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) endings: Vec<Ending>,
    pub(crate) longest: usize,
    pub(crate) exit: Option<Exit>,
    pub(crate) killed: u32,
    pub(crate) failure: Option<String>,
}

impl Events {
    pub(crate) async fn next(&mut self) -> ProcessEvent {
        let event = tokio::time::timeout(PATIENCE, self.0.recv()).await;
        event.expect("an event comes in time").expect("the executor lives")
    }

    pub(crate) async fn started(&mut self) -> i32 {
        match self.next().await {
            ProcessEvent::Started { pid, .. } => pid,
            other => panic!("started, not {other:?}"),
        }
    }

    /// Waits for a line of stdout.
    pub(crate) async fn line(&mut self) -> String {
        loop {
            if let ProcessEvent::Line { line, .. } = self.next().await {
                return String::from_utf8(line.into_bytes()).expect("text");
            }
        }
    }

    /// Follows one command to its end.
    pub(crate) async fn story(&mut self) -> Story {
        let mut story = Story::default();
        loop {
            match self.next().await {
                ProcessEvent::Started { pid, .. } => story.pid = Some(pid),
                ProcessEvent::Line { line, .. } => {
                    story.endings.push(line.ending);
                    story.longest = story.longest.max(line.bytes.len());
                    line.push_to(match line.stream {
                        Stream::Stdout => &mut story.stdout,
                        Stream::Stderr => &mut story.stderr,
                    });
                }
                ProcessEvent::FailedToStart { error, .. } => {
                    story.failure = Some(error);
                    return story;
                }
                ProcessEvent::Ended { exit, killed, survivors, .. } => {
                    assert_eq!(survivors, 0);
                    (story.exit, story.killed) = (Some(exit), killed);
                    return story;
                }
                ProcessEvent::GuardianLost { error, .. } => panic!("{error}"),
            }
        }
    }
}

/// The processes that carry a task's id in their environment.
pub(crate) fn left_of(id: &str) -> Vec<i32> {
    let wanted = format!("TENURE_TASK_ID={id}");
    let pids = fs::read_dir("/proc").expect("Linux").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    })
    .collect()
}

/// How long it took until nothing of the task was left.
pub(crate) fn wait_until_none_left(id: &str, limit: Duration) -> Duration {
    let start = Instant::now();
    loop {
        let left = left_of(id);
        if left.is_empty() {
            return start.elapsed();
        }
        assert!(start.elapsed() < limit, "after {limit:?} these are left of {id}: {left:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until at least so many processes of the task are there.
pub(crate) fn wait_until_there_are(id: &str, count: usize) {
    let start = Instant::now();
    while left_of(id).len() < count {
        assert!(start.elapsed() < PATIENCE, "{id} has {:?}, not {count}", left_of(id));
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn parent_of(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the process lives");
    let (_, rest) = stat.rsplit_once(')').expect("a name");
    rest.split_whitespace().nth(1).expect("a parent").parse().expect("a number")
}

pub(crate) fn assert_none_left(id: &str) {
    assert_eq!(left_of(id), [0; 0], "these are left of {id}");
}
