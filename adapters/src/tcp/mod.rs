//! Sockets: bytes of a peer to messages and back.

pub mod complaints;
pub mod connect;
pub mod listen;
pub mod session;
