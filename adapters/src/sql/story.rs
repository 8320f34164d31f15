//! What is told about a task beside its row: its attempts, and the events that `explain` prints.
//!
//! Nothing is decided from either.

use std::collections::BTreeMap;

use tenure_core::ids::{Attempt, Epoch, Holder, Incarnation, TaskId, WorkerId};
use tenure_core::outcome::Outcome;
use tenure_core::spec::Payload;
use tenure_core::store::{AttemptEnd, Change, LoseReason, Row, Status, Wrote};
use tenure_core::time::Time;

use super::code;

/// One execution as the `attempts` table names it.
pub(super) type AttemptKey = (TaskId, Attempt, Incarnation);

/// The attempts and events of one batch.
#[derive(Debug, Default)]
pub(super) struct Story {
    pub(super) attempts: BTreeMap<AttemptKey, AttemptPatch>,
    pub(super) events: Vec<Told>,
}

/// Columns of one attempt that a batch sets; `None` leaves one as it is.
#[derive(Debug, Default)]
pub(super) struct AttemptPatch {
    pub(super) worker: Option<WorkerId>,
    pub(super) epoch: Option<Epoch>,
    pub(super) claimed_at: Option<Time>,
    pub(super) started_at: Option<Time>,
    pub(super) ended_at: Option<Time>,
    pub(super) ended_as: Option<i64>,
    pub(super) reason: Option<LoseReason>,
    pub(super) report: Option<Report>,
}

/// An outcome that came for an attempt.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) verdict: &'static str,
    pub(super) superseded: bool,
    pub(super) at: Time,
    pub(super) bytes: Payload,
}

/// One event of a task's story.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) task: TaskId,
    pub(super) at: Time,
    pub(super) epoch: Epoch,
    pub(super) what: &'static str,
    /// The task's status after it.
    pub(super) status: Status,
    pub(super) attempt: Option<Attempt>,
    pub(super) worker: Option<WorkerId>,
    pub(super) detail: Option<&'static str>,
}

impl Story {
    /// Tells what became of a change; `row` is as it stands after it. What changed nothing and kept nothing
    /// is no part of the story.
    pub(super) fn tell(
        &mut self,
        row: &Row,
        epoch: Epoch,
        at: Time,
        change: &Change,
        wrote: Wrote,
    ) {
        match wrote {
            Wrote::Applied => self.applied(row, epoch, at, change),
            Wrote::Superseded => {
                if let Change::Commit { outcome, .. } = change {
                    self.superseded(row, epoch, at, outcome);
                }
            }
            Wrote::Repeat | Wrote::Refused | Wrote::Ahead => {}
        }
    }

    fn applied(&mut self, row: &Row, epoch: Epoch, at: Time, change: &Change) {
        let patch = match change {
            Change::Cancel { .. } => None,
            _ => newest(row).map(|(key, holder)| (self.attempts.entry(key).or_default(), holder)),
        };
        if let Some((patch, holder)) = patch {
            patch.worker = Some(holder.worker);
            apply_to(patch, epoch, at, change);
        }
        let (what, detail) = words(change);
        self.events.push(Told {
            task: row.task,
            at,
            epoch,
            what,
            status: row.status,
            attempt: row.attempt,
            worker: row.holder.map(|holder| holder.worker),
            detail,
        });
    }

    fn superseded(&mut self, row: &Row, epoch: Epoch, at: Time, outcome: &Outcome) {
        let key = (row.task, outcome.at.attempt, outcome.ran_by);
        let patch = self.attempts.entry(key).or_default();
        if patch.report.is_none() {
            patch.report = Some(report(outcome, at, true));
        }
        self.events.push(Told {
            task: row.task,
            at,
            epoch,
            what: "superseded",
            status: row.status,
            attempt: Some(outcome.at.attempt),
            worker: None,
            detail: Some(code::of_verdict(outcome.verdict)),
        });
    }
}

fn newest(row: &Row) -> Option<(AttemptKey, Holder)> {
    let (attempt, holder) = row.attempt.zip(row.holder)?;
    Some(((row.task, attempt, holder.incarnation), holder))
}

fn apply_to(patch: &mut AttemptPatch, epoch: Epoch, at: Time, change: &Change) {
    match change {
        Change::Claim { .. } => {
            patch.epoch = Some(epoch);
            patch.claimed_at = Some(at);
        }
        Change::Undo { .. } => patch.end(AttemptEnd::Undone, at),
        Change::Lose { counted, reason, .. } => {
            patch.end(AttemptEnd::Lost { counted: *counted }, at);
            patch.reason = Some(*reason);
        }
        Change::Keep { .. } => {
            patch.started_at = patch.started_at.or(Some(at));
            patch.ended_as = Some(code::OPEN);
        }
        Change::Commit { outcome, .. } => {
            patch.end(AttemptEnd::Outcome, at);
            patch.report = Some(report(outcome, at, false));
        }
        Change::MarkStarted { .. } => patch.started_at = Some(at),
        Change::Lift { .. } => {
            patch.started_at = Some(at);
            patch.end(AttemptEnd::Lost { counted: false }, at);
        }
        Change::Cancel { .. } => {}
    }
}

impl AttemptPatch {
    fn end(&mut self, end: AttemptEnd, at: Time) {
        self.ended_at = Some(at);
        self.ended_as = Some(code::of_end(end));
    }
}

fn report(outcome: &Outcome, at: Time, superseded: bool) -> Report {
    Report {
        verdict: code::of_verdict(outcome.verdict),
        superseded,
        at,
        bytes: outcome.report.clone(),
    }
}

fn words(change: &Change) -> (&'static str, Option<&'static str>) {
    match change {
        Change::Claim { .. } => ("claimed", None),
        Change::Undo { .. } => ("undone", None),
        Change::Lose { reason, .. } => ("lost", Some(code::of_reason(*reason))),
        Change::Keep { .. } => ("kept", None),
        Change::Commit { outcome, .. } => ("ended", Some(code::of_verdict(outcome.verdict))),
        Change::Cancel { force: false } => ("cancel_asked", None),
        Change::Cancel { force: true } => ("cancel_asked", Some("force")),
        Change::MarkStarted { .. } => ("started", None),
        Change::Lift { .. } => ("lifted", None),
    }
}
