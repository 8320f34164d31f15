//! What peers do wrong: counted always, told in few lines.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Lines a second at most: a scanner that tries every port must not fill a disk.
const LINES: u32 = 10;
const SECOND: Duration = Duration::from_secs(1);

/// Counters by kind, and a limit on lines.
#[derive(Debug, Default)]
pub struct Complaints {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    counts: BTreeMap<&'static str, u64>,
    since: Option<Instant>,
    told: u32,
    kept_back: u64,
}

impl Complaints {
    /// Nothing so far.
    #[must_use]
    pub fn new() -> Complaints {
        Complaints::default()
    }

    /// Counts, and says it with the peer's address unless there were too many lines just before.
    pub fn raise(&self, kind: &'static str, peer: SocketAddr, what: &dyn Display) {
        let kept_back = {
            let mut state = self.lock();
            *state.counts.entry(kind).or_default() += 1;
            match state.may_tell(Instant::now()) {
                Some(kept_back) => kept_back,
                None => return,
            }
        };
        if kept_back > 0 {
            tracing::warn!("{kept_back} more complaints about peers were counted and not told");
        }
        tracing::warn!("{peer}: {what} ({kind})");
    }

    /// Counts only.
    pub fn count(&self, kind: &'static str) {
        *self.lock().counts.entry(kind).or_default() += 1;
    }

    /// How often each kind occurred.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.lock().counts.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Counters are whole after every step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether a line may be told, and how many were not since the last one.
    fn may_tell(&mut self, now: Instant) -> Option<u64> {
        if self.since.is_none_or(|since| now.duration_since(since) >= SECOND) {
            self.since = Some(now);
            self.told = 0;
        }
        if self.told >= LINES {
            self.kept_back += 1;
            return None;
        }
        self.told += 1;
        Some(std::mem::take(&mut self.kept_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_lines_a_second_are_told_and_the_rest_is_counted() {
        let mut state = State::default();
        let start = Instant::now();
        let told = (0..1_000).filter(|_| state.may_tell(start).is_some()).count();
        assert_eq!(told, 10);
        assert_eq!(state.may_tell(start + SECOND), Some(990));
    }
}
