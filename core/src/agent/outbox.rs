//! Outcomes: recorded before they are told, told until they are acknowledged.

use alloc::vec::Vec;

use super::effects::Write;
use super::reconnect::Next;
use super::{Agent, Reason};
use crate::command::{AgentCommand, Record};
use crate::ids::{AttemptRef, Epoch, Incarnation};
use crate::message::ToMaster;
use crate::outcome::Outcome;
use crate::rules::Rule;
use crate::time::Time;

/// Which outcome: of which attempt, run by which incarnation.
pub(super) type OutcomeId = (AttemptRef, Incarnation);

/// An outcome that is not acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Kept {
    pub(super) outcome: Outcome,
    saved: Saved,
    /// How often it was told in this session.
    told: u32,
    /// When to tell it again, if it was told in this session.
    again_at: Option<Time>,
}

/// Whether it is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Saved {
    /// Being written; until then the attempt counts as running.
    Writing,
    /// It is.
    Written,
    /// It could not be written. A crash now would lose it, so it is told all the same.
    Failed,
    /// It could not be written, and is being written again.
    Retrying,
}

impl Kept {
    /// An outcome that was on the disk when the agent booted.
    pub(super) fn written(outcome: Outcome) -> Kept {
        Kept { outcome, saved: Saved::Written, told: 0, again_at: None }
    }

    /// Whether it may be told.
    pub(super) fn is_tellable(&self) -> bool {
        self.saved != Saved::Writing
    }

    /// Whether it survives the end of this process.
    fn is_written(&self) -> bool {
        self.saved == Saved::Written
    }
}

impl Agent {
    /// Keeps the outcome of an attempt that ended here.
    pub(super) fn keep_outcome(
        &mut self,
        now: Time,
        outcome: Outcome,
        out: &mut Vec<AgentCommand>,
    ) {
        let id = (outcome.at, outcome.ran_by);
        let write_first = self.hold(Rule::OutcomePersisted);
        let saved = if write_first { Saved::Writing } else { Saved::Retrying };
        let record = Record::Outcome(outcome.clone());
        self.outbox.insert(id, Kept { saved, ..Kept::written(outcome) });
        let effect = self.effects.begin_write(Write::Outcome(id));
        if !write_first {
            self.tell(now, id, out);
        }
        out.push(AgentCommand::Persist(effect, record));
    }

    pub(super) fn on_outcome_written(
        &mut self,
        now: Time,
        id: OutcomeId,
        out: &mut Vec<AgentCommand>,
    ) {
        self.on_outcome_saved(now, id, Saved::Written, out);
    }

    pub(super) fn on_outcome_unwritten(
        &mut self,
        now: Time,
        id: OutcomeId,
        out: &mut Vec<AgentCommand>,
    ) {
        self.on_outcome_saved(now, id, Saved::Failed, out);
    }

    fn on_outcome_saved(
        &mut self,
        now: Time,
        id: OutcomeId,
        saved: Saved,
        out: &mut Vec<AgentCommand>,
    ) {
        let Some(kept) = self.outbox.get_mut(&id) else {
            return;
        };
        let first = kept.saved == Saved::Writing;
        kept.saved = saved;
        if first {
            self.tell(now, id, out);
        }
    }

    /// Tells one outcome, and again after a while if no acknowledgement comes.
    fn tell(&mut self, now: Time, id: OutcomeId, out: &mut Vec<AgentCommand>) {
        let session = self.reconnect.established();
        if let (Some(session), Some(kept)) = (session, self.outbox.get_mut(&id)) {
            let again_at = now + self.settings.result_timeout;
            kept.told = kept.told.saturating_add(1);
            if let Some(before) = kept.again_at.replace(again_at) {
                self.alarms.remove(&(before, Reason::Resend(id)));
            }
            self.alarms.insert((again_at, Reason::Resend(id)));
            let finished = ToMaster::Finished(kept.outcome.clone());
            out.push(AgentCommand::Send(session, finished));
        }
        if !self.hold(Rule::OutcomeKept) {
            self.drop_outcome(id, out);
        }
    }

    /// A new session: everything that has no acknowledgement is told in it.
    pub(super) fn tell_all(&mut self, now: Time, out: &mut Vec<AgentCommand>) {
        let tellable = self.outbox.iter().filter(|(_, kept)| kept.is_tellable());
        let tellable: Vec<OutcomeId> = tellable.map(|(id, _)| *id).collect();
        for id in tellable {
            self.tell(now, id, out);
        }
    }

    /// The session in which acknowledgements were expected is over.
    pub(super) fn expect_no_acks(&mut self) {
        for (id, kept) in &mut self.outbox {
            kept.told = 0;
            if let Some(again_at) = kept.again_at.take() {
                self.alarms.remove(&(again_at, Reason::Resend(*id)));
            }
        }
    }

    /// No acknowledgement came: told once more, then another master is tried, since this one may have been
    /// deposed and not know it.
    pub(super) fn on_unacknowledged(
        &mut self,
        now: Time,
        id: OutcomeId,
        out: &mut Vec<AgentCommand>,
    ) {
        let Some(kept) = self.outbox.get_mut(&id) else {
            return;
        };
        kept.again_at = None;
        if kept.told > 1 && self.reconnect.has_other() {
            self.hang_up(now, Next::Other, out);
        } else {
            self.tell(now, id, out);
        }
    }

    pub(super) fn on_result_ack(
        &mut self,
        id: OutcomeId,
        epoch: Epoch,
        out: &mut Vec<AgentCommand>,
    ) {
        if self.obeys_epoch(epoch) {
            self.drop_outcome(id, out);
        }
    }

    fn drop_outcome(&mut self, id: OutcomeId, out: &mut Vec<AgentCommand>) {
        let Some(kept) = self.outbox.remove(&id) else {
            return;
        };
        if let Some(again_at) = kept.again_at {
            self.alarms.remove(&(again_at, Reason::Resend(id)));
        }
        let (at, ran_by) = id;
        let effect = self.effects.begin_write(Write::Acknowledged);
        out.push(AgentCommand::Persist(effect, Record::Acknowledged(at, ran_by)));
    }

    /// Writes again the outcomes that could not be written.
    pub(super) fn write_outcomes_again(&mut self, out: &mut Vec<AgentCommand>) {
        for (id, kept) in &mut self.outbox {
            if kept.saved == Saved::Failed {
                kept.saved = Saved::Retrying;
                let effect = self.effects.begin_write(Write::Outcome(*id));
                out.push(AgentCommand::Persist(effect, Record::Outcome(kept.outcome.clone())));
            }
        }
    }

    /// Whether the next start of this worker would find every outcome.
    pub(super) fn outcomes_are_written(&self) -> bool {
        self.outbox.values().all(Kept::is_written)
    }
}
