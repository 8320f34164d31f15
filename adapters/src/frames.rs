//! Records in a file that is only ever added to: mark, length, checksum, body.
//!
//! A write that a crash cut short is seen by its checksum. A damaged place in the middle (a bad sector) costs
//! what stands there and nothing after it.

use std::ops::Range;

/// Begins every frame, so that after a damaged place the next frame is found without trying every byte.
const MARK: [u8; 4] = [0xF5, b'T', b'N', 0xF5];
/// Bytes before a body: the mark, its length and its CRC-32, both little-endian.
pub(crate) const FRAME_HEAD: usize = 12;
/// No record is larger; a larger length is damage.
pub(crate) const BODY_MAX: usize = 64 << 20;

/// What a file of frames holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Scanned {
    /// Where the sound bodies are.
    pub(crate) bodies: Vec<Range<usize>>,
    /// Where the last sound frame ends: what follows is a torn tail.
    pub(crate) end: usize,
    /// Bytes before that end that belong to no sound frame.
    pub(crate) damaged: usize,
}

/// Appends one frame.
pub(crate) fn put(out: &mut Vec<u8>, body: &[u8]) {
    debug_assert!(!body.is_empty() && body.len() <= BODY_MAX);
    let length = u32::try_from(body.len()).expect("a body is at most 64 MiB");
    out.extend_from_slice(&MARK);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&crc32(body).to_le_bytes());
    out.extend_from_slice(body);
}

/// Finds the sound frames from `start` on.
pub(crate) fn scan(bytes: &[u8], start: usize) -> Scanned {
    let mut scanned = Scanned { end: start, ..Scanned::default() };
    let mut at = start;
    while at < bytes.len() {
        match frame_at(bytes, at) {
            Some(body) => {
                scanned.damaged += at - scanned.end;
                at = body.end;
                scanned.end = at;
                scanned.bodies.push(body);
            }
            None => at += 1,
        }
    }
    scanned
}

fn frame_at(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let word = |at: usize| {
        let four = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes(four.try_into().expect("four bytes were asked for")))
    };
    if !bytes[at..].starts_with(&MARK) {
        return None;
    }
    let length = usize::try_from(word(at + 4)?).ok()?;
    let sum = word(at + 8)?;
    if length == 0 || length > BODY_MAX {
        return None;
    }
    let body = at + FRAME_HEAD..at + FRAME_HEAD + length;
    (crc32(bytes.get(body.clone())?) == sum).then_some(body)
}

/// CRC-32 as in zip and Ethernet (polynomial 0xEDB88320).
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        let place = usize::from(sum.to_le_bytes()[0] ^ byte);
        sum = TABLE[place] ^ (sum >> 8);
    }
    !sum
}

const TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut place = 0;
    while place < 256 {
        let mut value = place as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { 0xEDB8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[place] = value;
        place += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> (Vec<u8>, Vec<usize>) {
        let mut bytes = Vec::new();
        let mut ends = Vec::new();
        for body in [&b"one"[..], &[0; 40], &[255; 9]] {
            put(&mut bytes, body);
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    #[test]
    fn the_checksum_is_the_common_one() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }

    #[test]
    fn a_cut_at_any_byte_keeps_every_whole_frame() {
        let (bytes, ends) = three();
        for cut in 0..=bytes.len() {
            let scanned = scan(&bytes[..cut], 0);
            let whole = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!((scanned.bodies.len(), scanned.damaged), (whole, 0), "cut at {cut}");
        }
    }

    #[test]
    fn a_damaged_byte_costs_its_own_frame_only() {
        let (bytes, ends) = three();
        for place in 0..bytes.len() {
            let mut harmed = bytes.clone();
            harmed[place] ^= 0x55;
            let scanned = scan(&harmed, 0);
            let is_last = place >= ends[1];
            assert_eq!(scanned.bodies.len(), 2, "byte {place}");
            assert_eq!(
                scanned.damaged == 0,
                is_last,
                "byte {place}: a harmed last frame is a tail"
            );
        }
    }

    #[test]
    fn zeroes_after_a_power_cut_are_no_frames() {
        let (mut bytes, ends) = three();
        bytes.extend_from_slice(&[0; 4096]);
        let scanned = scan(&bytes, 0);
        assert_eq!((scanned.bodies.len(), scanned.end), (3, ends[2]));
    }
}
