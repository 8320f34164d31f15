//! Talks to a master's HTTP API; blocking, for commands that do one thing.

use std::io::{BufRead, BufReader, Read};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_adapters::http::problem::Document;
use tenure_adapters::http::shapes::{
    Cancel, Leader, LogRecord, NewTask, Submitted, TaskDetail, TaskList, WorkerList,
};
use ureq::http::{Method, Request, Response};
use ureq::{Agent, Body};

use crate::exit::{Exit, Failure};
use crate::settings::{Settings, keys};

/// How long one look at a task waits on the server before it is repeated.
const WAIT_STEP: Duration = Duration::from_secs(20);
/// A connection that takes longer will not come.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// A stream sends a sign of life every few seconds, so this silence means that its server is gone.
const SILENCE_LIMIT: Duration = Duration::from_secs(30);
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// No document of ours is longer.
const DOCUMENT_LIMIT: u64 = 64 << 20;

/// A connection to the API of one master.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    agent: Agent,
    base: String,
    retry_for: Duration,
}

/// Why one request gave no answer.
enum Trouble {
    /// May work in a moment: nobody there, or not leading.
    Passing(Failure),
    /// Asking again gives the same.
    Final(Failure),
}

impl Client {
    /// A client of the server that the settings name.
    pub(crate) fn of(settings: &Settings) -> Result<Client, Failure> {
        let retry_for = Duration::from_millis(settings.length(keys::RETRY_FOR)?.0);
        Client::new(&settings.text(keys::SERVER), retry_for)
    }

    /// A client of this server, which tries for this long.
    pub(crate) fn new(server: &str, retry_for: Duration) -> Result<Client, Failure> {
        if server.starts_with("https://") {
            return Err(Failure::usage(format!(
                "server {server}: masters do not speak TLS; use http:// through a tunnel or a proxy"
            )));
        }
        let host = server.strip_prefix("http://").unwrap_or(server).trim_end_matches('/');
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_LIMIT))
            .timeout_per_read(Some(WAIT_STEP + SILENCE_LIMIT))
            .proxy(None)
            .build();
        Ok(Client { agent: config.into(), base: format!("http://{host}"), retry_for })
    }

    /// The server's address.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Whether the server is this machine.
    pub(crate) fn is_local(&self) -> bool {
        let host = self.base.trim_start_matches("http://");
        ["127.", "localhost", "[::1]"].iter().any(|start| host.starts_with(start))
    }

    /// Submits a task; repeats it under the same key while the answer stays away.
    pub(crate) fn submit(&self, task: &NewTask) -> Result<Submitted, Failure> {
        self.patiently(|| self.ask(Method::POST, "/api/v1/tasks", Some(task)))
    }

    /// One task with its story.
    pub(crate) fn task(&self, id: &str) -> Result<TaskDetail, Failure> {
        let path = format!("/api/v1/tasks/{}", path_part(id));
        self.patiently(|| self.ask(Method::GET, &path, None::<&()>))
    }

    /// A page of tasks; `query` as in the API.
    pub(crate) fn tasks(&self, query: &str) -> Result<TaskList, Failure> {
        let path = format!("/api/v1/tasks?{query}");
        self.patiently(|| self.ask(Method::GET, &path, None::<&()>))
    }

    /// Asks for a task's end.
    pub(crate) fn cancel(&self, id: &str, force: bool) -> Result<Cancel, Failure> {
        let path = format!("/api/v1/tasks/{}/cancel?force={force}", path_part(id));
        self.patiently(|| self.ask(Method::POST, &path, None::<&()>))
    }

    /// Submits the same once more, as a new task.
    pub(crate) fn retry(&self, id: &str, key: &str) -> Result<Submitted, Failure> {
        let path = format!("/api/v1/tasks/{}/retry?idempotency_key={key}", path_part(id));
        self.patiently(|| self.ask(Method::POST, &path, None::<&()>))
    }

    /// The connected workers.
    pub(crate) fn workers(&self) -> Result<WorkerList, Failure> {
        self.patiently(|| self.ask(Method::GET, "/api/v1/workers", None::<&()>))
    }

    /// Who leads.
    pub(crate) fn leader(&self) -> Result<Leader, Failure> {
        self.patiently(|| self.ask(Method::GET, "/api/v1/leader", None::<&()>))
    }

    /// Waits until the task is over, however often the server is gone meanwhile. None: time was up.
    pub(crate) fn wait(
        &self,
        id: &str,
        limit: Option<Duration>,
    ) -> Result<Option<TaskDetail>, Failure> {
        let end = limit.map(|limit| Instant::now() + limit);
        let mut pause = Pause::new(format!("still waiting for task {id}"));
        loop {
            let left = end.map_or(WAIT_STEP, |end| end.saturating_duration_since(Instant::now()));
            let step = left.min(WAIT_STEP).as_millis();
            let path = format!("/api/v1/tasks/{}/wait?timeout_ms={step}", path_part(id));
            match self.ask::<TaskDetail>(Method::GET, &path, None::<&()>) {
                Ok(task) if is_over(&task.task.status) => return Ok(Some(task)),
                Ok(_) => pause.reset(),
                Err(Trouble::Final(failure)) => return Err(failure),
                Err(Trouble::Passing(failure)) => pause.take(&failure),
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return Ok(None);
            }
        }
    }

    /// Gives every record of the task's log to `take` until the one that says that it is complete,
    /// however often the stream breaks. Without `follow`, until the lines at hand are read.
    pub(crate) fn logs(
        &self,
        id: &str,
        mut position: LogPosition,
        mut take: impl FnMut(&LogRecord),
    ) -> Result<(), Failure> {
        let mut pause = Pause::new(format!("still following task {id}"));
        loop {
            let path = format!("/api/v1/tasks/{}/logs?{}", path_part(id), position.query());
            match self.stream(&path) {
                Ok(lines) => {
                    if read_log(lines, &mut position, &mut take) {
                        return Ok(());
                    }
                    pause.take(&Failure::unavailable(format!("{}: the stream broke", self.base)));
                }
                Err(Trouble::Final(failure)) => return Err(failure),
                Err(Trouble::Passing(failure)) => pause.take(&failure),
            }
        }
    }

    fn stream(&self, path: &str) -> Result<impl BufRead + use<>, Trouble> {
        let response = self.send(Method::GET, path, None::<&()>)?;
        if !response.status().is_success() {
            return Err(self.refused(response));
        }
        Ok(BufReader::new(response.into_body().into_reader()))
    }

    /// Repeats a request while nobody answers it, up to the limit.
    fn patiently<T>(&self, mut ask: impl FnMut() -> Result<T, Trouble>) -> Result<T, Failure> {
        let end = Instant::now() + self.retry_for;
        let mut pause = FIRST_PAUSE;
        loop {
            match ask() {
                Ok(answer) => return Ok(answer),
                Err(Trouble::Final(failure)) => return Err(failure),
                Err(Trouble::Passing(failure)) if Instant::now() + pause >= end => {
                    return Err(failure);
                }
                Err(Trouble::Passing(_)) => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, Trouble> {
        let response = self.send(method, path, body)?;
        if !response.status().is_success() {
            return Err(self.refused(response));
        }
        let text = self.read(response)?;
        serde_json::from_str(&text).map_err(|error| {
            Trouble::Final(Failure::unavailable(format!(
                "{}{path}: not the answer of a Tenure master ({error}); is another program there?",
                self.base
            )))
        })
    }

    fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<Response<Body>, Trouble> {
        let bytes = body.map(|body| serde_json::to_vec(body).expect("our documents are JSON"));
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header("content-type", "application/json")
            .body(bytes.unwrap_or_default());
        let request = request.map_err(|error| {
            Trouble::Final(Failure::usage(format!("server {}: no URL: {error}", self.base)))
        })?;
        self.agent.run(request).map_err(|error| self.unreachable(&error))
    }

    fn read(&self, response: Response<Body>) -> Result<String, Trouble> {
        let mut text = String::new();
        let mut reader = response.into_body().into_reader().take(DOCUMENT_LIMIT);
        match reader.read_to_string(&mut text) {
            Ok(_) => Ok(text),
            Err(error) => Err(Trouble::Passing(Failure::unavailable(format!(
                "{}: the answer broke off: {error}",
                self.base
            )))),
        }
    }

    fn unreachable(&self, error: &ureq::Error) -> Trouble {
        Trouble::Passing(Failure::unavailable(format!(
            "no master answers at {}: {error}; start one with `tenure dev`, or name yours with --server \
             or TENURE_SERVER",
            self.base
        )))
    }

    fn refused(&self, response: Response<Body>) -> Trouble {
        let status = response.status().as_u16();
        let text = match self.read(response) {
            Ok(text) => text,
            Err(trouble) => return trouble,
        };
        let message = match serde_json::from_str::<Document>(&text) {
            Ok(problem) => problem.detail,
            Err(_) => format!("{}: HTTP status {status}: {}", self.base, text.trim()),
        };
        let exit = match status {
            404 => Exit::NotFound,
            409 | 412 => Exit::Conflict,
            401 | 403 => Exit::NotAllowed,
            500.. => Exit::Unavailable,
            _ => Exit::Usage,
        };
        let failure = Failure::new(exit, message);
        if status == 503 { Trouble::Passing(failure) } else { Trouble::Final(failure) }
    }
}

/// Where reading a log goes on, and how.
#[derive(Debug, Clone)]
pub(crate) struct LogPosition {
    /// `attempt.offset` of the next line.
    pub(crate) from: Option<String>,
    /// This attempt only.
    pub(crate) attempt: Option<u32>,
    /// Wait for lines to come.
    pub(crate) follow: bool,
}

impl LogPosition {
    fn query(&self) -> String {
        let mut query = format!("format=json&follow={}", self.follow);
        if let Some(attempt) = self.attempt {
            query.push_str(&format!("&attempt={attempt}"));
        }
        if let Some(from) = &self.from {
            query.push_str(&format!("&from={from}"));
        }
        query
    }
}

/// Whether the record that ends the log was read.
fn read_log(
    lines: impl BufRead,
    position: &mut LogPosition,
    take: &mut impl FnMut(&LogRecord),
) -> bool {
    for line in lines.lines() {
        let Ok(line) = line else { return false };
        // Empty lines are signs of life.
        let Ok(record) = serde_json::from_str::<LogRecord>(&line) else { continue };
        take(&record);
        match record {
            LogRecord::End(_) => return true,
            LogRecord::Line(line) => {
                position.from = Some(format!("{}.{}", line.attempt, line.offset + 1));
            }
        }
    }
    false
}

/// Pauses between tries that end only with success, and says once what it waits for.
struct Pause {
    what: String,
    next: Duration,
    failures: u32,
}

impl Pause {
    fn new(what: String) -> Pause {
        Pause { what, next: FIRST_PAUSE, failures: 0 }
    }

    fn reset(&mut self) {
        (self.next, self.failures) = (FIRST_PAUSE, 0);
    }

    fn take(&mut self, failure: &Failure) {
        self.failures += 1;
        if self.failures == 6 {
            crate::output::note(&format!("{}: {failure}", self.what));
        }
        thread::sleep(self.next);
        self.next = (self.next * 2).min(LONGEST_PAUSE);
    }
}

/// Whether a task of this status is over.
pub(crate) fn is_over(status: &str) -> bool {
    matches!(status, "COMPLETED" | "FAILED" | "CANCELLED")
}

/// An id as part of a path: anything that is no letter or digit is escaped.
fn path_part(id: &str) -> String {
    let mut part = String::new();
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() {
            part.push(char::from(byte));
        } else {
            part.push_str(&format!("%{byte:02X}"));
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_be_named_with_or_without_its_scheme() {
        let base = |server| Client::new(server, Duration::ZERO).map(|client| client.base);
        assert_eq!(base("127.0.0.1:9080").expect("fine"), "http://127.0.0.1:9080");
        assert_eq!(base("http://host:1/").expect("fine"), "http://host:1");
        assert_eq!(base("https://host").expect_err("no TLS").exit, Exit::Usage);
    }

    #[test]
    fn an_id_cannot_lead_to_another_path() {
        assert_eq!(path_part("7"), "7");
        assert_eq!(path_part("../workers"), "%2E%2E%2Fworkers");
    }

    #[test]
    fn a_log_ends_with_its_end_record_and_not_with_its_stream() {
        let line = r#"{"attempt":2,"offset":4,"stream":"stdout","text":"x","at":"now"}"#;
        let end = r#"{"status":"COMPLETED","complete":true,"next":"2.5"}"#;
        let mut position = LogPosition { from: None, attempt: None, follow: true };
        let mut seen = 0;
        assert!(!read_log(format!("{line}\n\n").as_bytes(), &mut position, &mut |_| seen += 1));
        assert_eq!(position.from.as_deref(), Some("2.5"));
        assert!(read_log(format!("{end}\n").as_bytes(), &mut position, &mut |_| seen += 1));
        assert_eq!(seen, 2);
    }
}
