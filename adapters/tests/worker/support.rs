//! A master that does what a test says, and workers for it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use tempfile::TempDir;
use tenure_adapters::driver::worker::{StartError, WorkerHandle, WorkerOptions};
use tenure_adapters::process::GuardianCommand;
use tenure_proto::messages as pb;
use tenure_proto::{Decoded, FrameCodec, Message};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::codec::Framed;

/// How long something may take before a test fails. Generous: the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The term of the scripted master.
pub(crate) const EPOCH: u64 = 3;
pub(crate) const LEADER: u64 = 77;

pub(crate) fn guardian() -> GuardianCommand {
    GuardianCommand::new(env!("CARGO_BIN_EXE_tenure-guardian"), [] as [&str; 0])
}

/// A master's listener. Its port stays the same over all sessions.
pub(crate) struct Master {
    listener: TcpListener,
}

impl Master {
    pub(crate) async fn start() -> Master {
        Master { listener: TcpListener::bind("127.0.0.1:0").await.expect("a free port") }
    }

    pub(crate) fn address(&self) -> String {
        self.listener.local_addr().expect("bound").to_string()
    }

    /// A worker of this master with one slot, in a directory that goes with the test.
    pub(crate) async fn worker(&self) -> (WorkerHandle, TempDir) {
        let dir = tempfile::tempdir().expect("a directory");
        let options = self.options(dir.path());
        (WorkerHandle::start(options).await.expect("it starts"), dir)
    }

    pub(crate) fn options(&self, dir: &Path) -> WorkerOptions {
        let name = "w-test".to_owned();
        let masters = vec![self.address()];
        WorkerOptions { name, ..WorkerOptions::new(masters, dir.to_owned(), guardian()) }
    }

    /// The next connection, its hello read.
    pub(crate) async fn accept(&self) -> Session {
        let accepted = tokio::time::timeout(PATIENCE, self.listener.accept()).await;
        let (stream, _) = accepted.expect("a worker comes in time").expect("accepted");
        stream.set_nodelay(true).expect("connected");
        let mut session = Session {
            frames: Framed::new(stream, FrameCodec::default()),
            hello: pb::Hello::default(),
            last_beat: None,
            beats: 0,
            progress: Vec::new(),
            lines: BTreeMap::new(),
            acks_logs: true,
            until: tokio::time::Instant::now() + PATIENCE,
        };
        match session.read().await {
            Some(Message::Hello(hello)) => session.hello = hello,
            other => panic!("hello, not {other:?}"),
        }
        session
    }

    /// The next connection, acknowledged.
    pub(crate) async fn session(&self) -> Session {
        self.session_from(&[]).await
    }

    /// The next connection, acknowledged; logs go on there.
    pub(crate) async fn session_from(&self, positions: &[(u64, u32, u64)]) -> Session {
        let mut session = self.accept().await;
        session.acknowledge(positions).await;
        session
    }
}

/// One connection of a worker.
pub(crate) struct Session {
    frames: Framed<TcpStream, FrameCodec>,
    pub(crate) hello: pb::Hello,
    pub(crate) last_beat: Option<pb::Inventory>,
    pub(crate) beats: u32,
    /// Progress as it came in heartbeats of this session: task and text.
    pub(crate) progress: Vec<(u64, String)>,
    /// Lines by attempt, as they came in this session.
    pub(crate) lines: BTreeMap<(u64, u32), Vec<pb::LogLine>>,
    /// Whether it says that lines are stored.
    pub(crate) acks_logs: bool,
    /// What a test waits for comes before this, whatever else comes.
    until: tokio::time::Instant,
}

impl Session {
    pub(crate) async fn acknowledge(&mut self, positions: &[(u64, u32, u64)]) {
        let position = |(task, attempt, next_offset): &(u64, u32, u64)| pb::LogPosition {
            at: Some(pb::AttemptRef { task: *task, attempt: *attempt }),
            next_offset: *next_offset,
        };
        let log_positions = positions.iter().map(position).collect();
        let ack =
            pb::HelloAck { epoch: EPOCH, leader: LEADER, log_positions, ..Default::default() };
        self.say(ack).await;
    }

    pub(crate) async fn say(&mut self, message: impl Into<Message>) {
        // A worker that is gone is noticed by who reads.
        let _ = self.frames.send(message.into()).await;
    }

    /// Orders an attempt; the answer must be yes.
    pub(crate) async fn execute(&mut self, task: u64, attempt: i32, body: &pb::TaskBody) {
        self.order(pb::ExecuteTaskRequest { task, attempt, ..execute(body) }).await;
    }

    pub(crate) async fn order(&mut self, order: pb::ExecuteTaskRequest) {
        let task = order.task;
        self.say(order).await;
        match self.next().await {
            Message::ExecuteAnswer(answer) => {
                assert!(answer.accepted, "declined: {answer:?}");
                assert_eq!(answer.task, task);
            }
            other => panic!("an answer, not {other:?}"),
        }
    }

    pub(crate) async fn cancel(&mut self, task: u64, attempt: u32) {
        let at = Some(pb::AttemptRef { task, attempt });
        let reason = pb::StopReason::Cancelled.into();
        self.say(pb::Cancel { at, epoch: EPOCH, reason, grace_ms: 0 }).await;
    }

    /// The next outcome, not acknowledged.
    pub(crate) async fn outcome(&mut self) -> Outcome {
        match self.next().await {
            Message::Report(report) => {
                let details = pb::OutcomeReport::from_bytes(&report.report).expect("a report");
                Outcome { verdict: report.verdict(), details, report }
            }
            other => panic!("an outcome, not {other:?}"),
        }
    }

    pub(crate) async fn acknowledge_outcome(&mut self, outcome: &Outcome) {
        self.acknowledge_report(&outcome.report).await;
    }

    async fn acknowledge_report(&mut self, report: &pb::TaskStatusReport) {
        let attempt = u32::try_from(report.attempt).expect("positive");
        let at = Some(pb::AttemptRef { task: report.task, attempt });
        let (ran_by, epoch) = (report.ran_by, EPOCH);
        let verdict = pb::AckVerdict::Committed.into();
        self.say(pb::ResultAck { at, ran_by, epoch, verdict }).await;
    }

    /// Says that every line so far is stored.
    async fn acknowledge_what_came(&mut self) {
        let came =
            self.lines.iter().filter_map(|(of, lines)| Some((*of, lines.last()?.offset + 1)));
        for ((task, attempt), next_offset) in came.collect::<Vec<_>>() {
            let at = Some(pb::AttemptRef { task, attempt });
            self.say(pb::LogAck { at, next_offset, closed: false }).await;
        }
    }

    /// Runs one attempt to its acknowledged end.
    pub(crate) async fn run(&mut self, task: u64, attempt: i32, body: &pb::TaskBody) -> Outcome {
        self.execute(task, attempt, body).await;
        let outcome = self.outcome().await;
        self.acknowledge_outcome(&outcome).await;
        outcome
    }

    /// Reads until a line has this text; gives its offset.
    pub(crate) async fn line(&mut self, task: u64, text: &str) -> u64 {
        loop {
            let mut lines = self.lines.iter().filter(|((of, _), _)| *of == task);
            let found =
                lines.find_map(|(_, lines)| lines.iter().find(|l| l.text == text.as_bytes()));
            if let Some(found) = found {
                return found.offset;
            }
            self.step().await;
        }
    }

    /// Reads until so many lines of the attempt are there.
    pub(crate) async fn lines_of(&mut self, task: u64, attempt: u32, count: usize) -> Vec<String> {
        while self.lines.get(&(task, attempt)).map_or(0, Vec::len) < count {
            self.step().await;
        }
        self.texts(task, attempt)
    }

    pub(crate) fn texts(&self, task: u64, attempt: u32) -> Vec<String> {
        let lines = self.lines.get(&(task, attempt)).into_iter().flatten();
        lines.map(|line| String::from_utf8_lossy(&line.text).into_owned()).collect()
    }

    /// Reads until the worker has beaten so many times more.
    pub(crate) async fn beats(&mut self, count: u32) {
        let until = self.beats + count;
        while self.beats < until {
            self.step().await;
        }
    }

    /// Reads until a heartbeat says this of the task.
    pub(crate) async fn progress_of(&mut self, task: u64, text: &str) {
        while !self.progress.iter().any(|(of, said)| (*of, said.as_str()) == (task, text)) {
            self.step().await;
        }
    }

    /// Reads one message that belongs to heartbeats and logs; any other is a fault.
    async fn step(&mut self) {
        let message = self.read().await.expect("the session goes on");
        if let Some(other) = self.keep(message).await {
            panic!("unexpected: {other:?}");
        }
    }

    /// The next message beside heartbeats and logs, which are kept.
    pub(crate) async fn next(&mut self) -> Message {
        loop {
            let message = self.read().await.expect("the session goes on");
            if let Some(message) = self.keep(message).await {
                return message;
            }
        }
    }

    async fn keep(&mut self, message: Message) -> Option<Message> {
        match message {
            Message::Heartbeat(beat) => {
                self.beats += 1;
                self.last_beat = beat.inventory;
                for said in beat.progress {
                    self.progress.push((said.at.expect("an attempt").task, said.text));
                }
                self.say(pb::HeartbeatAck { epoch: EPOCH }).await;
                None
            }
            Message::Log(log) => {
                self.keep_lines(log).await;
                None
            }
            other => Some(other),
        }
    }

    async fn keep_lines(&mut self, log: pb::LogDataRequest) {
        let next_offset = log.lines.last().expect("no empty batches").offset + 1;
        let of = (log.task, log.attempt);
        self.lines.entry(of).or_default().extend(log.lines);
        if self.acks_logs {
            let at = Some(pb::AttemptRef { task: of.0, attempt: of.1 });
            self.say(pb::LogAck { at, next_offset, closed: false }).await;
        }
    }

    /// The next message of any kind; none at the end of the connection.
    pub(crate) async fn read(&mut self) -> Option<Message> {
        let read = tokio::time::timeout_at(self.until, self.frames.next()).await;
        match read.expect("a message comes in time") {
            Some(Ok(Decoded::Message(message))) => Some(message),
            Some(Ok(unknown)) => panic!("{unknown:?}"),
            Some(Err(_)) | None => None,
        }
    }
}

/// An outcome as it came.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) verdict: pb::Verdict,
    pub(crate) details: pb::OutcomeReport,
    pub(crate) report: pb::TaskStatusReport,
}

/// An order without a task's number.
pub(crate) fn execute(body: &pb::TaskBody) -> pb::ExecuteTaskRequest {
    pb::ExecuteTaskRequest {
        epoch: EPOCH,
        leader: LEADER,
        slots: 1,
        body: body.to_bytes(),
        ..Default::default()
    }
}

pub(crate) fn sh(script: &str) -> pb::TaskBody {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    pb::TaskBody { command, ..Default::default() }
}

/// A pipe by name that a script waits on until the test opens it.
pub(crate) struct Gate(PathBuf);

impl Gate {
    pub(crate) fn new(dir: &Path) -> Gate {
        let path = dir.join("gate");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        Gate(path)
    }

    /// Shell words that wait for it.
    pub(crate) fn wait(&self) -> String {
        format!("read x < {}", self.0.display())
    }

    /// Lets the script that waits for it go on.
    pub(crate) async fn open(&self) {
        let path = self.0.clone();
        let write = tokio::task::spawn_blocking(move || fs::write(path, "go\n"));
        write.await.expect("no panic").expect("somebody waits");
    }
}

/// The processes of a worker's tasks.
pub(crate) fn processes_of(dir: &Path) -> Vec<i32> {
    let dir = fs::canonicalize(dir).expect("there");
    let wanted = format!("TENURE_WORKER_DIR={}", dir.display());
    let pids = fs::read_dir("/proc").expect("Linux").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    })
    .collect()
}

/// Ends a worker: what still runs is given back, and its outcome acknowledged.
pub(crate) async fn end(worker: WorkerHandle, mut session: Session) {
    worker.drain().await;
    worker.drain().await;
    session.acks_logs = true;
    session.acknowledge_what_came().await;
    let serve = async {
        while let Some(message) = session.read().await {
            if let Some(Message::Report(report)) = session.keep(message).await {
                session.acknowledge_report(&report).await;
            }
        }
    };
    tokio::join!(serve, async {
        tokio::time::timeout(PATIENCE, worker.closed()).await.expect("it ends in time")
    });
}

/// Ends a worker that no master listens to; nothing runs on it.
pub(crate) async fn end_alone(worker: WorkerHandle) {
    worker.drain().await;
    tokio::time::timeout(PATIENCE, worker.closed()).await.expect("it ends in time");
}

pub(crate) fn refusal(started: Result<WorkerHandle, StartError>) -> String {
    started.expect_err("it does not start").to_string()
}

/// The event that a test waits for where nothing tells it: looked for again and again.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
