//! Between the messages of the wire and the vocabulary of core, both ways and for both sides.
//!
//! | a file | what |
//! |---|---|
//! | `to_master` | what workers say: a master reads it, a worker writes it |
//! | `documented` | what documented workers say |
//! | `to_worker` | what masters say: a worker reads it, a master writes it |
//! | `progress` | what running attempts say of themselves, beside what core reads |
//! | `parts` | attempts, inventories, enums |
//!
//! Log lines, their acknowledgements and progress never reach core; whoever has the connection keeps them.

mod documented;
mod parts;
mod progress;
mod to_master;
mod to_worker;

use thiserror::Error;

pub use documented::{DocumentedLog, read_documented, reward_in};
pub use progress::{Progress, progress_in, write_progress};
pub use to_master::{WorkerIdentity, attempts_in, read_to_master, write_to_master};
pub use to_worker::{read_to_worker, write_to_worker};

use tenure_proto::Message;

/// How a worker speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// It said hello.
    Native,
    /// It says no hello and knows fields 1 to 6 of types 1 to 5.
    Documented,
}

impl Dialect {
    /// The dialect that a first message shows; none if it belongs to neither beginning and is to be ignored.
    #[must_use]
    pub fn of(first: &Message) -> Option<Dialect> {
        match first {
            Message::Hello(_) => Some(Dialect::Native),
            Message::Heartbeat(beat) if beat.incarnation == 0 => Some(Dialect::Documented),
            _ => None,
        }
    }
}

/// A message whose parts cannot be. Its sender broke the protocol: close that connection, nobody else is concerned.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConvertError {
    /// A part that this message cannot do without.
    #[error("{message}.{field} is missing")]
    Missing {
        /// The type of message.
        message: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A value that no version of the protocol has.
    #[error("{message}.{field} cannot be {value}")]
    Impossible {
        /// The type of message.
        message: &'static str,
        /// The field.
        field: &'static str,
        /// What stands there, at most 64 characters of it.
        value: String,
    },
    /// A type that only the other side sends.
    #[error("{name} is sent by the other side only")]
    WrongSide {
        /// The type of message.
        name: &'static str,
    },
}

impl ConvertError {
    /// One word for counters, stable over versions.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            ConvertError::Missing { .. } | ConvertError::Impossible { .. } => "bad_value",
            ConvertError::WrongSide { .. } => "wrong_side",
        }
    }
}
