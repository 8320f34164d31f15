//! Time as one process sees it.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tenure_core::time::{Millis, Time};

/// The wall clock, read once, and monotonic time since: it never steps, whatever is done to the machine's clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    wall: Time,
    started: Instant,
}

impl Clock {
    /// A clock that begins at the machine's time.
    #[must_use]
    pub fn start() -> Clock {
        // A machine whose clock stands before 1970 counts from there; only lengths of time matter to decisions.
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { wall: Time(millis(wall).0), started: Instant::now() }
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.wall + millis(self.started.elapsed())
    }

    /// The instant at which [`Clock::now`] is at `time`, for timers of the runtime. Never so early that
    /// `time` has not come yet.
    #[must_use]
    pub fn instant(&self, time: Time) -> Instant {
        self.started + Duration::from_millis(time.since(self.wall).0)
    }
}

/// A length of time in core's unit, rounded down.
#[must_use]
pub fn millis(length: Duration) -> Millis {
    Millis(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_come_at_its_instant() {
        let clock = Clock::start();
        let soon = clock.now() + Millis(3);
        while Instant::now() < clock.instant(soon) {
            std::thread::yield_now();
        }
        assert!(clock.now() >= soon);
    }

    #[test]
    fn a_time_before_the_start_has_come_at_once() {
        let clock = Clock::start();
        assert!(clock.instant(Time(0)) <= Instant::now());
    }
}
