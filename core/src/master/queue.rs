//! Who is next: priority, then age.
//!
//! Waiting makes up for priority at a fixed rate, so the order of two tasks never changes and a task's key
//! is a constant: when it was submitted, less [`Settings::ageing_step`] for each step of priority.
//! Tasks of one shape stand in one line; a line whose shape fits no worker holds up no other.
//!
//! [`Settings::ageing_step`]: crate::policy::Settings::ageing_step

use alloc::collections::{BTreeMap, BTreeSet};

use crate::ids::TaskId;
use crate::spec::Shape;
use crate::store::Row;
use crate::time::Millis;

/// A task's standing: lower goes first.
pub(super) type Key = (i64, TaskId);

/// The tasks that may be claimed.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    lines: BTreeMap<Shape, BTreeSet<Key>>,
    len: usize,
}

/// A task's standing.
pub(super) fn key(row: &Row, ageing_step: Millis) -> Key {
    let step = i64::try_from(ageing_step.0).unwrap_or(i64::MAX);
    let submitted = i64::try_from(row.submitted_at.0).unwrap_or(i64::MAX);
    let credit = i64::from(row.limits.priority).saturating_mul(step);
    (submitted.saturating_sub(credit), row.task)
}

impl Queue {
    pub(super) fn insert(&mut self, row: &Row, ageing_step: Millis) {
        let line = match self.lines.get_mut(&row.shape) {
            Some(line) => line,
            None => self.lines.entry(row.shape.clone()).or_default(),
        };
        self.len += usize::from(line.insert(key(row, ageing_step)));
    }

    pub(super) fn remove(&mut self, row: &Row, ageing_step: Millis) {
        if let Some(line) = self.lines.get_mut(&row.shape)
            && line.remove(&key(row, ageing_step))
        {
            self.len -= 1;
            if line.is_empty() {
                self.lines.remove(&row.shape);
            }
        }
    }

    /// Whether a task of this shape waits.
    pub(super) fn waits(&self, shape: &Shape) -> bool {
        self.lines.contains_key(shape)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Every line with its shape.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&Shape, &BTreeSet<Key>)> {
        self.lines.iter()
    }

    pub(super) fn clear(&mut self) {
        self.lines.clear();
        self.len = 0;
    }
}
