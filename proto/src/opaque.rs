//! The parts of messages that masters store and pass on unread, as bytes.

use bytes::Bytes;
use prost::{DecodeError, Message};
use thiserror::Error;

use crate::messages::{OutcomeReport, TaskBody};

/// Bytes that are not what they were stored or sent as.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("these {length} bytes are no {name}: {source}; was a newer version of Tenure at work?")]
pub struct OpaqueError {
    /// What they should be.
    pub name: &'static str,
    /// How many there are.
    pub length: usize,
    /// What the parser says.
    pub source: DecodeError,
}

impl TaskBody {
    /// The bytes that go into a store or an `ExecuteTaskRequest`.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        self.encode_to_vec().into()
    }

    /// Reads what [`TaskBody::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`OpaqueError`] if the bytes are no task body.
    pub fn from_bytes(bytes: &[u8]) -> Result<TaskBody, OpaqueError> {
        read("TaskBody", bytes)
    }
}

impl OutcomeReport {
    /// The bytes that go into a store or a `TaskStatusReport`.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        self.encode_to_vec().into()
    }

    /// Reads what [`OutcomeReport::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`OpaqueError`] if the bytes are no outcome report.
    pub fn from_bytes(bytes: &[u8]) -> Result<OutcomeReport, OpaqueError> {
        read("OutcomeReport", bytes)
    }
}

fn read<M: Message + Default>(name: &'static str, bytes: &[u8]) -> Result<M, OpaqueError> {
    M::decode(bytes).map_err(|source| OpaqueError { name, length: bytes.len(), source })
}
