//! The JSON documents of the API. Ids and epochs are texts, times RFC 3339 UTC `*_at`, lengths of
//! time `*_ms`. A client may use the same types.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a client submits: `POST /api/v1/tasks`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewTask {
    /// A name for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Program and arguments; no shell in between.
    pub command: Vec<String>,
    /// Environment variables beside those of the worker.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Working directory on the worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// How long one attempt may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// After so many failed attempts the task is FAILED. Default 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u16>,
    /// After so many lost workers the task is FAILED. Default 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lost: Option<u16>,
    /// Higher goes first. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i16>,
    /// Slots that it takes. Default 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u16>,
    /// GPUs that it takes. Default 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u16>,
    /// Labels that its worker must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// How long its worker may be unreachable before the task moves. Default: the disconnect grace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patience_ms: Option<u64>,
    /// Whether attempts share a checkpoint directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resumable: bool,
    /// Time between TERM and KILL. Default: the worker's, 5 s unless it says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_grace_ms: Option<u64>,
    /// Names this submission: the same key gives the same task. The header `Idempotency-Key` says the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// The answer to a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submitted {
    /// The task.
    pub id: String,
    /// Whether the key had named it before.
    pub existed: bool,
    /// The key, so that the submission can be repeated.
    pub idempotency_key: String,
}

/// A task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// Its name; empty: none.
    pub name: String,
    /// `PENDING`, `RUNNING`, `COMPLETED`, `FAILED` or `CANCELLED`.
    pub status: String,
    /// Why it waits: `backoff`, `no_worker`, `no_fitting_worker`, `busy` or `dispatching`. Only while PENDING.
    pub waits_for: Option<String>,
    /// Program and arguments.
    pub command: Vec<String>,
    /// Working directory.
    pub cwd: Option<String>,
    /// The newest attempt.
    pub attempt: Option<u32>,
    /// The worker of the newest attempt.
    pub worker: Option<String>,
    /// The term that claimed the newest attempt.
    pub epoch: Option<String>,
    /// Priority.
    pub priority: i16,
    /// Slots that it takes.
    pub slots: u16,
    /// GPUs that it takes.
    pub gpus: u16,
    /// Labels that its worker must have.
    pub labels: Vec<String>,
    /// How long one attempt may run.
    pub timeout_ms: Option<u64>,
    /// How long its worker may be unreachable.
    pub patience_ms: Option<u64>,
    /// Failed attempts that make it FAILED.
    pub max_attempts: u16,
    /// Lost workers that make it FAILED.
    pub max_lost: u16,
    /// Whether attempts share a checkpoint directory.
    pub resumable: bool,
    /// Failed attempts so far.
    pub failures: u16,
    /// Lost workers so far.
    pub lost: u16,
    /// Whether somebody asked to cancel it.
    pub cancel_requested: bool,
    /// When it was submitted.
    pub submitted_at: String,
    /// When its row last changed; of a task that is over: when it ended.
    pub changed_at: String,
    /// Not to be tried again before this.
    pub not_before_at: Option<String>,
    /// What it last said of itself. Only while RUNNING, and while its worker is connected.
    pub progress: Option<Progress>,
}

/// How far a task is, in its own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// The words.
    pub text: String,
    /// When its worker found them, by the worker's clock.
    pub at: String,
}

/// A task with its attempts and its story: `GET /api/v1/tasks/{id}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskDetail {
    /// The task.
    #[serde(flatten)]
    pub task: Task,
    /// Environment variables beside those of the worker.
    pub env: BTreeMap<String, String>,
    /// How its committed attempt ended; none before.
    pub outcome: Option<Outcome>,
    /// Every attempt, oldest first.
    pub attempts: Vec<Attempt>,
    /// What happened, oldest first.
    pub events: Vec<Event>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// `succeeded`, `failed`, `failed_for_good`, `timed_out`, `stopped` or `handed_back`.
    pub verdict: String,
    /// The process's exit code, if it exited.
    pub exit_code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// One word for programs: `exit_code`, `signal`, `spawn_failed`, `timeout`, `stopped` and so on.
    pub cause: String,
    /// What happened, in words.
    pub message: String,
    /// The reward as decimal text.
    pub reward: Option<String>,
    /// The result that the task wrote.
    pub result: Option<serde_json::Value>,
    /// How many log lines the attempt has.
    pub log_lines: u64,
    /// When the process started, by the worker's clock.
    pub started_at: Option<String>,
    /// When it ended, by the worker's clock.
    pub ended_at: Option<String>,
}

/// One try of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number.
    pub attempt: u32,
    /// Who had it.
    pub worker: Option<String>,
    /// Which start of that worker.
    pub incarnation: String,
    /// The term that claimed it.
    pub epoch: Option<String>,
    /// `OPEN`, `UNDONE`, `LOST`, `ENDED` or `SUPERSEDED` (its outcome came too late to count).
    pub state: String,
    /// Why its worker was given up, if it was.
    pub reason: Option<String>,
    /// When it was claimed.
    pub claimed_at: Option<String>,
    /// When the store learnt that it had started.
    pub started_at: Option<String>,
    /// When it ended.
    pub ended_at: Option<String>,
    /// Its outcome, superseded or not.
    pub outcome: Option<Outcome>,
}

/// One event of a task's story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub at: String,
    /// What.
    pub what: String,
    /// The task's status after it.
    pub status: String,
    /// Which attempt it is about.
    pub attempt: Option<u32>,
    /// Which worker.
    pub worker: Option<String>,
    /// By which term.
    pub epoch: String,
    /// Why, or which verdict.
    pub detail: Option<String>,
}

/// A page of tasks: `GET /api/v1/tasks`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskList {
    /// Newest first.
    pub tasks: Vec<Task>,
    /// Give this as `cursor` for the next page; none: this was the last.
    pub next_cursor: Option<String>,
}

/// What a cancel came to: `POST /api/v1/tasks/{id}/cancel`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancel {
    /// The task.
    pub id: String,
    /// Its status: `CANCELLED`, or `RUNNING` while its worker is being told.
    pub status: String,
}

/// A connected worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    /// Its name.
    pub name: String,
    /// Which start of it.
    pub incarnation: String,
    /// Where it runs, as it says.
    pub hostname: Option<String>,
    /// Its process there, as it says.
    pub pid: Option<u32>,
    /// The version of its program, as it says.
    pub version: Option<String>,
    /// Its end of the connection.
    pub address: Option<String>,
    /// `ready`, `draining` or `gone`.
    pub state: String,
    /// Slots in all.
    pub slots: u16,
    /// Slots in use.
    pub slots_used: u32,
    /// GPUs in all.
    pub gpus: u16,
    /// GPUs in use.
    pub gpus_used: u32,
    /// What it can do.
    pub labels: Vec<String>,
    /// Whether it speaks the documented protocol only.
    pub documented: bool,
    /// When it was last heard.
    pub last_heard_at: Option<String>,
}

/// `GET /api/v1/workers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerList {
    /// By name.
    pub workers: Vec<Worker>,
    /// As of when.
    pub as_of: String,
}

/// `GET /api/v1/leader`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// Whether this master leads.
    pub leads: bool,
    /// The term, if it does.
    pub epoch: Option<String>,
    /// Where workers connect.
    pub worker_address: String,
}

/// A line of `GET /api/v1/tasks/{id}/logs` as JSON lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum LogRecord {
    /// A line of output.
    Line(LogLine),
    /// The last record: nothing comes after it.
    End(LogEnd),
}

/// One line of output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// Which attempt.
    pub attempt: u32,
    /// Its number in the attempt, from 0.
    pub offset: u64,
    /// `stdout` or `stderr`.
    pub stream: String,
    /// The text; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// The exact bytes in hexadecimal, if they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hex: Option<String>,
    /// Whether the next line of the stream continues this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
    /// When the worker read it.
    pub at: String,
}

impl LogLine {
    /// The bytes as the task wrote them, with their newline if they had one.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let exact = self.hex.as_deref().and_then(of_hex);
        let mut bytes = exact.unwrap_or_else(|| self.text.clone().into_bytes());
        if !self.continues {
            bytes.push(b'\n');
        }
        bytes
    }
}

fn of_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    text.as_bytes()
        .chunks(2)
        .map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?))
        .collect()
}

/// The end of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEnd {
    /// The task's status.
    pub status: String,
    /// Whether every line of the committed attempt was there.
    pub complete: bool,
    /// Where a later request goes on (`from=`).
    pub next: String,
}
