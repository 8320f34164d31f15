//! Bytes in, frames out. No socket: whoever has one feeds what came and sends what was written.

use bytes::{Buf, BytesMut};
use tokio_util::codec::{Decoder, Encoder};

use crate::error::{CodecError, FrameError};
use crate::header::{HEADER_LEN, Header};
use crate::limits::Limits;
use crate::message::Message;

/// How far a buffer may be enlarged ahead of the bytes that are to fill it. A header that promises
/// 16 MiB costs its sender 10 bytes, so a promise alone must not take more memory than a read.
const MOST_RESERVED_AHEAD: usize = 64 * 1024;

/// What one frame held.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "unknown frames are rare; a box would cost every known one"
)]
pub enum Decoded {
    /// A message of a known type.
    Message(Message),
    /// A frame of a type that is not known here, reported as soon as its header is there. Its body is
    /// skipped as it comes. A peer that said hello may send such; close the connection of one that did not.
    Unknown {
        /// The type in the header.
        type_code: u8,
        /// Length of the whole frame, header included.
        length: u32,
    },
}

/// Reads and writes frames for one connection. One codec may serve both directions.
///
/// After an error the stream has lost its place and must be closed.
#[derive(Debug, Clone, Default)]
pub struct FrameCodec {
    limits: Limits,
    /// Bytes of an unknown frame's body that have still to come and go.
    to_skip: usize,
}

impl FrameCodec {
    /// A codec at a boundary between frames.
    #[must_use]
    pub fn new(limits: Limits) -> FrameCodec {
        FrameCodec { limits, to_skip: 0 }
    }

    /// Takes the next frame off the front of `bytes`; `None` if it is not all there.
    ///
    /// # Errors
    /// [`FrameError`] if it is not a frame. Lengths are judged before anything is kept or allocated for them.
    pub fn read(&mut self, bytes: &mut BytesMut) -> Result<Option<Decoded>, FrameError> {
        self.skip(bytes);
        if self.to_skip > 0 {
            return Ok(None);
        }
        let Some(header) = Header::read(bytes, self.limits)? else { return Ok(None) };
        if Message::knows(header.type_code()) {
            read_known(header, bytes)
        } else {
            bytes.advance(HEADER_LEN);
            self.to_skip = header.body_length();
            self.skip(bytes);
            Ok(Some(Decoded::Unknown { type_code: header.type_code(), length: header.length() }))
        }
    }

    /// Says whether the stream may end here, with `rest` unread.
    ///
    /// # Errors
    /// [`FrameError::Truncated`] if it would end inside a frame.
    pub fn finish(&self, rest: &[u8]) -> Result<(), FrameError> {
        let missing = if self.to_skip > 0 {
            self.to_skip.saturating_sub(rest.len())
        } else if rest.is_empty() {
            return Ok(());
        } else {
            match Header::read(rest, self.limits)? {
                None => HEADER_LEN - rest.len(),
                Some(header) => (header.length() as usize).saturating_sub(rest.len()),
            }
        };
        Err(FrameError::Truncated { missing })
    }

    /// Appends the frame of a message. Nothing is written if it fails.
    ///
    /// # Errors
    /// [`FrameError::TooLong`] if the peer would refuse it.
    pub fn write(&self, message: &Message, out: &mut BytesMut) -> Result<(), FrameError> {
        let header = Header::around(message.type_code(), message.body_length(), self.limits)?;
        out.reserve(header.length() as usize);
        header.write(out);
        message.encode_body(out);
        Ok(())
    }

    fn skip(&mut self, bytes: &mut BytesMut) {
        let gone = self.to_skip.min(bytes.len());
        bytes.advance(gone);
        self.to_skip -= gone;
    }
}

fn read_known(header: Header, bytes: &mut BytesMut) -> Result<Option<Decoded>, FrameError> {
    let missing = (header.length() as usize).saturating_sub(bytes.len());
    if missing > 0 {
        bytes.reserve(missing.min(MOST_RESERVED_AHEAD));
        return Ok(None);
    }
    bytes.advance(HEADER_LEN);
    let body = bytes.split_to(header.body_length()).freeze();
    Ok(Message::decode(header.type_code(), body)?.map(Decoded::Message))
}

impl Decoder for FrameCodec {
    type Item = Decoded;
    type Error = CodecError;

    fn decode(&mut self, bytes: &mut BytesMut) -> Result<Option<Decoded>, CodecError> {
        Ok(self.read(bytes)?)
    }

    fn decode_eof(&mut self, bytes: &mut BytesMut) -> Result<Option<Decoded>, CodecError> {
        match self.read(bytes)? {
            Some(decoded) => Ok(Some(decoded)),
            None => Ok(self.finish(bytes).map(|()| None)?),
        }
    }
}

impl Encoder<&Message> for FrameCodec {
    type Error = CodecError;

    fn encode(&mut self, message: &Message, out: &mut BytesMut) -> Result<(), CodecError> {
        Ok(self.write(message, out)?)
    }
}

impl Encoder<Message> for FrameCodec {
    type Error = CodecError;

    fn encode(&mut self, message: Message, out: &mut BytesMut) -> Result<(), CodecError> {
        Ok(self.write(&message, out)?)
    }
}
