//! Every message in one enum, with its type code.

use bytes::{Bytes, BytesMut};
use prost::Message as _;

use crate::error::FrameError;
use crate::messages as pb;

/// One side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Peer {
    /// The side that decides; it listens.
    Master,
    /// The side that runs tasks; it connects.
    Worker,
}

macro_rules! messages {
    ($($(#[$doc:meta])* $code:literal $sender:ident $name:ident($body:ident),)*) => {
        /// One message of either side.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Message {
            $($(#[$doc])* $name(pb::$body),)*
        }

        impl Message {
            /// The type codes of all messages, ascending. A hello says them as `understands`.
            pub const TYPE_CODES: &'static [u8] = &[$($code),*];

            /// The byte that names this type of message in a header.
            #[must_use]
            pub fn type_code(&self) -> u8 {
                match self { $(Message::$name(_) => $code,)* }
            }

            /// The name of a type in `messages.proto`, if the type is known.
            #[must_use]
            pub fn name_of(type_code: u8) -> Option<&'static str> {
                match type_code { $($code => Some(stringify!($body)),)* _ => None }
            }

            /// The side that sends this type of message. From the other side it is a breach of the protocol.
            #[must_use]
            pub fn sender(&self) -> Peer {
                match self { $(Message::$name(_) => Peer::$sender,)* }
            }

            /// Length of the encoded body in bytes.
            #[must_use]
            pub fn body_length(&self) -> usize {
                match self { $(Message::$name(body) => body.encoded_len(),)* }
            }

            /// Appends the body.
            pub fn encode_body(&self, out: &mut BytesMut) {
                match self { $(Message::$name(body) => body.encode(out),)* }
                    .expect("a buffer that grows has room");
            }

            /// Reads a body; `None` if the type is not known.
            ///
            /// # Errors
            /// [`FrameError::BadBody`] if the bytes are no message of this type.
            pub fn decode(type_code: u8, body: Bytes) -> Result<Option<Message>, FrameError> {
                match type_code {
                    $($code => parse(type_code, body).map(|body| Some(Message::$name(body))),)*
                    _ => Ok(None),
                }
            }
        }

        $(impl From<pb::$body> for Message {
            fn from(body: pb::$body) -> Message {
                Message::$name(body)
            }
        })*
    };
}

messages! {
    /// Alive, and what it has.
    1 Worker Heartbeat(HeartbeatRequest),
    /// Run this.
    2 Master Execute(ExecuteTaskRequest),
    /// Whether it runs.
    3 Worker ExecuteAnswer(ExecuteTaskResponse),
    /// Output of a task.
    4 Worker Log(LogDataRequest),
    /// An attempt ended.
    5 Worker Report(TaskStatusReport),
    /// The first message of a session.
    16 Worker Hello(Hello),
    /// The answer to a hello.
    17 Master HelloAck(HelloAck),
    /// The leader heard a heartbeat.
    18 Master HeartbeatAck(HeartbeatAck),
    /// The store has an outcome, or needs it no more.
    19 Master ResultAck(ResultAck),
    /// End an attempt.
    20 Master Cancel(Cancel),
    /// Log lines are stored.
    21 Master LogAck(LogAck),
    /// Another master leads, or none does.
    22 Master NotLeader(NotLeader),
    /// Take no new tasks.
    23 Master Drain(Drain),
    /// Answer with a heartbeat at once.
    24 Master Ping(Ping),
}

impl Message {
    /// The types that every peer takes, with or without a hello.
    pub const DOCUMENTED: std::ops::RangeInclusive<u8> = 1..=5;

    /// Whether a peer that said no hello knows this type.
    #[must_use]
    pub fn is_documented(&self) -> bool {
        Self::DOCUMENTED.contains(&self.type_code())
    }

    /// Whether a type is known here.
    #[must_use]
    pub fn knows(type_code: u8) -> bool {
        Self::name_of(type_code).is_some()
    }

    /// The name of this message's type in `messages.proto`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        Self::name_of(self.type_code()).expect("every variant has a name")
    }

    /// What this side says in a hello or its answer: every type it knows.
    #[must_use]
    pub fn understands() -> Vec<u32> {
        Self::TYPE_CODES.iter().copied().map(u32::from).collect()
    }
}

fn parse<M: prost::Message + Default>(type_code: u8, body: Bytes) -> Result<M, FrameError> {
    let body_length = body.len();
    M::decode(body).map_err(|source| FrameError::BadBody {
        type_code,
        name: Message::name_of(type_code).expect("only known types are parsed"),
        body_length,
        source,
    })
}
