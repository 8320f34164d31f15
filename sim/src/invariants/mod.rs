//! What must hold in every history: one file a property. The numbered ones are what Tenure promises; the
//! others are rules of the protocol (docs/fencing.md) which keep those promises.
//!
//! The [`Oracle`] sees what really happened (rows before and after each write, processes, disks, what
//! clients were told), never what a node believes. Each property is checked after the step that
//! could break it; the last ones once the world is at rest.

pub mod cancel;
pub mod ends;
pub mod epoch_fences;
pub mod listed;
pub mod no_leak;
pub mod none_lost;
pub mod one_commit;
pub mod one_write;
pub mod order;
pub mod outbox;
pub mod patience;
pub mod really_succeeded;
pub mod slots;
pub mod started_once;
pub mod trust;

use std::fmt;

use serde::{Deserialize, Serialize};
use tenure_core::ids::{AttemptRef, Holder, TaskId};
use tenure_core::outcome::Verdict;
use tenure_core::store::{Change, Row, Wrote};
use tenure_core::time::Time;

/// What a check found, in words; `Ok` is nothing.
pub type Checked = Result<(), &'static str>;

macro_rules! properties {
    ($($(#[$doc:meta])* $name:ident $text:literal)*) => {
        /// A property that was violated.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Property {
            $($(#[$doc])* $name,)*
        }

        impl Property {
            /// In words.
            #[must_use]
            pub fn text(self) -> &'static str {
                match self {
                    $(Property::$name => $text,)*
                }
            }
        }
    };
}

properties! {
    /// Property 1.
    NoneLost "1 no acknowledged submission is lost; one key, one task"
    /// Property 2.
    OneCommit "2 one commit, one outcome an attempt, the end is final"
    /// Property 3.
    ReallySucceeded "3 completed only if an execution succeeded"
    /// Property 4.
    EpochFences "4 no write of an old epoch takes effect"
    /// Property 6.
    Slots "6 no worker holds more than its slots"
    /// Property 7.
    Ends "7 every task ends within the bound"
    /// Property 9.
    Cancel "9 what was cancelled does not complete"
    /// Property 10.
    NoLeak "10 at rest nothing names a task that is over"
    /// Property 12.
    Order "12 no task is overtaken for ever by its equals"
    /// Property 13.
    StartedOnce "13 no attempt is started twice"
    /// Property 14.
    Outbox "14 an outcome leaves the outbox only when it is stored or overtaken"
    /// docs/fencing.md, "One write per task".
    OneWrite "one write per task at a time, and none after an unknown one without a look"
    /// docs/fencing.md, "Every heartbeat".
    Listed "nothing is taken back that an inventory lists"
    /// docs/fencing.md, "Worker gone" and "Takeover".
    Patience "a worker is given up when its patience is over, and not before"
    /// docs/fencing.md, "Leaders": the trust window.
    Trust "no leader decides after its lease may have run out"
    /// Input of any kind never panics; each answer is expected.
    Contract "the core takes every event, and never panics"
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// A property that did not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Violation {
    /// Which.
    pub property: Property,
    /// When.
    pub at: Time,
    /// Of which task, if of one.
    pub task: Option<TaskId>,
    /// What was seen.
    pub what: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} ms: {}", self.at, self.what)?;
        if let Some(task) = self.task {
            write!(f, " ({task})")?;
        }
        write!(f, " [property {}]", self.property)
    }
}

/// How a real execution stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It runs.
    Runs,
    /// It ended by itself.
    Ended(Verdict),
    /// It was ended: with its worker, or because the agent asked.
    Killed,
}

/// One real execution of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execution {
    /// Of which attempt.
    pub at: AttemptRef,
    /// By which incarnation.
    pub holder: Holder,
    /// The slots that it takes.
    pub slots: u16,
    /// How it stands.
    pub fate: Fate,
}

/// One change of one row, applied or not.
#[derive(Debug, Clone, Copy)]
pub struct RowChange<'a> {
    /// The row before.
    pub before: &'a Row,
    /// The row after.
    pub after: &'a Row,
    /// What was ordered.
    pub change: &'a Change,
    /// What came of it.
    pub wrote: Wrote,
}

/// Everything that is watched in one history.
#[derive(Debug, Default)]
pub struct Oracle {
    /// Property 1.
    pub none_lost: none_lost::NoneLost,
    /// Property 4.
    pub epoch_fences: epoch_fences::EpochFences,
    /// Property 9.
    pub cancel: cancel::Cancel,
    /// Property 10.
    pub no_leak: no_leak::NoLeak,
    /// Property 12.
    pub order: order::Order,
    /// Property 14.
    pub outbox: outbox::Outbox,
    /// One write per task.
    pub one_write: one_write::OneWrite,
    /// Inventories.
    pub listed: listed::Listed,
    /// Property 13.
    pub started_once: started_once::StartedOnce,
    /// Patience.
    pub patience: patience::Patience,
    /// The trust window.
    pub trust: trust::Trust,
    /// Every real execution so far.
    pub executions: Vec<Execution>,
    violation: Option<Violation>,
}

impl Oracle {
    /// Forgets the history.
    pub fn reset(&mut self) {
        self.none_lost.reset();
        self.epoch_fences.reset();
        self.cancel.reset();
        self.no_leak.reset();
        self.order.reset();
        self.outbox.reset();
        self.one_write.reset();
        self.listed.reset();
        self.started_once.reset();
        self.patience.reset();
        self.trust.reset();
        self.executions.clear();
        self.violation = None;
    }

    /// The first violation, if there is one.
    #[must_use]
    pub fn violation(&self) -> Option<Violation> {
        self.violation
    }

    /// Keeps what a check found, if it is the first.
    #[inline]
    pub fn note(&mut self, property: Property, at: Time, task: Option<TaskId>, found: Checked) {
        if let Err(what) = found
            && self.violation.is_none()
        {
            self.violation = Some(Violation { property, at, task, what });
        }
    }

    /// A row was changed, or its change refused.
    pub fn on_change(&mut self, now: Time, seen: &RowChange<'_>) {
        let task = Some(seen.after.task);
        self.note(Property::OneCommit, now, task, one_commit::check(seen));
        let succeeded = really_succeeded::check(seen, &self.executions);
        self.note(Property::ReallySucceeded, now, task, succeeded);
        let cancel = self.cancel.on_change(seen);
        self.note(Property::Cancel, now, task, cancel);
        self.no_leak.on_row(now, seen.after);
        let began = self.started_once.on_change(seen, &self.executions);
        self.note(Property::StartedOnce, now, task, began);
    }

    /// A process is started; `given` tells whether the worker's disk knows it.
    pub fn on_start(&mut self, now: Time, execution: Execution, capacity: u16, given: bool) {
        let task = Some(execution.at.task);
        let once = started_once::check(&execution, &self.executions, given);
        self.note(Property::StartedOnce, now, task, once);
        let slots = slots::check(&execution, &self.executions, capacity);
        self.note(Property::Slots, now, task, slots);
        self.executions.push(execution);
    }
}

#[cfg(test)]
pub(crate) mod samples {
    //! Rows and changes for the tests of the properties.

    use tenure_core::ids::{Attempt, Epoch, Incarnation, WorkerId};
    use tenure_core::model::task_table::new_row;
    use tenure_core::outcome::Outcome;
    use tenure_core::spec::Payload;
    use tenure_core::store::Status;

    use super::*;
    use crate::scenario::plain_task;

    pub(crate) const TASK: TaskId = TaskId(1);
    pub(crate) const AT: AttemptRef = AttemptRef { task: TASK, attempt: Attempt::FIRST };
    pub(crate) const HOLDER: Holder = Holder { worker: WorkerId(1), incarnation: Incarnation(11) };

    pub(crate) fn pending() -> Row {
        new_row(TASK, &plain_task(0).submission, Time(0))
    }

    pub(crate) fn running() -> Row {
        Row {
            status: Status::Running,
            attempt: Some(Attempt::FIRST),
            holder: Some(HOLDER),
            epoch: Epoch(1),
            ..pending()
        }
    }

    pub(crate) fn outcome(verdict: Verdict) -> Outcome {
        Outcome { at: AT, ran_by: HOLDER.incarnation, verdict, report: Payload::NONE }
    }

    pub(crate) fn commit(verdict: Verdict) -> Change {
        Change::Commit { outcome: outcome(verdict), retry_at: Time(0) }
    }

    pub(crate) fn claim() -> Change {
        Change::Claim { newest: None, holder: HOLDER }
    }

    pub(crate) fn applied<'a>(
        before: &'a Row,
        after: &'a Row,
        change: &'a Change,
    ) -> RowChange<'a> {
        RowChange { before, after, change, wrote: Wrote::Applied }
    }

    pub(crate) fn execution(fate: Fate) -> Execution {
        Execution { at: AT, holder: HOLDER, slots: 1, fate }
    }
}
