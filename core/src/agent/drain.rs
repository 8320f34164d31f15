//! Leaving: no new tasks, then finish or give back what there is, then end.

use alloc::vec::Vec;

use super::Agent;
use super::reconnect::Link;
use super::run::Halt;
use crate::command::AgentCommand;
use crate::ids::AttemptRef;
use crate::message::Decline;
use crate::time::Time;

/// Whether the worker takes tasks, and whether it is about to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Drain {
    /// It takes tasks.
    No,
    /// A master wants it to take none.
    Refusing,
    /// Its operator wants it to end; what it waits for last changed then.
    Leaving { since: Time },
    /// It said its last.
    Over,
}

impl Agent {
    /// A master wants it to take no tasks; only its operator ends it.
    pub(super) fn on_drain(&mut self) {
        if self.drain == Drain::No {
            self.drain = Drain::Refusing;
        }
    }

    pub(super) fn on_drain_asked(
        &mut self,
        now: Time,
        hand_back: bool,
        out: &mut Vec<AgentCommand>,
    ) {
        if self.drain == Drain::Over {
            return;
        }
        self.drain = Drain::Leaving { since: now };
        if hand_back {
            self.hand_back(out);
        }
    }

    fn hand_back(&mut self, out: &mut Vec<AgentCommand>) {
        for at in self.unstarted() {
            self.forget_live(at);
            self.decline(at, Decline::Cannot, out);
        }
        let running: Vec<AttemptRef> = self.running().collect();
        for at in running {
            self.halt(at, Halt::HandedBack, out);
        }
    }

    /// Something ended here: its outcome gets its own time to be told.
    pub(super) fn still_busy_at(&mut self, now: Time) {
        if let Drain::Leaving { since } = &mut self.drain {
            *since = now;
        }
    }

    /// When it leaves although outcomes are not acknowledged, because no master is there to do it: they are
    /// on the disk, and its next start tells them.
    pub(super) fn leave_at(&self) -> Option<Time> {
        match self.drain {
            Drain::Leaving { since } if self.live.is_empty() && !self.is_established() => {
                Some(since.max(self.reconnect.apart_since) + self.settings.result_timeout)
            }
            Drain::No | Drain::Refusing | Drain::Leaving { .. } | Drain::Over => None,
        }
    }

    pub(super) fn leave_if_done(&mut self, now: Time, out: &mut Vec<AgentCommand>) {
        if !matches!(self.drain, Drain::Leaving { .. }) {
            return;
        }
        if self.live.is_empty() && self.outbox.is_empty() {
            self.leave(out);
        } else if self.leave_at().is_some_and(|at| at <= now) {
            if self.outcomes_are_written() {
                self.leave(out);
            } else {
                self.drain = Drain::Leaving { since: now };
                self.write_again(out);
            }
        }
    }

    fn leave(&mut self, out: &mut Vec<AgentCommand>) {
        if let Some(session) = self.reconnect.session() {
            out.push(AgentCommand::Hangup(session));
        }
        self.close_down();
        out.push(AgentCommand::Drained);
    }

    /// Nothing is looked for or taken any more.
    pub(super) fn close_down(&mut self) {
        self.reconnect.link = Link::Off;
        self.drain = Drain::Over;
    }
}
