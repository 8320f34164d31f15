//! A rolling hash over everything that happens: two runs are the same if and only if it is.

const FACTOR: u64 = 0x517c_c1b7_2722_0a95;

/// The hash of one history so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TraceHash(u64);

impl TraceHash {
    /// Adds a step: when, at which node, what kind, about what.
    #[inline]
    pub fn add(&mut self, time: u64, node: u8, kind: u8, about: u64) {
        let step = (time << 16) ^ (u64::from(node) << 8) ^ u64::from(kind);
        self.word(step);
        self.word(about);
    }

    #[inline]
    fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    }

    /// The hash, mixed so that sums of many keep every bit.
    #[must_use]
    pub fn finish(self) -> u64 {
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_step_counts() {
        let hash = |time, node, kind, about| {
            let mut hash = TraceHash::default();
            hash.add(time, node, kind, about);
            hash.finish()
        };
        let base = hash(1, 2, 3, 4);
        for other in [hash(2, 2, 3, 4), hash(1, 3, 3, 4), hash(1, 2, 4, 4), hash(1, 2, 3, 5)] {
            assert_ne!(base, other);
        }
    }
}
