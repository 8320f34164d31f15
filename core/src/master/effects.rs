//! What is under way, and what its answer is for.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::desk::Due;
use crate::error::Refused;
use crate::ids::{EffectId, Holder, RequestId, SessionId, TaskId, WorkerId};
use crate::spec::{Payload, Shape};

/// What a change of one task is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// Give the task to a worker, in the session that it had then.
    Claim { holder: Holder, session: SessionId },
    /// Take a claim back, give an attempt up, or note its start: what was due when it was ordered.
    End(Due),
    /// Let a worker go on with an attempt that had been given up.
    Keep { session: SessionId },
    /// Store the first outcome that waits.
    Commit,
    /// Store the first wish to cancel that waits.
    Cancel,
    /// Look at the row again.
    Reread,
}

/// What an effect's answer is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A client's submission; with a claim its worker's place is reserved.
    Insert {
        request: RequestId,
        claim: Option<(Holder, SessionId)>,
        shape: Shape,
        payload: Payload,
        /// The newest task known when it was ordered: the submitted one comes after it.
        after: TaskId,
    },
    /// A change of one task, or a look at it.
    Task(TaskId, Doing),
    /// A worker's new incarnation.
    Register(SessionId),
    /// Everything that a new leader must know.
    ReadAll,
    /// A page of the slow comparison of memory and store, behind this task, ordered as this effect.
    Reconcile { after: TaskId, asked: EffectId, pass: Pass },
}

/// Why memory is compared with the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// As every so often.
    Regular,
    /// For the sake of a submission whose answer was lost.
    Once,
}

/// The effects under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Effects {
    pub(super) next: EffectId,
    /// Answers to effects before this belong to a term that is over.
    floor: EffectId,
    open: BTreeMap<EffectId, Purpose>,
    alive: BTreeMap<EffectId, WorkerId>,
}

impl Effects {
    /// A new effect for this purpose.
    pub(super) fn begin(&mut self, purpose: Purpose) -> EffectId {
        let effect = self.fresh();
        self.open.insert(effect, purpose);
        effect
    }

    /// A new effect whose answer changes nothing.
    pub(super) fn fresh(&mut self) -> EffectId {
        let effect = self.next;
        self.next.0 += 1;
        effect
    }

    /// A new look at a worker's heartbeat key.
    pub(super) fn look_at(&mut self, worker: WorkerId) -> EffectId {
        let effect = self.fresh();
        self.alive.insert(effect, worker);
        effect
    }

    /// The purpose that this answer is for; none if it belongs to a term that is over.
    pub(super) fn end(&mut self, effect: EffectId) -> Result<Option<Purpose>, Refused> {
        match self.open.remove(&effect) {
            Some(purpose) => Ok(Some(purpose)),
            None if effect < self.floor => Ok(None),
            None => Err(Refused::NotUnderWay(effect)),
        }
    }

    /// The worker whose heartbeat key this answer tells of.
    pub(super) fn end_look(&mut self, effect: EffectId) -> Option<WorkerId> {
        self.alive.remove(&effect)
    }

    /// Whether a write is under way.
    pub(super) fn any(&self) -> bool {
        !self.open.is_empty()
    }

    /// Forgets everything under way, and gives the purposes.
    pub(super) fn abandon(&mut self) -> Vec<Purpose> {
        self.floor = self.next;
        self.alive.clear();
        core::mem::take(&mut self.open).into_values().collect()
    }
}
