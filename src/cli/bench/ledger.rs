//! Counts: starts in the common file, commits in the store, lines in the logs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tenure_adapters::http::shapes::{LogRecord, NewTask};

use super::task::Start;
use crate::client::{Client, LogPosition};
use crate::exit::Failure;

/// What was found, and what is wrong with it.
#[derive(Debug, Default, Serialize)]
pub(super) struct Count {
    /// Tasks handed in.
    pub(super) tasks: u64,
    /// Starts of processes.
    pub(super) starts: u64,
    /// Tasks that are COMPLETED with one outcome.
    pub(super) commits: u64,
    /// Log lines.
    pub(super) lines: u64,
    /// Every task that was lost, or done more than once, or lacks a line.
    pub(super) wrong: Vec<String>,
}

impl Count {
    /// Adds another count.
    pub(super) fn add(&mut self, other: Count) {
        self.tasks += other.tasks;
        self.starts += other.starts;
        self.commits += other.commits;
        self.lines += other.lines;
        self.wrong.extend(other.wrong);
    }
}

/// The tasks of a bench: what they are and where they write.
pub(super) struct Ledger {
    starts: PathBuf,
    lines: u32,
    pace_ms: u64,
}

impl Ledger {
    /// Tasks that print so many lines, at this pace.
    pub(super) fn new(dir: &Path, lines: u32, pace_ms: u64) -> Ledger {
        Ledger { starts: dir.join("starts"), lines, pace_ms }
    }

    /// A task; with a meeting place, it waits there to be let go.
    pub(super) fn new_task(&self, meet: Option<&Path>) -> Result<NewTask, Failure> {
        let program = std::env::current_exe().map_err(|error| {
            Failure::unavailable(format!("this program cannot be found: {error}"))
        })?;
        let mut command =
            vec![program.display().to_string(), "bench-task".into(), "--starts".into()];
        command.push(self.starts.display().to_string());
        command.extend(["--lines".into(), self.lines.to_string()]);
        command.extend(["--pace-ms".into(), self.pace_ms.to_string()]);
        if let Some(meet) = meet {
            command.extend(["--meet".into(), meet.display().to_string()]);
        }
        Ok(NewTask { command, ..NewTask::default() })
    }

    /// Waits for the end of these tasks and counts. Each must have started once, be committed once, and
    /// have printed each line once.
    pub(super) fn check(&self, client: &Client, ids: &[String]) -> Result<Count, Failure> {
        let mut count = Count { tasks: ids.len() as u64, ..Count::default() };
        let mut commits = BTreeMap::new();
        for id in ids {
            let task = client.wait(id, None)?.expect("without a limit it waits for the end");
            let ended = task.attempts.iter().filter(|attempt| attempt.state == "ENDED").count();
            commits.insert(id.as_str(), (task.task.status, ended));
        }
        let starts = self.starts()?;
        for id in ids {
            let (status, ended) = &commits[id.as_str()];
            let started = starts.get(id).copied().unwrap_or(0);
            let lines = lines(client, id)?;
            count.starts += started;
            count.lines += lines.len() as u64;
            count.commits += u64::from(status == "COMPLETED" && *ended == 1);
            let complete =
                lines.iter().map(String::as_str).eq(self.numbers().iter().map(String::as_str));
            if status != "COMPLETED" || *ended != 1 || started != 1 || !complete {
                count.wrong.push(format!(
                    "task {id}: {status}, {started} starts, {ended} outcomes, {} lines of {}{}",
                    lines.len(),
                    self.lines,
                    if complete { "" } else { ", not each once in order" }
                ));
            }
        }
        Ok(count)
    }

    fn numbers(&self) -> Vec<String> {
        (1..=self.lines).map(|number| number.to_string()).collect()
    }

    fn starts(&self) -> Result<BTreeMap<String, u64>, Failure> {
        let text = std::fs::read_to_string(&self.starts)
            .map_err(|error| Failure::unavailable(format!("{}: {error}", self.starts.display())))?;
        let mut starts = BTreeMap::new();
        for start in text.lines().filter_map(|line| serde_json::from_str::<Start>(line).ok()) {
            *starts.entry(start.task).or_default() += 1;
        }
        Ok(starts)
    }
}

fn lines(client: &Client, id: &str) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    let position = LogPosition { from: None, attempt: None, follow: true };
    client.logs(id, position, |record| {
        if let LogRecord::Line(line) = record {
            lines.push(line.text.clone());
        }
    })?;
    Ok(lines)
}
