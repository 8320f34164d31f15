//! Points in time and lengths of it, both in milliseconds, never mixed.

use core::fmt;
use core::ops::{Add, Sub};

/// A point in time: milliseconds since 1970 UTC as the process's own monotonic clock sees them.
///
/// An adapter reads the wall clock once at start and adds monotonic time to it, so within a process
/// this never steps; between processes it is only compared where the store's clock judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);

/// A length of time in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(pub u64);

impl Time {
    /// How long ago `earlier` was; zero if it has not been yet.
    #[must_use]
    pub fn since(self, earlier: Time) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }
}

impl Millis {
    /// No time at all.
    pub const ZERO: Millis = Millis(0);

    /// This many times the length, as long as a length can be at most.
    #[must_use]
    pub fn times(self, factor: u64) -> Millis {
        Millis(self.0.saturating_mul(factor))
    }
}

impl Add<Millis> for Time {
    type Output = Time;
    fn add(self, length: Millis) -> Time {
        Time(self.0.saturating_add(length.0))
    }
}

impl Sub<Millis> for Time {
    type Output = Time;
    fn sub(self, length: Millis) -> Time {
        Time(self.0.saturating_sub(length.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}
