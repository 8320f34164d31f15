//! Numbers that spread peers in time. Drawn from a seed that the caller passes in, so a run can be repeated.

use crate::policy::Jitter;
use crate::time::Millis;

/// A stream of numbers from a seed (SplitMix64: the same on every machine).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stream(u64);

impl Stream {
    /// The stream of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Stream {
        Stream(seed)
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from 0 to `most`, both included.
    pub fn up_to(&mut self, most: u64) -> u64 {
        match most.checked_add(1) {
            Some(bound) => self.next_u64() % bound,
            None => self.next_u64(),
        }
    }

    /// The delay, spread.
    pub fn spread(&mut self, delay: Millis, jitter: Jitter) -> Millis {
        match jitter {
            Jitter::Full => Millis(self.up_to(delay.0)),
            Jitter::Quarter => {
                let quarter = delay.0 / 4;
                Millis(delay.0 - quarter + self.up_to(quarter.saturating_mul(2)))
            }
        }
    }
}

/// `first`, doubled `times` times, but at most `most`.
#[must_use]
pub fn doubled(first: Millis, times: u32, most: Millis) -> Millis {
    let factor = 1_u64.checked_shl(times).unwrap_or(u64::MAX);
    Millis(first.0.saturating_mul(factor).min(most.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubled_delay_never_overflows_and_never_shrinks() {
        let (first, most) = (Millis(1_000), Millis(3_600_000));
        let mut last = Millis::ZERO;
        for times in (0..10_000).chain([u32::MAX]) {
            let delay = doubled(first, times, most);
            assert!(delay >= last && delay <= most && delay >= first);
            last = delay;
        }
    }

    #[test]
    fn a_quarter_of_jitter_stays_within_a_quarter() {
        let mut stream = Stream::new(7);
        for _ in 0..1_000 {
            let delay = stream.spread(Millis(1_000), Jitter::Quarter);
            assert!((750..=1_250).contains(&delay.0), "{delay}");
        }
    }
}
