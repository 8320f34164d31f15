//! Sockets: bytes of a peer to messages and back.

pub mod connect;
