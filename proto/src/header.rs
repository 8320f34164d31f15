//! The 10 bytes before each message, big-endian: magic, version, length of the whole frame, type.

use bytes::BufMut;

use crate::error::FrameError;
use crate::limits::Limits;

/// The first four bytes of every frame.
pub const MAGIC: u32 = 0xCAFE_BABE;
/// The only version of the frame there is.
pub const VERSION: u8 = 1;
/// Bytes of the header.
pub const HEADER_LEN: usize = 10;

const HEADER_LEN_U32: u32 = HEADER_LEN as u32;

/// A header whose magic, version and length are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    length: u32,
    type_code: u8,
}

impl Header {
    /// The header of a frame around a body of this many bytes.
    ///
    /// # Errors
    /// [`FrameError::TooLong`] if the frame would be over the limit.
    pub fn around(type_code: u8, body_length: usize, limits: Limits) -> Result<Header, FrameError> {
        let limit = limits.max_frame();
        let length = u32::try_from(body_length).unwrap_or(u32::MAX).saturating_add(HEADER_LEN_U32);
        if length > limit {
            return Err(FrameError::TooLong { got: length, limit });
        }
        Ok(Header { length, type_code })
    }

    /// Reads the header at the front of `bytes`; `None` if it is not all there.
    ///
    /// Each field is judged as soon as it is there, so a peer of another protocol is found out by its
    /// first four bytes even if it sends no more.
    ///
    /// # Errors
    /// [`FrameError`] if magic, version or length are wrong.
    pub fn read(bytes: &[u8], limits: Limits) -> Result<Option<Header>, FrameError> {
        let Some((magic, rest)) = bytes.split_first_chunk() else { return Ok(None) };
        check_magic(u32::from_be_bytes(*magic))?;
        let Some((&version, rest)) = rest.split_first() else { return Ok(None) };
        check_version(version)?;
        let Some((length, rest)) = rest.split_first_chunk() else { return Ok(None) };
        let length = check_length(u32::from_be_bytes(*length), limits.max_frame())?;
        let Some(&type_code) = rest.first() else { return Ok(None) };
        Ok(Some(Header { length, type_code }))
    }

    /// Appends the 10 bytes.
    pub fn write(self, out: &mut impl BufMut) {
        out.put_u32(MAGIC);
        out.put_u8(VERSION);
        out.put_u32(self.length);
        out.put_u8(self.type_code);
    }

    /// Length of the whole frame, header included.
    #[must_use]
    pub fn length(self) -> u32 {
        self.length
    }

    /// Length of the body alone.
    #[must_use]
    pub fn body_length(self) -> usize {
        (self.length - HEADER_LEN_U32) as usize
    }

    /// The type of message in the body, known or not.
    #[must_use]
    pub fn type_code(self) -> u8 {
        self.type_code
    }
}

fn check_magic(got: u32) -> Result<(), FrameError> {
    if got == MAGIC { Ok(()) } else { Err(FrameError::BadMagic { got }) }
}

fn check_version(got: u8) -> Result<(), FrameError> {
    if got == VERSION { Ok(()) } else { Err(FrameError::BadVersion { got }) }
}

fn check_length(got: u32, limit: u32) -> Result<u32, FrameError> {
    if got < HEADER_LEN_U32 {
        Err(FrameError::TooShort { got })
    } else if got > limit {
        Err(FrameError::TooLong { got, limit })
    } else {
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(magic: u32, version: u8, length: u32, type_code: u8) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.put_u32(magic);
        bytes.put_u8(version);
        bytes.put_u32(length);
        bytes.put_u8(type_code);
        bytes
    }

    #[test]
    fn a_header_survives_writing_and_reading() {
        let limits = Limits::default();
        let written = Header::around(7, 36, limits).expect("within the limit");
        let mut bytes = Vec::new();
        written.write(&mut bytes);
        assert_eq!(bytes, header(MAGIC, VERSION, 46, 7));
        let read = Header::read(&bytes, limits).expect("right").expect("whole");
        assert_eq!((read.length(), read.body_length(), read.type_code()), (46, 36, 7));
    }

    #[test]
    fn a_part_of_a_header_needs_more_bytes() {
        let bytes = header(MAGIC, VERSION, 10, 24);
        for part in 0..HEADER_LEN {
            assert_eq!(Header::read(&bytes[..part], Limits::default()), Ok(None), "{part} bytes");
        }
    }

    #[test]
    fn each_field_is_judged_as_soon_as_it_is_there() {
        let read = |bytes: &[u8]| Header::read(bytes, Limits::default());
        assert_eq!(read(b"GET "), Err(FrameError::BadMagic { got: 0x4745_5420 }));
        assert_eq!(read(&header(MAGIC, 2, 10, 1)[..5]), Err(FrameError::BadVersion { got: 2 }));
        assert_eq!(read(&header(MAGIC, 1, 9, 1)[..9]), Err(FrameError::TooShort { got: 9 }));
    }

    #[test]
    fn lengths_that_would_wrap_are_refused() {
        let limits = Limits::default();
        let limit = limits.max_frame();
        for got in 0..10 {
            let bytes = header(MAGIC, VERSION, got, 1);
            assert_eq!(Header::read(&bytes, limits), Err(FrameError::TooShort { got }));
        }
        for got in [limit + 1, i32::MAX as u32, i32::MAX as u32 + 1, u32::MAX - 9, u32::MAX] {
            let bytes = header(MAGIC, VERSION, got, 1);
            assert_eq!(Header::read(&bytes, limits), Err(FrameError::TooLong { got, limit }));
        }
    }

    #[test]
    fn bodies_whose_frame_length_would_wrap_are_refused() {
        let limits = Limits::default();
        let limit = limits.max_frame();
        let largest = limit as usize - HEADER_LEN;
        assert_eq!(Header::around(1, largest, limits).map(Header::length), Ok(limit));
        let refused = |got| Err(FrameError::TooLong { got, limit });
        assert_eq!(Header::around(1, largest + 1, limits), refused(limit + 1));
        for body in [u32::MAX as usize - 9, u32::MAX as usize, u32::MAX as usize + 1, usize::MAX] {
            assert_eq!(Header::around(1, body, limits), refused(u32::MAX));
        }
    }
}
