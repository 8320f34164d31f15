//! Finding a master: one dial at a time, each known master in turn, the last good one first.

use alloc::vec::Vec;

use super::Agent;
use crate::command::AgentCommand;
use crate::error::Refused;
use crate::ids::{EffectId, SessionId};
use crate::policy::Settings;
use crate::random::{Stream, doubled};
use crate::time::Time;

/// How far the connection to a master is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Link {
    /// Looks for no master: not booted yet, or over.
    Off,
    /// Dials at that time.
    Waiting { until: Time },
    /// A dial is under way.
    Dialing { effect: EffectId, until: Time },
    /// The hello is said.
    Greeting { session: SessionId, until: Time },
    /// The hello is acknowledged.
    Established { session: SessionId, beat_at: Time, silent_at: Time },
}

/// Which master is tried next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// The one that was good until just now.
    Same,
    /// Another, if one is known.
    Other,
}

/// The connection, and how it is sought.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Reconnect {
    pub(super) link: Link,
    /// Since when no master has acknowledged a session.
    pub(super) apart_since: Time,
    masters: usize,
    master: usize,
    /// Tries in a row that led to no acknowledged session.
    failures: u32,
    random: Stream,
}

impl Reconnect {
    pub(super) fn new(masters: usize, random: Stream) -> Reconnect {
        let (link, apart_since) = (Link::Off, Time::default());
        Reconnect { link, apart_since, masters: masters.max(1), master: 0, failures: 0, random }
    }

    /// The first dial is made at once.
    pub(super) fn begin(&mut self, now: Time) {
        self.apart_since = now;
        self.link = Link::Waiting { until: now };
    }

    /// When the connection must be looked after.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        match self.link {
            Link::Off => None,
            Link::Waiting { until }
            | Link::Dialing { until, .. }
            | Link::Greeting { until, .. } => Some(until),
            Link::Established { beat_at, silent_at, .. } => Some(beat_at.min(silent_at)),
        }
    }

    /// The session, acknowledged or not.
    pub(super) fn session(&self) -> Option<SessionId> {
        match self.link {
            Link::Off | Link::Waiting { .. } | Link::Dialing { .. } => None,
            Link::Greeting { session, .. } | Link::Established { session, .. } => Some(session),
        }
    }

    /// The session, once it is acknowledged.
    pub(super) fn established(&self) -> Option<SessionId> {
        match self.link {
            Link::Established { session, .. } => Some(session),
            Link::Off | Link::Waiting { .. } | Link::Dialing { .. } | Link::Greeting { .. } => None,
        }
    }

    /// A master acknowledged the session: it is good, and so was the way to it.
    pub(super) fn settle(&mut self, now: Time, session: SessionId, settings: &Settings) {
        self.failures = 0;
        self.link = Link::Established {
            session,
            beat_at: now + settings.heartbeat,
            silent_at: now + settings.heartbeat_ttl,
        };
    }

    /// Whether there is another master to try.
    pub(super) fn has_other(&self) -> bool {
        self.masters > 1
    }

    /// There is no connection any more, or none came about: wait, longer each time, and spread, so that
    /// the workers of a restarted master do not come all at once.
    fn back_off(&mut self, now: Time, next: Next, settings: &Settings) {
        if self.established().is_some() {
            self.apart_since = now;
        }
        if next == Next::Other {
            self.master = (self.master + 1) % self.masters;
        }
        let delay = doubled(settings.reconnect_min, self.failures, settings.reconnect_max);
        self.failures = self.failures.saturating_add(1);
        self.link = Link::Waiting { until: now + self.random.spread(delay, settings.jitter) };
    }
}

impl Agent {
    /// Dials when it is time, gives up what does not answer, beats, and notices silence.
    pub(super) fn keep_link(&mut self, now: Time, out: &mut Vec<AgentCommand>) {
        match self.reconnect.link {
            Link::Dialing { until, .. } | Link::Greeting { until, .. } if until <= now => {
                self.hang_up(now, Next::Other, out);
            }
            // Half-open: the peer's host may be gone without a word, so another is tried first.
            Link::Established { silent_at, .. } if silent_at <= now => {
                self.hang_up(now, Next::Other, out);
            }
            Link::Established { beat_at, .. } if beat_at <= now => self.beat(now, out),
            Link::Off
            | Link::Waiting { .. }
            | Link::Dialing { .. }
            | Link::Greeting { .. }
            | Link::Established { .. } => {}
        }
        if let Link::Waiting { until } = self.reconnect.link
            && until <= now
        {
            self.dial(now, out);
        }
    }

    fn dial(&mut self, now: Time, out: &mut Vec<AgentCommand>) {
        let effect = self.effects.begin_dial();
        let until = now + self.settings.heartbeat_ttl;
        self.reconnect.link = Link::Dialing { effect, until };
        out.push(AgentCommand::Dial(effect, self.reconnect.master));
    }

    pub(super) fn on_dialed(
        &mut self,
        now: Time,
        effect: EffectId,
        session: SessionId,
        out: &mut Vec<AgentCommand>,
    ) -> Result<(), Refused> {
        self.effects.end_dial(effect)?;
        if self.awaits(effect) {
            self.greet(now, session, out);
        } else {
            // It was given up before; a second connection would be a second session.
            out.push(AgentCommand::Hangup(session));
        }
        Ok(())
    }

    pub(super) fn on_dial_failed(&mut self, now: Time, effect: EffectId) -> Result<(), Refused> {
        self.effects.end_dial(effect)?;
        if self.awaits(effect) {
            self.lose_link(now, Next::Other);
        }
        Ok(())
    }

    fn awaits(&self, dial: EffectId) -> bool {
        matches!(self.reconnect.link, Link::Dialing { effect, .. } if effect == dial)
    }

    pub(super) fn on_closed(&mut self, now: Time, session: SessionId) {
        if self.reconnect.session() == Some(session) {
            let was_good = self.reconnect.established().is_some();
            self.lose_link(now, if was_good { Next::Same } else { Next::Other });
        }
    }

    /// Ends the connection, or the try to get one, and tries again later.
    pub(super) fn hang_up(&mut self, now: Time, next: Next, out: &mut Vec<AgentCommand>) {
        if let Some(session) = self.reconnect.session() {
            out.push(AgentCommand::Hangup(session));
        }
        self.lose_link(now, next);
    }

    fn lose_link(&mut self, now: Time, next: Next) {
        self.end_session();
        self.reconnect.back_off(now, next, &self.settings);
    }
}
