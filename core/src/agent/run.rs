//! Attempts that hold a place: started, ended before their time, ended.

use alloc::vec::Vec;

use super::{Agent, Reason};
use crate::command::AgentCommand;
use crate::ids::{AttemptRef, Epoch};
use crate::message::{Decline, Execute, StopReason, ToMaster};
use crate::outcome::{Outcome, Verdict};
use crate::spec::Payload;
use crate::time::Time;

/// An attempt that holds slots and GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Live {
    pub(super) slots: u16,
    pub(super) gpus: u16,
    pub(super) stage: Stage,
}

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// Its start is being recorded; nothing has happened yet.
    Recording(Execute),
    /// Its process was started and has not ended.
    Running { until: Option<Time>, halt: Option<Halt> },
}

/// Why its process was told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Halt {
    /// Its time was up.
    TimedOut,
    /// The master asked for it.
    Ordered(StopReason),
    /// The worker is leaving.
    HandedBack,
}

impl Halt {
    /// What the process's keeper is told. It matters to people only: the verdict is made here.
    fn reason(self) -> StopReason {
        match self {
            Halt::Ordered(reason) => reason,
            Halt::TimedOut | Halt::HandedBack => StopReason::Cancelled,
        }
    }
}

impl Live {
    pub(super) fn recording(execute: Execute) -> Live {
        let (slots, gpus) = (execute.shape.slots, execute.shape.gpus);
        Live { slots, gpus, stage: Stage::Recording(execute) }
    }

    /// Whether there is a process.
    pub(super) fn is_started(&self) -> bool {
        match self.stage {
            Stage::Recording(_) => false,
            Stage::Running { .. } => true,
        }
    }
}

impl Agent {
    /// The start is recorded. Of an attempt that was dropped meanwhile only the record remains: it keeps
    /// the attempt from ever starting.
    pub(super) fn start(&mut self, now: Time, at: AttemptRef, out: &mut Vec<AgentCommand>) {
        let Some(live) = self.live.get_mut(&at) else {
            return;
        };
        let until = match &live.stage {
            Stage::Recording(execute) => execute.timeout.map(|timeout| now + timeout),
            Stage::Running { .. } => return,
        };
        let running = Stage::Running { until, halt: None };
        let Stage::Recording(execute) = core::mem::replace(&mut live.stage, running) else {
            return;
        };
        if let Some(until) = until {
            self.alarms.insert((until, Reason::Timeout(at)));
        }
        self.say(ToMaster::Accepted(at), out);
        out.push(AgentCommand::Start(execute));
    }

    pub(super) fn on_stop(
        &mut self,
        at: AttemptRef,
        epoch: Epoch,
        reason: StopReason,
        out: &mut Vec<AgentCommand>,
    ) {
        if self.obeys_epoch(epoch) {
            self.end(at, reason, out);
        }
    }

    /// Ends the attempt because a master does not want it: its process, or, if it has none yet, the
    /// intent to start one.
    pub(super) fn end(&mut self, at: AttemptRef, reason: StopReason, out: &mut Vec<AgentCommand>) {
        match self.live.get(&at).map(Live::is_started) {
            Some(true) => self.halt(at, Halt::Ordered(reason), out),
            Some(false) => {
                self.forget_live(at);
                self.decline(at, Decline::OldAttempt, out);
            }
            None => {}
        }
    }

    /// Its time is up.
    pub(super) fn on_time_up(&mut self, at: AttemptRef, out: &mut Vec<AgentCommand>) {
        self.halt(at, Halt::TimedOut, out);
    }

    /// Ends a process, once: the first reason is the one that counts.
    pub(super) fn halt(&mut self, at: AttemptRef, why: Halt, out: &mut Vec<AgentCommand>) {
        if let Some(Live { stage: Stage::Running { halt, .. }, .. }) = self.live.get_mut(&at)
            && halt.is_none()
        {
            *halt = Some(why);
            out.push(AgentCommand::Stop(at, why.reason()));
        }
    }

    pub(super) fn on_ended(
        &mut self,
        now: Time,
        at: AttemptRef,
        verdict: Verdict,
        report: Payload,
        out: &mut Vec<AgentCommand>,
    ) {
        if !self.live.get(&at).is_some_and(Live::is_started) {
            return;
        }
        let Some(Stage::Running { until, halt }) = self.forget_live(at) else {
            return;
        };
        if let Some(until) = until {
            self.alarms.remove(&(until, Reason::Timeout(at)));
        }
        let verdict = judge(verdict, halt);
        let outcome = Outcome { at, ran_by: self.holder.incarnation, verdict, report };
        self.keep_outcome(now, outcome, out);
        self.still_busy_at(now);
    }
}

/// What an end comes to, given what the process was told.
fn judge(verdict: Verdict, halt: Option<Halt>) -> Verdict {
    match (halt, verdict) {
        (None, verdict) => verdict,
        // It had succeeded before it could be ended; the master says what that is worth.
        (Some(Halt::Ordered(_)), Verdict::Succeeded) => Verdict::Succeeded,
        (Some(Halt::Ordered(_)), _) => Verdict::Stopped,
        // A program that ends well when it is told to end has not done its work.
        (Some(Halt::TimedOut), _) => Verdict::TimedOut,
        (Some(Halt::HandedBack), _) => Verdict::HandedBack,
    }
}
