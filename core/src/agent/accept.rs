//! Orders to run an attempt: taken once, recorded before anything starts, or declined.

use alloc::vec::Vec;

use super::effects::Write;
use super::{Agent, Live, Stage};
use crate::command::{AgentCommand, Record};
use crate::ids::{Attempt, AttemptRef, Incarnation};
use crate::message::{Decline, Execute, StopReason, ToMaster};
use crate::rules::Rule;
use crate::spec::Shape;
use crate::time::Time;

impl Agent {
    pub(super) fn on_execute(&mut self, now: Time, execute: Execute, out: &mut Vec<AgentCommand>) {
        if !self.obeys(execute.term) {
            return;
        }
        self.raise(execute.term, out);
        let at = execute.at;
        if self.answers_repeat(at, out) {
            return;
        }
        if self.was_given(at) && self.hold(Rule::NeverStartedAgain) {
            self.decline(at, Decline::OldAttempt, out);
            return;
        }
        // Declined or not: a copy of this order that comes later must not start what was undone meanwhile.
        self.remember_given(at);
        self.end_older(at, out);
        match self.obstacle(&execute.shape) {
            Some(why) => self.decline(at, why, out),
            None => self.record_start(now, execute, out),
        }
    }

    /// Answers as it answered before, if it has the attempt.
    fn answers_repeat(&self, at: AttemptRef, out: &mut Vec<AgentCommand>) -> bool {
        if let Some(live) = self.live.get(&at) {
            // While its start is being recorded, the answer is under way.
            if live.is_started() {
                self.say(ToMaster::Accepted(at), out);
            }
            return true;
        }
        let every = (at, Incarnation(0))..=(at, Incarnation(u64::MAX));
        let Some(kept) = self.outbox.range(every).next().map(|(_, kept)| kept) else {
            return false;
        };
        if kept.is_tellable() {
            self.say(ToMaster::Finished(kept.outcome.clone()), out);
        }
        true
    }

    fn was_given(&self, at: AttemptRef) -> bool {
        self.given(at.task) >= Some(at.attempt)
    }

    pub(super) fn remember_given(&mut self, at: AttemptRef) {
        let highest = self.given.entry(at.task).or_insert(at.attempt);
        *highest = at.attempt.max(*highest);
    }

    /// A later attempt was ordered, so whoever orders it wants no earlier one.
    fn end_older(&mut self, at: AttemptRef, out: &mut Vec<AgentCommand>) {
        let older = AttemptRef::new(at.task, Attempt::FIRST)..at;
        let older: Vec<AttemptRef> = self.live.range(older).map(|(at, _)| *at).collect();
        for at in older {
            self.end(at, StopReason::Superseded, out);
        }
    }

    /// Why it cannot run such a task, if it cannot.
    fn obstacle(&self, shape: &Shape) -> Option<Decline> {
        let has = &self.capacity;
        let never =
            shape.slots > has.slots || shape.gpus > has.gpus || !has.labels.contain(&shape.labels);
        if never || self.is_draining() {
            return Some(Decline::Cannot);
        }
        let fits = u32::from(shape.slots) <= self.free_slots()
            && u32::from(shape.gpus) <= self.free_gpus();
        (!fits).then_some(Decline::Busy)
    }

    fn record_start(&mut self, now: Time, execute: Execute, out: &mut Vec<AgentCommand>) {
        let (at, term) = (execute.at, execute.term);
        self.occupy(&execute.shape);
        self.live.insert(at, Live::recording(execute));
        if !self.hold(Rule::StartPersisted) {
            self.start(now, at, out);
        }
        let effect = self.effects.begin_write(Write::Given(at));
        let record = Record::Given { at, ran_by: self.holder.incarnation, term };
        out.push(AgentCommand::Persist(effect, record));
    }

    /// Without a record of its start an attempt could be started twice, so it is not started at all.
    pub(super) fn on_given_unwritten(&mut self, at: AttemptRef, out: &mut Vec<AgentCommand>) {
        if self.live.get(&at).is_some_and(|live| !live.is_started()) {
            self.forget_live(at);
            self.decline(at, Decline::Cannot, out);
        }
    }

    pub(super) fn decline(&self, at: AttemptRef, why: Decline, out: &mut Vec<AgentCommand>) {
        self.say(ToMaster::Declined(at, why), out);
    }

    /// The session that ordered them is over: they never start.
    pub(super) fn drop_unstarted(&mut self) {
        for at in self.unstarted() {
            self.forget_live(at);
        }
    }

    /// The attempts whose start is being recorded.
    pub(super) fn unstarted(&self) -> Vec<AttemptRef> {
        let unstarted = |(at, live): (&AttemptRef, &Live)| (!live.is_started()).then_some(*at);
        self.live.iter().filter_map(unstarted).collect()
    }

    fn occupy(&mut self, shape: &Shape) {
        self.used_slots += u32::from(shape.slots);
        self.used_gpus += u32::from(shape.gpus);
    }

    /// It holds nothing any more.
    pub(super) fn forget_live(&mut self, at: AttemptRef) -> Option<Stage> {
        let live = self.live.remove(&at)?;
        self.used_slots -= u32::from(live.slots);
        self.used_gpus -= u32::from(live.gpus);
        Some(live.stage)
    }
}
