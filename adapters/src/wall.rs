//! The machine's wall clock, for what outlives a process and is compared by the next.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tenure_core::time::Time;

/// A wall clock that a test can replace.
pub type WallClock = Arc<dyn Fn() -> Time + Send + Sync>;

/// The machine's.
#[must_use]
pub fn machine_clock() -> WallClock {
    Arc::new(wall_time)
}

fn wall_time() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
