//! Reads a task's log attempt by attempt, waiting for what is still to come.
//!
//! A followed log ends when the task is over and its last attempt's lines are all there (its outcome
//! says how many it has), not when nothing happens to come.

use std::time::Duration;

use tenure_core::ids::{Attempt, AttemptRef, TaskId};
use tenure_core::store::AttemptEnd;
use tenure_core::time::Time;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep_until};

use super::problem::Problem;
use super::shapes::{LogEnd, LogLine, LogRecord};
use super::tasks::unreadable;
use super::{view, wait};
use crate::driver::master::MasterHandle;
use crate::logs::StoredLine;
use crate::sql::{AttemptView, TaskView};

/// Lines read at a time.
const BATCH: usize = 512;
/// How long the last lines of a task that is over may stay away: their worker may be gone for good.
const LATE_LINES: Duration = Duration::from_secs(10);
/// How often a follower that nothing comes for says that it is there.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// Where a reader is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    /// The attempt being read.
    pub(super) attempt: Attempt,
    /// Its next line.
    pub(super) offset: u64,
    /// Set if no other attempt is wanted.
    pub(super) only: Option<Attempt>,
}

/// Reads on whenever asked.
pub(super) struct Follower {
    master: MasterHandle,
    task: TaskId,
    position: Position,
    follow: bool,
    changes: broadcast::Receiver<TaskId>,
    lines: watch::Receiver<u64>,
    /// Since when only lines that may never come are waited for.
    late_since: Option<Instant>,
}

/// What the store knows of the attempt being read.
enum Knowledge {
    /// It has no end yet, or does not exist yet.
    Open,
    /// It has so many lines.
    Ended(u64),
    /// Nobody knows how many lines it has.
    Lost,
}

impl Follower {
    pub(super) async fn start(
        master: MasterHandle,
        task: TaskId,
        position: Position,
        follow: bool,
    ) -> Result<Follower, Problem> {
        // Before the first look, so that no change is missed in between.
        let changes = master.changes();
        let lines = master.logs().follow(AttemptRef::new(task, position.attempt));
        let found = master.store().task(task).await.map_err(|error| unreadable(&error))?;
        if found.is_none() {
            return Err(Problem::no_task(&task.0.to_string()));
        }
        Ok(Follower { master, task, position, follow, changes, lines, late_since: None })
    }

    /// The next records; none at all as a sign of life. `None`: the log cannot be read.
    pub(super) async fn next(&mut self) -> Option<Vec<LogRecord>> {
        let quiet = Instant::now() + SIGN_OF_LIFE;
        loop {
            // The order matters: a task that is seen as over before its lines are read hides none.
            let task = self.master.store().task(self.task).await.ok()??;
            let attempts = self.master.store().attempts(self.task).await.ok()?;
            self.lines.mark_unchanged();
            let lines = self.read().await?;
            if !lines.is_empty() {
                return Some(lines);
            }
            let complete = match self.knowledge(&attempts) {
                // Not the reader's place: the store may have dropped lines of a log that was too long.
                Knowledge::Ended(lines) => self.stored().await? >= lines,
                Knowledge::Lost => true,
                Knowledge::Open => false,
            };
            if self.step_on(&task, complete) {
                continue;
            }
            if self.is_end(&task, complete) {
                return Some(vec![self.end(&task, complete)]);
            }
            let late = self.late_since.map_or(quiet, |since| since + LATE_LINES);
            tokio::select! {
                () = wait::changed(&mut self.changes, self.task) => {}
                Ok(()) = self.lines.changed() => {}
                () = sleep_until(late.min(quiet)) => {}
            }
            if Instant::now() >= quiet {
                return Some(Vec::new());
            }
        }
    }

    /// The offset after the last line that is stored.
    async fn stored(&self) -> Option<u64> {
        self.master.logs().next_offset(self.at()).await.ok()
    }

    fn at(&self) -> AttemptRef {
        AttemptRef::new(self.task, self.position.attempt)
    }

    async fn read(&mut self) -> Option<Vec<LogRecord>> {
        let lines = self.master.logs().read(self.at(), self.position.offset, BATCH).await.ok()?;
        if let Some(last) = lines.last() {
            self.position.offset = last.offset + 1;
            self.late_since = None;
        }
        let attempt = self.position.attempt.number();
        Some(lines.into_iter().map(|line| LogRecord::Line(shown(attempt, line))).collect())
    }

    fn knowledge(&self, attempts: &[AttemptView]) -> Knowledge {
        let ours = attempts.iter().filter(|view| view.attempt == self.position.attempt);
        let mut known = Knowledge::Open;
        for view in ours {
            match view.end {
                Some(AttemptEnd::Outcome) => {
                    return Knowledge::Ended(
                        view::report(view).map_or(0, |report| report.log_lines),
                    );
                }
                Some(AttemptEnd::Lost { .. } | AttemptEnd::Undone) => known = Knowledge::Lost,
                None => {}
            }
        }
        known
    }

    /// Goes to the next attempt, if this one is done with and there is a next.
    fn step_on(&mut self, task: &TaskView, complete: bool) -> bool {
        let newest = task.row.attempt;
        let has_next = newest.is_some_and(|newest| newest > self.position.attempt);
        let step = self.position.only.is_none()
            && has_next
            && (complete || !self.follow || self.is_late());
        if step {
            self.position.attempt = Attempt::after(Some(self.position.attempt));
            self.position.offset = 0;
            self.lines = self.master.logs().follow(self.at());
            self.late_since = None;
        }
        step
    }

    fn is_end(&mut self, task: &TaskView, complete: bool) -> bool {
        if !self.follow {
            return true;
        }
        let row = &task.row;
        let passed = row.attempt.is_some_and(|newest| newest > self.position.attempt);
        // An attempt that is not the newest, or whose task is over, gets no more lines than it has.
        let settled = row.status.is_terminal() || (self.position.only.is_some() && passed);
        let never_ran = row.status.is_terminal() && row.attempt.is_none();
        settled && (complete || never_ran || self.is_late())
    }

    /// Whether lines that should be there have stayed away for too long, counted from the first time
    /// that this was asked.
    fn is_late(&mut self) -> bool {
        self.late_since.get_or_insert_with(Instant::now).elapsed() >= LATE_LINES
    }

    fn end(&self, task: &TaskView, complete: bool) -> LogRecord {
        let Position { attempt, offset, .. } = self.position;
        let complete = complete || task.row.attempt.is_none();
        LogRecord::End(LogEnd {
            status: view::status(task.row.status).to_owned(),
            complete,
            next: format!("{}.{offset}", attempt.number()),
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn shown(attempt: u32, line: StoredLine) -> LogLine {
    LogLine {
        attempt,
        offset: line.offset,
        stream: if line.is_error { "stderr" } else { "stdout" }.to_owned(),
        hex: std::str::from_utf8(&line.text).err().map(|_| hex(&line.text)),
        text: String::from_utf8_lossy(&line.text).into_owned(),
        continues: line.continues,
        at: view::time(Time(line.at_ms)),
    }
}
