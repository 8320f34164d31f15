//! DESIGN.md section 4, "Worker gone" and "Takeover": a worker is given up only when its patience is over.
//! Judged from what really happened: when the term began, and when the leader last heard of the worker.

use tenure_core::ids::{Epoch, WorkerId};
use tenure_core::policy::Settings;
use tenure_core::store::LoseReason;
use tenure_core::time::Time;

use super::Checked;

/// When terms began, and when each leader heard of each worker.
#[derive(Debug, Default)]
pub struct Patience {
    terms: Vec<(Epoch, usize, Time)>,
    heard: Vec<(usize, WorkerId, Time)>,
}

impl Patience {
    /// Forgets the history.
    pub fn reset(&mut self) {
        self.terms.clear();
        self.heard.clear();
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
}
