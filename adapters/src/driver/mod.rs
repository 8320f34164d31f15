//! The loops that feed core with events and perform its commands: one for each role.

pub mod master;
pub mod worker;
