//! Feeds bytes to a codec in parts, as a socket would.

use bytes::BytesMut;
use tenure_proto::{Decoded, FrameCodec, FrameError, Limits};

/// All that a stream of these parts holds, up to its end.
pub(crate) fn read_all(limits: Limits, parts: &[&[u8]]) -> Result<Vec<Decoded>, FrameError> {
    let mut codec = FrameCodec::new(limits);
    let mut buffer = BytesMut::new();
    let mut all = Vec::new();
    for part in parts {
        buffer.extend_from_slice(part);
        while let Some(decoded) = codec.read(&mut buffer)? {
            all.push(decoded);
        }
    }
    codec.finish(&buffer)?;
    Ok(all)
}

/// The same bytes in parts of 1 to 97 bytes, a different cut for each seed.
pub(crate) fn in_random_cuts(mut bytes: &[u8], seed: u64) -> Vec<&[u8]> {
    let mut random = Random(seed);
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let length = 1 + random.below(97);
        let (part, rest) = bytes.split_at(length.min(bytes.len()));
        parts.push(part);
        bytes = rest;
    }
    parts
}

/// A small generator, so that a failure names a seed. Constants of Knuth's MMIX.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The low bits of such a generator repeat too soon.
        (self.0 >> 33) as usize % end
    }
}
