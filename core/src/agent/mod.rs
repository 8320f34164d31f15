//! The worker's side: takes attempts, runs each at most once, and keeps every outcome until it is acknowledged.
//!
//! A worker has one session at a time ([`session`]), found by dialing the masters that it knows in turn
//! ([`reconnect`]). What it is ordered to run is recorded before it starts ([`accept`]), what came of it is
//! recorded before it is told ([`run`], [`outbox`]). A worker that shall stop gives back or finishes what it
//! has ([`drain`]).

mod accept;
mod drain;
mod effects;
mod outbox;
mod reconnect;
mod run;
mod session;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::command::AgentCommand;
use crate::error::Refused;
use crate::event::{AgentEvent, Remembered};
use crate::ids::{Attempt, AttemptRef, EffectId, Holder, SessionId, TaskId, Term};
use crate::message::{Finished, Inventory};
use crate::outcome::Outcome;
use crate::policy::{Policy, Settings};
use crate::random::Stream;
use crate::rules::{Rule, Rules};
use crate::spec::Shape;
use crate::time::Time;

use drain::Drain;
use effects::{Effects, Write};
use outbox::{Kept, OutcomeId};
use reconnect::Reconnect;
use run::{Live, Stage};

/// How an agent is set up.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Timings.
    pub policy: Policy,
    /// Protocol rules; all of them outside the bug bank.
    pub rules: Rules,
    /// Its name, and this start of its process.
    pub holder: Holder,
    /// All that it has to give.
    pub capacity: Shape,
    /// How many masters it knows; [`AgentCommand::Dial`] names one by its index. At least one.
    pub masters: usize,
    /// Spreads its reconnects in time.
    pub seed: u64,
}

/// A worker's agent: one start of one process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Agent {
    settings: Settings,
    rules: Rules,
    holder: Holder,
    capacity: Shape,
    booted: bool,
    /// The highest term that it has seen.
    highest: Term,
    /// Whether the disk is behind `highest`, with no write of it under way.
    highest_unsaved: bool,
    /// The highest attempt per task that it was ever given: it and lower ones never start again.
    given: BTreeMap<TaskId, Attempt>,
    /// What holds slots and GPUs.
    live: BTreeMap<AttemptRef, Live>,
    used_slots: u32,
    used_gpus: u32,
    /// Outcomes that are not acknowledged.
    outbox: BTreeMap<OutcomeId, Kept>,
    effects: Effects,
    reconnect: Reconnect,
    drain: Drain,
    /// Removed as soon as they are void, so that long timeouts of short tasks do not pile up.
    alarms: BTreeSet<(Time, Reason)>,
}

/// What a deadline is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Reason {
    /// An attempt's time is up.
    Timeout(AttemptRef),
    /// An outcome was told and not acknowledged.
    Resend(OutcomeId),
}

impl Agent {
    /// An agent that knows nothing yet. Its first event is [`AgentEvent::Booted`].
    #[must_use]
    pub fn new(config: AgentConfig) -> Agent {
        let AgentConfig { policy, rules, holder, capacity, masters, seed } = config;
        Agent {
            settings: policy.settings(),
            rules,
            holder,
            capacity,
            booted: false,
            highest: Term::default(),
            highest_unsaved: false,
            given: BTreeMap::new(),
            live: BTreeMap::new(),
            used_slots: 0,
            used_gpus: 0,
            outbox: BTreeMap::new(),
            effects: Effects::default(),
            reconnect: Reconnect::new(masters, Stream::new(seed)),
            drain: Drain::No,
            alarms: BTreeSet::new(),
        }
    }

    /// Applies one event and appends what must now be done to `out`, in that order.
    ///
    /// Stale, late and repeated things are normal: they are answered or ignored, never an error.
    ///
    /// # Errors
    /// [`Refused`] if the event cannot be (a caller's bug). State and `out` are then unchanged.
    pub fn handle(
        &mut self,
        now: Time,
        event: AgentEvent,
        out: &mut Vec<AgentCommand>,
    ) -> Result<(), Refused> {
        if matches!(event, AgentEvent::Booted(_)) == self.booted {
            return Err(Refused::BootOrder);
        }
        match event {
            AgentEvent::Woke => {}
            AgentEvent::Booted(remembered) => self.on_booted(now, remembered),
            AgentEvent::Dialed(effect, session) => self.on_dialed(now, effect, session, out)?,
            AgentEvent::DialFailed(effect) => self.on_dial_failed(now, effect)?,
            AgentEvent::Closed(session) => self.on_closed(now, session),
            AgentEvent::Received(session, said) => self.on_received(now, session, said, out),
            AgentEvent::Persisted(effect) => self.on_persisted(now, effect, out)?,
            AgentEvent::PersistFailed(effect) => self.on_persist_failed(now, effect, out)?,
            AgentEvent::Ended { at, verdict, report } => {
                self.on_ended(now, at, verdict, report, out);
            }
            AgentEvent::DrainAsked { hand_back } => self.on_drain_asked(now, hand_back, out),
        }
        self.expire(now, out);
        Ok(())
    }

    /// When to send [`AgentEvent::Woke`] if nothing else happens before.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let alarm = self.alarms.first().map(|(at, _)| *at);
        [alarm, self.reconnect.next_deadline(), self.leave_at()].into_iter().flatten().min()
    }

    /// The attempts whose process was started and has not ended.
    pub fn running(&self) -> impl Iterator<Item = AttemptRef> + '_ {
        let started = |(at, live): (&AttemptRef, &Live)| live.is_started().then_some(*at);
        self.live.iter().filter_map(started)
    }

    /// The outcomes that are not acknowledged.
    pub fn outcomes(&self) -> impl Iterator<Item = &Outcome> + '_ {
        self.outbox.values().map(|kept| &kept.outcome)
    }

    /// All that it would tell a master now.
    #[must_use]
    pub fn inventory(&self) -> Inventory {
        let mut inventory = Inventory::default();
        inventory.running.extend(self.running());
        for ((at, ran_by), kept) in &self.outbox {
            if kept.is_tellable() {
                inventory.finished.push(Finished { at: *at, ran_by: *ran_by });
            } else {
                inventory.running.push(*at);
            }
        }
        inventory
    }

    /// The highest term that it has seen.
    #[must_use]
    pub fn highest(&self) -> Term {
        self.highest
    }

    /// The highest attempt of this task that it was ever given.
    #[must_use]
    pub fn given(&self, task: TaskId) -> Option<Attempt> {
        self.given.get(&task).copied()
    }

    /// The session that it has, acknowledged or not.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.reconnect.session()
    }

    /// Whether a master has acknowledged its session.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.reconnect.established().is_some()
    }

    /// Whether it takes no new tasks.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.drain != Drain::No
    }

    /// Slots that no attempt holds.
    #[must_use]
    pub fn free_slots(&self) -> u32 {
        u32::from(self.capacity.slots).saturating_sub(self.used_slots)
    }

    /// GPUs that no attempt holds.
    #[must_use]
    pub fn free_gpus(&self) -> u32 {
        u32::from(self.capacity.gpus).saturating_sub(self.used_gpus)
    }

    fn on_booted(&mut self, now: Time, remembered: Remembered) {
        self.booted = true;
        self.highest = remembered.highest;
        for at in remembered.given {
            self.remember_given(at);
        }
        for outcome in remembered.outcomes {
            self.remember_given(outcome.at);
            self.outbox.insert((outcome.at, outcome.ran_by), Kept::written(outcome));
        }
        self.reconnect.begin(now);
    }

    fn on_persisted(
        &mut self,
        now: Time,
        effect: EffectId,
        out: &mut Vec<AgentCommand>,
    ) -> Result<(), Refused> {
        match self.effects.end_write(effect)? {
            Write::Given(at) => self.start(now, at, out),
            Write::Outcome(id) => self.on_outcome_written(now, id, out),
            Write::Highest | Write::Acknowledged => {}
        }
        Ok(())
    }

    fn on_persist_failed(
        &mut self,
        now: Time,
        effect: EffectId,
        out: &mut Vec<AgentCommand>,
    ) -> Result<(), Refused> {
        match self.effects.end_write(effect)? {
            Write::Given(at) => self.on_given_unwritten(at, out),
            Write::Outcome(id) => self.on_outcome_unwritten(now, id, out),
            Write::Highest => self.highest_unsaved = true,
            // After a restart the outcome is told once more and acknowledged once more.
            Write::Acknowledged => {}
        }
        Ok(())
    }

    /// Does what is due.
    fn expire(&mut self, now: Time, out: &mut Vec<AgentCommand>) {
        self.keep_link(now, out);
        while let Some((at, reason)) = self.alarms.first().copied()
            && at <= now
        {
            self.alarms.pop_first();
            match reason {
                Reason::Timeout(at) => self.on_time_up(at, out),
                Reason::Resend(id) => self.on_unacknowledged(now, id, out),
            }
        }
        // A session that was given up just now may be due for its next dial at once.
        self.keep_link(now, out);
        self.leave_if_done(now, out);
    }

    /// Whether this rule holds.
    fn hold(&self, rule: Rule) -> bool {
        self.rules.hold(rule)
    }
}
