//! A task as the master sees it: its row, and how far its hold has come.

use crate::ids::{Attempt, EffectId, Fence, Holder, SessionId, WorkerId};
use crate::spec::Payload;
use crate::store::{LoseReason, Row};
use crate::time::Time;

/// A task that is not over.
#[derive(Debug, Clone)]
pub(super) struct Task {
    /// As the store last showed it.
    pub(super) row: Row,
    pub(super) place: Place,
    /// A worker that declined it is not asked again before this.
    pub(super) avoid: Option<(WorkerId, Time)>,
    /// No effect from this one on was ordered when the row was last taken over, so an answer to an earlier
    /// one may show an older row.
    pub(super) as_of: EffectId,
}

/// Where it is.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// PENDING: in the queue, or before its time.
    Waiting,
    /// PENDING, with a claim under way; the worker's place is reserved.
    Claiming { holder: Holder, fence: Fence },
    /// RUNNING.
    Held(Hold),
}

/// The hold of a worker on the newest attempt.
#[derive(Debug, Clone)]
pub(super) struct Hold {
    pub(super) holder: Holder,
    pub(super) fence: Fence,
    /// Whether the attempt is known to have started.
    pub(super) started: bool,
    pub(super) stage: Stage,
}

/// How far a hold has come.
#[derive(Debug, Clone)]
pub(super) enum Stage {
    /// Claimed by this leader and never sent: it is being undone.
    Unsent,
    /// Ordered in this session; no answer yet.
    Sent { session: SessionId, tries: u8, again_at: Time, payload: Payload },
    /// Accepted or listed in this session.
    Running { session: SessionId },
    /// Listed as finished in this session; its outcome is on the way.
    Finished { session: SessionId },
    /// The session that knew it is over; if it is given up, then for this reason.
    Away { until: Time, why: LoseReason },
}

impl Task {
    pub(super) fn hold(&self) -> Option<&Hold> {
        match &self.place {
            Place::Held(hold) => Some(hold),
            Place::Waiting | Place::Claiming { .. } => None,
        }
    }

    pub(super) fn hold_mut(&mut self) -> Option<&mut Hold> {
        match &mut self.place {
            Place::Held(hold) => Some(hold),
            Place::Waiting | Place::Claiming { .. } => None,
        }
    }

    /// Whose place it takes.
    pub(super) fn holder(&self) -> Option<Holder> {
        match &self.place {
            Place::Waiting => None,
            Place::Claiming { holder, .. } => Some(*holder),
            Place::Held(hold) => Some(hold.holder),
        }
    }

    /// The attempt that a claim would make.
    pub(super) fn next_attempt(&self) -> Attempt {
        Attempt::after(self.row.attempt)
    }
}

impl Hold {
    /// The session in which orders about it can be given.
    pub(super) fn session(&self) -> Option<SessionId> {
        match &self.stage {
            Stage::Sent { session, .. }
            | Stage::Running { session }
            | Stage::Finished { session } => Some(*session),
            Stage::Unsent | Stage::Away { .. } => None,
        }
    }
}
