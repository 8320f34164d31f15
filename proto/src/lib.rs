//! Tenure's wire protocol: the messages that masters and workers exchange, and the frames around them.
//!
//! Everything here works on bytes in memory; sockets belong to whoever calls. Start with [`FrameCodec`]
//! (bytes in, frames out; also a `tokio_util` codec) and [`Message`] (every type of message).
//! `docs/wire.md` describes the protocol for other languages.
//!
//! | module | what it has |
//! |---|---|
//! | `header` | the 10 bytes before each message |
//! | `limits` | how large a frame may be |
//! | `frame` | the codec |
//! | `message` | the enum of all messages and their type codes |
//! | `error` | what is wrong with a frame |
//! | `opaque` | the two parts that masters pass on unread: `TaskBody` and `OutcomeReport` |
//! | [`messages`] | the structs generated from `messages.proto` |

mod error;
mod frame;
mod header;
mod limits;
mod message;
mod opaque;

pub use error::{CodecError, FrameError};
pub use frame::{Decoded, FrameCodec};
pub use header::{HEADER_LEN, Header, MAGIC, VERSION};
pub use limits::{LimitError, Limits};
pub use message::{Message, Peer};
pub use opaque::OpaqueError;

/// The structs and enums of `messages.proto`, generated.
pub mod messages {
    #![allow(missing_docs, clippy::doc_markdown)]
    include!(concat!(env!("OUT_DIR"), "/org.sgj.rljobscheduler.common.proto.rs"));
}
