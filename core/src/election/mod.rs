//! Who leads: the store's term row decides; this machine looks, takes, renews and knows until when it
//! may believe that it leads.
//!
//! An epoch is taken by compare-and-set on the one before. An answer that was lost is settled by reading
//! whose incarnation stands in the row.

use alloc::vec::Vec;

use crate::command::MasterCommand;
use crate::ids::{EffectId, Epoch, Incarnation, Term};
use crate::policy::Settings;
use crate::random::Stream;
use crate::rules::{Rule, Rules};
use crate::store::{StoreAnswer, StoreOp, StoreResult, TermRow};
use crate::time::{Millis, Time};

/// What an answer did to this node's standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Nothing.
    Same,
    /// It leads, under a new term.
    Won(Term),
    /// It leads no more.
    Lost(Term),
    /// It gave the lease up.
    Released,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Looks at the row again at this time.
    Following { look_at: Time },
    /// Leads, and renews again at this time.
    Leading { term: Term, renew_at: Time, trust_until: Option<Time> },
    /// Has given up leading for good.
    Retired,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Look,
    Take,
    Renew,
    Release,
}

/// One node's part in the election.
#[derive(Debug, Clone)]
pub struct Election {
    me: Incarnation,
    /// No other node can reach the store (embedded): the term is taken at once and never renewed.
    exclusive: bool,
    settings: Settings,
    rules: Rules,
    random: Stream,
    standing: Standing,
    under_way: Option<(EffectId, Asked, Time)>,
    /// Orders whose answers do not matter any more.
    overtaken: Vec<EffectId>,
    /// The newest epoch seen anywhere.
    seen: Epoch,
    /// A new epoch must be above this: workers have seen it.
    floor: Epoch,
    /// The newest epoch that this node has led. It is not led twice: what was known of it is dropped.
    led: Epoch,
}

impl Election {
    /// A node that has not looked yet.
    #[must_use]
    pub fn new(
        me: Incarnation,
        exclusive: bool,
        settings: Settings,
        rules: Rules,
        seed: u64,
    ) -> Election {
        Election {
            me,
            exclusive,
            settings,
            rules,
            random: Stream::new(seed),
            standing: Standing::Following { look_at: Time::default() },
            under_way: None,
            overtaken: Vec::new(),
            seen: Epoch::default(),
            floor: Epoch::default(),
            led: Epoch::default(),
        }
    }

    /// When to poll again.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let trust = match self.standing {
            Standing::Leading { trust_until, .. } => trust_until,
            Standing::Following { .. } | Standing::Retired => None,
        };
        let act = match self.standing {
            _ if self.under_way.is_some() => None,
            Standing::Following { look_at } => Some(look_at),
            Standing::Leading { renew_at, .. } => (!self.exclusive).then_some(renew_at),
            Standing::Retired => None,
        };
        match (trust, act) {
            (Some(trust), Some(act)) => Some(trust.min(act)),
            (one, other) => one.or(other),
        }
    }

    /// Whether the lease may have run out without a renewal that was heard; then nothing is decided any more.
    pub fn lapse(&mut self, now: Time) -> Turn {
        match self.standing {
            Standing::Leading { term, trust_until: Some(until), .. }
                if until <= now && self.rules.hold(Rule::TrustLapses) =>
            {
                self.follow(now);
                Turn::Lost(term)
            }
            _ => Turn::Same,
        }
    }

    /// Does what is due.
    pub fn poll(&mut self, now: Time, next: &mut EffectId, out: &mut Vec<MasterCommand>) {
        if self.under_way.is_some() {
            return;
        }
        match self.standing {
            Standing::Following { look_at } if look_at <= now => {
                self.ask(now, Asked::Look, StoreOp::ReadTerm, next, out);
            }
            Standing::Leading { term, renew_at, .. } if renew_at <= now && !self.exclusive => {
                let op = StoreOp::RenewTerm { term, ttl: self.settings.leader_ttl };
                self.ask(now, Asked::Renew, op, next, out);
            }
            Standing::Following { .. } | Standing::Leading { .. } | Standing::Retired => {}
        }
    }

    /// A worker has seen a term that this leader's store does not show: either another leads, or the store
    /// has gone back in time. Taking the next epoch tells which.
    pub fn retake(
        &mut self,
        now: Time,
        seen: Epoch,
        next: &mut EffectId,
        out: &mut Vec<MasterCommand>,
    ) {
        self.floor = self.floor.max(seen);
        let Standing::Leading { term, .. } = self.standing else {
            return;
        };
        let op = self.take(term.epoch, true);
        self.ask(now, Asked::Take, op, next, out);
    }

    /// Gives the lease up; the answer is [`Turn::Released`].
    pub fn release(&mut self, now: Time, next: &mut EffectId, out: &mut Vec<MasterCommand>) {
        if let Standing::Leading { term, .. } = self.standing {
            self.ask(now, Asked::Release, StoreOp::ReleaseTerm(term), next, out);
        }
        self.standing = Standing::Retired;
    }

    /// Another term was found in the store.
    pub fn deposed(&mut self, now: Time) -> Turn {
        match self.standing {
            Standing::Leading { term, .. } => {
                self.follow(now + self.settings.leader_renew);
                Turn::Lost(term)
            }
            Standing::Following { .. } | Standing::Retired => Turn::Same,
        }
    }

    /// Whether this effect is the election's own.
    #[must_use]
    pub fn ordered(&self, effect: EffectId) -> bool {
        self.under_way.is_some_and(|(own, _, _)| own == effect) || self.overtaken.contains(&effect)
    }

    /// The newest epoch that this node has seen.
    #[must_use]
    pub fn seen(&self) -> Epoch {
        self.seen
    }

    /// The store's answer to an order of the election's own.
    pub fn on_answer(
        &mut self,
        now: Time,
        effect: EffectId,
        result: StoreResult,
        next: &mut EffectId,
        out: &mut Vec<MasterCommand>,
    ) -> Turn {
        if let Some(place) = self.overtaken.iter().position(|overtaken| *overtaken == effect) {
            self.overtaken.swap_remove(place);
            return Turn::Same;
        }
        let Some((_, asked, sent_at)) = self.under_way.take() else {
            return Turn::Same;
        };
        self.note(&result);
        match (asked, result) {
            (Asked::Look, StoreResult::Answer(StoreAnswer::TermIs(row))) => {
                self.saw(now, sent_at, row, next, out)
            }
            (Asked::Take, StoreResult::Answer(StoreAnswer::Taken(term))) => {
                self.lead(now, term, sent_at + self.settings.leader_ttl)
            }
            (Asked::Take, StoreResult::Answer(StoreAnswer::NotTaken(row))) => {
                self.lost_to(now, row)
            }
            // Whose incarnation stands in the row tells whether it was taken.
            (Asked::Take, _) => {
                let turn = self.deposed(now);
                self.follow(now);
                turn
            }
            (Asked::Renew, StoreResult::Answer(StoreAnswer::Renewed)) => self.renewed(sent_at),
            (Asked::Renew, StoreResult::Answer(StoreAnswer::Deposed(_))) => self.deposed(now),
            (Asked::Look | Asked::Renew, _) => self.later(now),
            (Asked::Release, _) => Turn::Released,
        }
    }

    fn note(&mut self, result: &StoreResult) {
        if let StoreResult::Answer(
            StoreAnswer::TermIs(row) | StoreAnswer::NotTaken(row) | StoreAnswer::Deposed(row),
        ) = result
        {
            self.seen = self.seen.max(row.term.epoch);
        }
    }

    fn saw(
        &mut self,
        now: Time,
        sent_at: Time,
        row: TermRow,
        next: &mut EffectId,
        out: &mut Vec<MasterCommand>,
    ) -> Turn {
        if row.term.leader == self.me && row.left > Millis::ZERO {
            if row.term.epoch > self.led {
                return self.lead(now, row.term, sent_at + row.left);
            }
            // Its own term, which it has dropped: claims of it may be anywhere, so it begins the next.
            let op = self.take(row.term.epoch, true);
            self.ask(now, Asked::Take, op, next, out);
            return Turn::Same;
        }
        if self.exclusive || row.left == Millis::ZERO {
            let op = self.take(row.term.epoch, self.exclusive);
            self.ask(now, Asked::Take, op, next, out);
        } else {
            self.look_again(now, row.left);
        }
        Turn::Same
    }

    fn take(&self, after: Epoch, seize: bool) -> StoreOp {
        StoreOp::TakeTerm {
            after,
            floor: self.floor,
            leader: self.me,
            ttl: self.settings.leader_ttl,
            seize,
        }
    }

    fn lead(&mut self, now: Time, term: Term, trust_until: Time) -> Turn {
        self.seen = self.seen.max(term.epoch);
        self.led = self.led.max(term.epoch);
        self.standing = Standing::Leading {
            term,
            renew_at: now + self.settings.leader_renew,
            trust_until: (!self.exclusive).then_some(trust_until),
        };
        Turn::Won(term)
    }

    fn lost_to(&mut self, now: Time, row: TermRow) -> Turn {
        let turn = self.deposed(now);
        self.look_again(now, row.left);
        turn
    }

    fn renewed(&mut self, sent_at: Time) -> Turn {
        if let Standing::Leading { renew_at, trust_until, .. } = &mut self.standing {
            *trust_until = Some(sent_at + self.settings.leader_ttl);
            *renew_at = sent_at + self.settings.leader_renew;
        }
        Turn::Same
    }

    fn later(&mut self, now: Time) -> Turn {
        let later = now + self.settings.leader_renew;
        match &mut self.standing {
            Standing::Following { look_at } => *look_at = later,
            Standing::Leading { renew_at, .. } => *renew_at = later,
            Standing::Retired => {}
        }
        Turn::Same
    }

    /// Soon enough for a lease that is given up, and not in step with the other nodes.
    fn look_again(&mut self, now: Time, left: Millis) {
        let wait = left.min(self.settings.leader_renew);
        let apart = Millis(self.random.up_to(self.settings.leader_renew.0 / 10));
        self.follow(now + wait + apart);
    }

    fn follow(&mut self, look_at: Time) {
        self.standing = Standing::Following { look_at };
    }

    fn ask(
        &mut self,
        now: Time,
        asked: Asked,
        op: StoreOp,
        next: &mut EffectId,
        out: &mut Vec<MasterCommand>,
    ) {
        let effect = *next;
        next.0 += 1;
        let before = self.under_way.replace((effect, asked, now));
        self.overtaken.extend(before.map(|(effect, _, _)| effect));
        out.push(MasterCommand::Store(effect, op));
    }
}
