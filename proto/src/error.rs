//! What is wrong with a frame. Each error names the value and what it means.

use std::io;

use prost::DecodeError;
use thiserror::Error;

use crate::header::{HEADER_LEN, MAGIC, VERSION};

/// A frame that is not one. The stream cannot be read on: close the connection, nobody else is concerned.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum FrameError {
    /// The peer speaks something else, or the stream lost its place.
    #[error(
        "a frame begins with {MAGIC:#010X}, but this one with {got:#010X}: the peer does not speak this \
         protocol; check that it was given the worker port"
    )]
    BadMagic {
        /// The first four bytes.
        got: u32,
    },
    /// The peer speaks a version that is not known here.
    #[error(
        "frame version {got} is not known, only {VERSION}: the peer is newer; upgrade this side first"
    )]
    BadVersion {
        /// The version byte.
        got: u8,
    },
    /// The length leaves no room for the header that it includes.
    #[error(
        "frame length {got} is impossible: it counts the whole frame, of which the header alone has {HEADER_LEN} bytes"
    )]
    TooShort {
        /// The length field.
        got: u32,
    },
    /// The frame would be larger than the limit; nothing of it was kept.
    #[error(
        "frame length {got} is over the limit of {limit} bytes; send less at once or raise the frame limit"
    )]
    TooLong {
        /// The length of the whole frame; saturated if it fits no length field.
        got: u32,
        /// The limit in force.
        limit: u32,
    },
    /// The body is not a message of the type that the header names.
    #[error("the {body_length} bytes of body are no {name} (type {type_code}): {source}")]
    BadBody {
        /// The type of message.
        type_code: u8,
        /// Its name.
        name: &'static str,
        /// Length of the body in bytes.
        body_length: usize,
        /// What the parser says.
        source: DecodeError,
    },
    /// The stream ended inside a frame.
    #[error("the connection ended inside a frame, {missing} bytes before its next boundary")]
    Truncated {
        /// How many bytes at least are missing.
        missing: usize,
    },
}

impl FrameError {
    /// One word for counters, stable over versions.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            FrameError::BadMagic { .. } => "bad_magic",
            FrameError::BadVersion { .. } => "bad_version",
            FrameError::TooShort { .. } => "too_short",
            FrameError::TooLong { .. } => "too_long",
            FrameError::BadBody { .. } => "bad_body",
            FrameError::Truncated { .. } => "truncated",
        }
    }
}

/// What a codec on a stream fails with: the peer's fault or the connection's.
#[derive(Debug, Error)]
pub enum CodecError {
    /// The peer broke the protocol.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Io(#[from] io::Error),
}
