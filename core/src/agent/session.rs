//! The session: hello, what counts in it, heartbeats.

use alloc::vec::Vec;

use super::Agent;
use super::effects::Write;
use super::reconnect::{Link, Next};
use crate::command::{AgentCommand, QuitReason, Record};
use crate::ids::{Epoch, SessionId, Term};
use crate::message::{Hello, HelloRefusal, ToMaster, ToWorker};
use crate::rules::Rule;
use crate::time::Time;

impl Agent {
    /// The first message of a new session. The one before was ended, so the inventory is complete: no order
    /// of an older session can add to it.
    pub(super) fn greet(&mut self, now: Time, session: SessionId, out: &mut Vec<AgentCommand>) {
        let hello = Hello {
            worker: self.holder.worker,
            incarnation: self.holder.incarnation,
            capacity: self.capacity.clone(),
            highest: self.highest,
            inventory: self.inventory(),
            draining: self.is_draining(),
        };
        let until = now + self.settings.heartbeat_ttl;
        self.reconnect.link = Link::Greeting { session, until };
        out.push(AgentCommand::Send(session, ToMaster::Hello(hello)));
    }

    pub(super) fn on_received(
        &mut self,
        now: Time,
        session: SessionId,
        said: ToWorker,
        out: &mut Vec<AgentCommand>,
    ) {
        let own = self.reconnect.session() == Some(session);
        match said {
            ToWorker::HelloAck(term) if own => self.on_hello_ack(now, session, term, out),
            ToWorker::HelloRefused(why) if own => self.quit(why, out),
            ToWorker::NotLeader(_) if own => self.hang_up(now, Next::Other, out),
            ToWorker::HelloAck(_) | ToWorker::HelloRefused(_) | ToWorker::NotLeader(_) => {}
            order => {
                if self.heard(now, session) || !self.hold(Rule::SessionFenced) {
                    self.on_order(now, order, out);
                }
            }
        }
    }

    /// What counts only in an acknowledged session.
    fn on_order(&mut self, now: Time, order: ToWorker, out: &mut Vec<AgentCommand>) {
        match order {
            ToWorker::Execute(execute) => self.on_execute(now, execute, out),
            ToWorker::ResultAck { at, ran_by, epoch, verdict: _ } => {
                self.on_result_ack((at, ran_by), epoch, out);
            }
            ToWorker::Stop { at, epoch, reason } => self.on_stop(at, epoch, reason, out),
            ToWorker::Drain => self.on_drain(),
            ToWorker::Ping => self.beat(now, out),
            // That it was heard is all that it says.
            ToWorker::HeartbeatAck(_) => {}
            ToWorker::HelloAck(_) | ToWorker::HelloRefused(_) | ToWorker::NotLeader(_) => {}
        }
    }

    /// Whether this is the acknowledged session; then its master lives.
    fn heard(&mut self, now: Time, from: SessionId) -> bool {
        match &mut self.reconnect.link {
            Link::Established { session, silent_at, .. } if *session == from => {
                *silent_at = now + self.settings.heartbeat_ttl;
                true
            }
            Link::Off
            | Link::Waiting { .. }
            | Link::Dialing { .. }
            | Link::Greeting { .. }
            | Link::Established { .. } => false,
        }
    }

    fn on_hello_ack(
        &mut self,
        now: Time,
        session: SessionId,
        term: Term,
        out: &mut Vec<AgentCommand>,
    ) {
        if !self.obeys(term) {
            self.hang_up(now, Next::Other, out);
            return;
        }
        self.raise(term, out);
        if !self.heard(now, session) {
            self.reconnect.settle(now, session, &self.settings);
            self.tell_all(now, out);
        }
    }

    fn quit(&mut self, why: HelloRefusal, out: &mut Vec<AgentCommand>) {
        self.end_session();
        self.close_down();
        out.push(AgentCommand::Quit(match why {
            HelloRefusal::NameInUse => QuitReason::NameInUse,
            HelloRefusal::Replaced => QuitReason::Replaced,
        }));
    }

    /// The session is over: what came in it and has not started never will, and whatever waits for an
    /// answer in it will be told anew in the next.
    pub(super) fn end_session(&mut self) {
        if self.hold(Rule::SessionFenced) {
            self.drop_unstarted();
        }
        self.expect_no_acks();
    }

    /// Alive, and all that it has.
    pub(super) fn beat(&mut self, now: Time, out: &mut Vec<AgentCommand>) {
        self.write_again(out);
        let inventory = self.inventory();
        if let Link::Established { session, beat_at, .. } = &mut self.reconnect.link {
            *beat_at = now + self.settings.heartbeat;
            out.push(AgentCommand::Send(*session, ToMaster::Heartbeat(inventory)));
        }
    }

    /// Writes again what could not be written.
    pub(super) fn write_again(&mut self, out: &mut Vec<AgentCommand>) {
        if self.highest_unsaved {
            self.save_highest(out);
        }
        self.write_outcomes_again(out);
    }

    /// Says it in the acknowledged session; without one nobody hears it.
    pub(super) fn say(&self, message: ToMaster, out: &mut Vec<AgentCommand>) {
        if let Some(session) = self.reconnect.established() {
            out.push(AgentCommand::Send(session, message));
        }
    }

    /// Whether this term's leader may give orders: not one that was succeeded, and no second leader of the
    /// same epoch.
    pub(super) fn obeys(&self, term: Term) -> bool {
        let newer = term.epoch > self.highest.epoch;
        newer || term == self.highest || !self.hold(Rule::HighestEpoch)
    }

    /// The same, where only the epoch is known.
    pub(super) fn obeys_epoch(&self, epoch: Epoch) -> bool {
        epoch >= self.highest.epoch || !self.hold(Rule::HighestEpoch)
    }

    /// A higher term is kept, also on the disk: a restarted worker must not obey a paused leader.
    pub(super) fn raise(&mut self, term: Term, out: &mut Vec<AgentCommand>) {
        if term.epoch > self.highest.epoch {
            self.highest = term;
            self.save_highest(out);
        }
    }

    fn save_highest(&mut self, out: &mut Vec<AgentCommand>) {
        self.highest_unsaved = false;
        let effect = self.effects.begin_write(Write::Highest);
        out.push(AgentCommand::Persist(effect, Record::Highest(self.highest)));
    }
}
