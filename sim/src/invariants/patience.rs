//! docs/fencing.md, "Worker gone" and "Takeover": a worker is given up only when its patience is over, and
//! then it is: what a replaced incarnation held is ended at once, and so is an order that is never answered.
//! Judged from what really happened: when the term began, when the leader last heard of the worker, when
//! it greeted its next incarnation, and when it first gave the order.

use tenure_core::ids::{AttemptRef, Epoch, Holder, WorkerId};
use tenure_core::policy::Settings;
use tenure_core::store::LoseReason;
use tenure_core::time::{Millis, Time};

use super::Checked;

/// When terms began, and when each leader heard of each worker.
#[derive(Debug, Default)]
pub struct Patience {
    terms: Vec<(Epoch, usize, Time)>,
    heard: Vec<(usize, WorkerId, Time)>,
    /// Every process of a worker, in the order in which they started.
    born: Vec<Holder>,
    greeted: Vec<(usize, Holder, Time)>,
    ordered: Vec<(usize, AttemptRef, Time)>,
}

/// What is to happen at once may still wait for one write under way and for one look at an unknown one.
const AT_ONCE: Millis = Millis(1_500);

impl Patience {
    /// Forgets the history.
    pub fn reset(&mut self) {
        self.terms.clear();
        self.heard.clear();
        self.born.clear();
        self.greeted.clear();
        self.ordered.clear();
    }

    /// A master took a term.
    pub fn on_taken(&mut self, epoch: Epoch, master: usize, now: Time) {
        self.terms.push((epoch, master, now));
    }

    /// A master heard of a worker.
    pub fn on_heard(&mut self, master: usize, worker: WorkerId, now: Time) {
        match self.heard.iter_mut().find(|(by, of, _)| *by == master && *of == worker) {
            Some((_, _, last)) => *last = now,
            None => self.heard.push((master, worker, now)),
        }
    }

    /// A worker's process starts.
    pub fn on_born(&mut self, holder: Holder) {
        self.born.push(holder);
    }

    /// A master greeted this process of a worker.
    pub fn on_greeted(&mut self, master: usize, holder: Holder, now: Time) {
        self.greeted.push((master, holder, now));
    }

    /// A master ordered an attempt to be run, perhaps not for the first time.
    pub fn on_ordered(&mut self, master: usize, at: AttemptRef, now: Time) {
        if !self.ordered.iter().any(|(by, of, _)| (*by, *of) == (master, at)) {
            self.ordered.push((master, at, now));
        }
    }

    /// A master goes on after a pause. It could not give anything up meanwhile: its orders count from here.
    pub fn on_resumed(&mut self, master: usize, now: Time) {
        for (_, _, first) in self.ordered.iter_mut().filter(|(by, _, _)| *by == master) {
            *first = now;
        }
    }

    /// A master hears that an attempt was accepted; `open` tells whether it is still the task's.
    pub fn on_accepted(
        &self,
        settings: &Settings,
        master: usize,
        at: AttemptRef,
        open: bool,
        now: Time,
    ) -> Checked {
        let first = self.ordered.iter().find(|(by, of, _)| (*by, *of) == (master, at));
        let tries = settings.accept_timeout.times(u64::from(settings.accept_tries));
        let late = first.is_some_and(|(_, _, first)| now.since(*first) > tries) && open;
        let by = first.map_or(now, |(_, _, first)| *first + tries + AT_ONCE);
        if late && now > by {
            return Err("an order was not answered for all its tries, and was not given up");
        }
        Ok(())
    }

    /// An attempt of this process is to be given up by this master.
    pub fn on_given_up(&self, master: usize, holder: Holder, now: Time) -> Checked {
        let next = self.greeted.iter().find(|(by, greeted, _)| {
            *by == master
                && greeted.worker == holder.worker
                && greeted.incarnation != holder.incarnation
                && self.is_later(holder, *greeted)
        });
        match next {
            Some((_, _, at)) if now.since(*at) > AT_ONCE => {
                Err("what a replaced incarnation held waited for its patience")
            }
            Some(_) | None => Ok(()),
        }
    }

    fn is_later(&self, before: Holder, after: Holder) -> bool {
        let born = |holder| self.born.iter().position(|born| *born == holder);
        born(before) < born(after)
    }

    /// An attempt was given up under this epoch.
    pub fn on_lost(
        &self,
        settings: &Settings,
        epoch: Epoch,
        worker: WorkerId,
        reason: LoseReason,
        now: Time,
    ) -> Checked {
        let Some((_, master, began)) = self.terms.iter().find(|(of, _, _)| *of == epoch) else {
            return Ok(());
        };
        match reason {
            LoseReason::NotAdopted if now.since(*began) < settings.adopt_grace => {
                Err("a new leader gave a worker up before its adopt grace was over")
            }
            LoseReason::Silent => {
                let heard = self.heard.iter().find(|(by, of, _)| by == master && *of == worker);
                let last = heard.map_or(*began, |(_, _, last)| *last);
                if now.since(last) < settings.heartbeat_ttl {
                    return Err("a worker was given up as silent that was heard of within the TTL");
                }
                Ok(())
            }
            LoseReason::NotAdopted
            | LoseReason::Disconnected
            | LoseReason::WorkerRestarted
            | LoseReason::NoAnswer
            | LoseReason::NotInInventory => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn giving_up_too_early_is_seen() {
        let settings = Settings::DEFAULT;
        let (epoch, worker) = (Epoch(1), WorkerId(1));
        let mut patience = Patience::default();
        patience.on_taken(epoch, 0, Time(1_000));
        patience.on_heard(0, worker, Time(2_000));
        let lost = |reason, at| patience.on_lost(&settings, epoch, worker, reason, Time(at));
        assert!(lost(LoseReason::NotAdopted, 5_999).is_err());
        assert_eq!(lost(LoseReason::NotAdopted, 6_000), Ok(()));
        assert!(lost(LoseReason::Silent, 6_499).is_err());
        assert_eq!(lost(LoseReason::Silent, 6_500), Ok(()));
    }
    #[test]
    fn an_order_that_is_not_given_up_is_seen() {
        let settings = Settings::DEFAULT;
        let at = super::super::samples::AT;
        let mut patience = Patience::default();
        patience.on_ordered(0, at, Time(1_000));
        let accepted = |open, now| patience.on_accepted(&settings, 0, at, open, Time(now));
        assert_eq!(accepted(true, 7_000), Ok(()));
        assert_eq!(accepted(false, 9_000), Ok(()));
        assert!(accepted(true, 9_000).is_err());
    }

    #[test]
    fn a_master_that_stood_still_has_its_time_anew() {
        let settings = Settings::DEFAULT;
        let at = super::super::samples::AT;
        let mut patience = Patience::default();
        patience.on_ordered(0, at, Time(1_000));
        patience.on_resumed(1, Time(8_000));
        assert!(patience.on_accepted(&settings, 0, at, true, Time(9_000)).is_err());
        patience.on_resumed(0, Time(8_000));
        assert_eq!(patience.on_accepted(&settings, 0, at, true, Time(9_000)), Ok(()));
    }

    #[test]
    fn a_replaced_incarnation_that_is_waited_for_is_seen() {
        let old = super::super::samples::HOLDER;
        let new = Holder { incarnation: tenure_core::ids::Incarnation(12), ..old };
        let mut patience = Patience::default();
        patience.on_born(old);
        patience.on_born(new);
        patience.on_greeted(0, old, Time(0));
        assert_eq!(patience.on_given_up(0, old, Time(9_000)), Ok(()));
        patience.on_greeted(0, new, Time(5_000));
        assert_eq!(patience.on_given_up(0, old, Time(5_010)), Ok(()));
        assert!(patience.on_given_up(0, old, Time(8_000)).is_err());
    }
}
