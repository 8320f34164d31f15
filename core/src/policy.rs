//! Every timing, with unit, default, reason and source; unsafe combinations cannot be built.

use thiserror::Error;

use crate::time::Millis;

/// Timings as a user may write them. [`Policy::new`] checks them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Settings {
    /// How often a worker says that it lives. Default 1 s. RL-Scheduler: 10 s.
    pub heartbeat: Millis,
    /// Silence after which a worker is given up. Default 4.5 s: four beats of 1 s and a half, so that no
    /// beat ties with the expiry. RL-Scheduler: 30 s, `worker:{id}:hb`. Refused below 2.5 beats.
    pub heartbeat_ttl: Millis,
    /// Silence after which a worker gets no new tasks. Default 2.5 s.
    pub suspect_after: Millis,
    /// How long a closed connection may stay closed before its tasks move. Default 250 ms: a reconnect
    /// takes 50 ms. The source systems ignored a closed connection.
    pub disconnect_grace: Millis,
    /// How long the lease of a task holds without renewal. Default 15.5 s. RL-Scheduler: 120 s.
    pub task_lease: Millis,
    /// How long a worker may take to answer an order to run a task. Default 2 s.
    pub accept_timeout: Millis,
    /// How often such an order is sent before it is given up. Default 3.
    pub accept_tries: u8,
    /// How long a new leader waits for the workers of running tasks. Default 5 s: the longest reconnect
    /// delay, one heartbeat and two seconds more.
    pub adopt_grace: Millis,
    /// How far a live heartbeat key may lengthen that. Default two heartbeat TTLs.
    pub adopt_max: Millis,
    /// The first reconnect delay. Default 50 ms. RL-Scheduler: 1 s.
    pub reconnect_min: Millis,
    /// The longest reconnect delay. Default 2 s. RL-Scheduler: 60 s.
    pub reconnect_max: Millis,
    /// How the delay is spread. Default full jitter. RL-Scheduler: ±25 %.
    pub jitter: Jitter,
    /// How long the leader's lease holds without renewal. Default 3.5 s. Full-sync scheduler: 60 s.
    pub leader_ttl: Millis,
    /// How often the leader renews. Default 1 s. Full-sync scheduler: 5 s.
    pub leader_renew: Millis,
    /// How long a worker waits for an outcome's acknowledgement before it says it again. Default 5 s.
    pub result_timeout: Millis,
    /// How long a live worker may take to answer when another asks for its name. Default 1 s.
    pub ping_timeout: Millis,
    /// The first delay before a failed task is tried again. Default 1 s, doubled each time.
    pub retry_min: Millis,
    /// The longest delay before a failed task is tried again. Default 1 min.
    pub retry_max: Millis,
    /// How long a worker that declined a task is not asked for it again. Default 1 s.
    pub decline_pause: Millis,
    /// How long an attempt must run before its start is written to the store. Default 1 s: short
    /// tasks never pay for it.
    pub started_mark_after: Millis,
    /// How much waiting makes up for one step of priority. Default 1 min, so nothing waits for ever.
    pub ageing_step: Millis,
    /// How often the leader compares its memory with the store. Default 30 s.
    pub reconcile: Millis,
}

/// How a delay is spread so that peers do not act in step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Jitter {
    /// Anything from zero to the delay.
    Full,
    /// The delay, a quarter more or less.
    Quarter,
}

impl Settings {
    /// Sub-second recovery; what Tenure uses unless told otherwise.
    pub const DEFAULT: Settings = Settings {
        heartbeat: Millis(1_000),
        heartbeat_ttl: Millis(4_500),
        suspect_after: Millis(2_500),
        disconnect_grace: Millis(250),
        task_lease: Millis(15_500),
        accept_timeout: Millis(2_000),
        accept_tries: 3,
        adopt_grace: Millis(5_000),
        adopt_max: Millis(9_000),
        reconnect_min: Millis(50),
        reconnect_max: Millis(2_000),
        jitter: Jitter::Full,
        leader_ttl: Millis(3_500),
        leader_renew: Millis(1_000),
        result_timeout: Millis(5_000),
        ping_timeout: Millis(1_000),
        retry_min: Millis(1_000),
        retry_max: Millis(60_000),
        decline_pause: Millis(1_000),
        started_mark_after: Millis(1_000),
        ageing_step: Millis(60_000),
        reconcile: Millis(30_000),
    };

    /// The values of the two source systems where they have one. Adopt grace is 90 s because their
    /// workers return late.
    pub const DOCUMENTED: Settings = Settings {
        heartbeat: Millis(10_000),
        heartbeat_ttl: Millis(30_000),
        suspect_after: Millis(25_000),
        task_lease: Millis(120_000),
        adopt_grace: Millis(90_000),
        adopt_max: Millis(90_000),
        reconnect_min: Millis(1_000),
        reconnect_max: Millis(60_000),
        jitter: Jitter::Quarter,
        leader_ttl: Millis(60_000),
        leader_renew: Millis(5_000),
        ..Settings::DEFAULT
    };
}

/// Settings that were checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Policy(Settings);

/// A combination of timings under which the protocol would misjudge healthy workers or leaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum UnsafeSettings {
    /// Too few beats fit into the TTL.
    #[error(
        "heartbeat_ttl {ttl} is under 2.5 heartbeats of {heartbeat}; one lost beat would cost a worker its tasks: raise heartbeat_ttl to at least {least}"
    )]
    TtlTooShort {
        /// The TTL.
        ttl: Millis,
        /// The heartbeat.
        heartbeat: Millis,
        /// The least TTL for it.
        least: Millis,
    },
    /// Suspicion must come between one beat and the TTL.
    #[error(
        "suspect_after {suspect} must be over one heartbeat ({heartbeat}) and at most heartbeat_ttl ({ttl})"
    )]
    SuspectOutOfRange {
        /// The setting.
        suspect: Millis,
        /// The heartbeat.
        heartbeat: Millis,
        /// The TTL.
        ttl: Millis,
    },
    /// Workers could not be back in time.
    #[error(
        "adopt_grace {grace} is under reconnect_max + heartbeat + 1 s = {least}; workers could not be back after a restart of the master: raise adopt_grace or lower reconnect_max"
    )]
    AdoptGraceTooShort {
        /// The setting.
        grace: Millis,
        /// The least that is safe.
        least: Millis,
    },
    /// `adopt_max` bounds `adopt_grace`.
    #[error("adopt_max {max} is under adopt_grace {grace}; raise adopt_max")]
    AdoptMaxTooShort {
        /// The setting.
        max: Millis,
        /// The grace.
        grace: Millis,
    },
    /// Too few renewals fit into the leader's TTL.
    #[error(
        "leader_ttl {ttl} is under 3 renewals of {renew}; raise it to at least {least}, or lower leader_renew"
    )]
    LeaderTtlTooShort {
        /// The setting.
        ttl: Millis,
        /// The renewal interval.
        renew: Millis,
        /// The least that is safe.
        least: Millis,
    },
    /// A task's lease must outlive a worker's heartbeat.
    #[error("task_lease {lease} is under heartbeat_ttl {ttl}; raise task_lease")]
    TaskLeaseTooShort {
        /// The setting.
        lease: Millis,
        /// The TTL.
        ttl: Millis,
    },
    /// The shorter delay must not be the longer.
    #[error("{name}_min {min} is over {name}_max {max}; swap them")]
    MinOverMax {
        /// `reconnect` or `retry`.
        name: &'static str,
        /// The lower bound.
        min: Millis,
        /// The upper bound.
        max: Millis,
    },
    /// Some intervals cannot be nothing.
    #[error("{name} is 0; set it to at least 1 ms")]
    Zero {
        /// Which setting.
        name: &'static str,
    },
}

impl Policy {
    /// Checks settings.
    ///
    /// # Errors
    /// [`UnsafeSettings`] names the first value that does not fit, and the value that would.
    pub fn new(settings: Settings) -> Result<Policy, UnsafeSettings> {
        check_intervals(&settings)?;
        check_worker_timings(&settings)?;
        check_leader_timings(&settings)?;
        Ok(Policy(settings))
    }

    /// The values.
    #[must_use]
    pub fn settings(self) -> Settings {
        self.0
    }
}

impl Default for Policy {
    fn default() -> Policy {
        Policy(Settings::DEFAULT)
    }
}

fn check_intervals(s: &Settings) -> Result<(), UnsafeSettings> {
    let not_zero = [
        ("heartbeat", s.heartbeat),
        ("accept_timeout", s.accept_timeout),
        ("reconnect_min", s.reconnect_min),
        ("leader_renew", s.leader_renew),
        ("result_timeout", s.result_timeout),
        ("retry_min", s.retry_min),
        ("decline_pause", s.decline_pause),
        ("ageing_step", s.ageing_step),
        ("reconcile", s.reconcile),
    ];
    for (name, value) in not_zero {
        if value == Millis::ZERO {
            return Err(UnsafeSettings::Zero { name });
        }
    }
    if s.accept_tries == 0 {
        return Err(UnsafeSettings::Zero { name: "accept_tries" });
    }
    for (name, min, max) in
        [("reconnect", s.reconnect_min, s.reconnect_max), ("retry", s.retry_min, s.retry_max)]
    {
        if min > max {
            return Err(UnsafeSettings::MinOverMax { name, min, max });
        }
    }
    Ok(())
}

fn check_worker_timings(s: &Settings) -> Result<(), UnsafeSettings> {
    let least = Millis(s.heartbeat.0.saturating_mul(5).div_ceil(2));
    if s.heartbeat_ttl < least {
        let (ttl, heartbeat) = (s.heartbeat_ttl, s.heartbeat);
        return Err(UnsafeSettings::TtlTooShort { ttl, heartbeat, least });
    }
    if s.suspect_after <= s.heartbeat || s.suspect_after > s.heartbeat_ttl {
        return Err(UnsafeSettings::SuspectOutOfRange {
            suspect: s.suspect_after,
            heartbeat: s.heartbeat,
            ttl: s.heartbeat_ttl,
        });
    }
    let least = Millis(s.reconnect_max.0 + s.heartbeat.0 + 1_000);
    if s.adopt_grace < least {
        return Err(UnsafeSettings::AdoptGraceTooShort { grace: s.adopt_grace, least });
    }
    if s.adopt_max < s.adopt_grace {
        return Err(UnsafeSettings::AdoptMaxTooShort { max: s.adopt_max, grace: s.adopt_grace });
    }
    if s.task_lease < s.heartbeat_ttl {
        return Err(UnsafeSettings::TaskLeaseTooShort {
            lease: s.task_lease,
            ttl: s.heartbeat_ttl,
        });
    }
    Ok(())
}

fn check_leader_timings(s: &Settings) -> Result<(), UnsafeSettings> {
    let least = s.leader_renew.times(3);
    if s.leader_ttl < least {
        let (ttl, renew) = (s.leader_ttl, s.leader_renew);
        return Err(UnsafeSettings::LeaderTtlTooShort { ttl, renew, least });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_presets_are_safe() {
        assert!(Policy::new(Settings::DEFAULT).is_ok());
        assert!(Policy::new(Settings::DOCUMENTED).is_ok());
    }

    #[test]
    fn a_ttl_under_two_and_a_half_heartbeats_is_refused() {
        let settings = Settings { heartbeat_ttl: Millis(2_499), ..Settings::DEFAULT };
        assert_eq!(
            Policy::new(settings),
            Err(UnsafeSettings::TtlTooShort {
                ttl: Millis(2_499),
                heartbeat: Millis(1_000),
                least: Millis(2_500)
            })
        );
    }

    #[test]
    fn an_adopt_grace_that_workers_cannot_meet_is_refused() {
        let settings = Settings { adopt_grace: Millis(3_999), ..Settings::DEFAULT };
        assert_eq!(
            Policy::new(settings),
            Err(UnsafeSettings::AdoptGraceTooShort { grace: Millis(3_999), least: Millis(4_000) })
        );
    }
}
