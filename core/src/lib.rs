//! The part of Tenure that decides: state machines without I/O, clock or randomness of their own.
//!
//! Everything enters as an event ([`event`]) and leaves as a command ([`command`]); an adapter or the
//! simulator performs the commands and reports what came of them as events. Start reading at
//! [`ids`], then [`event`], [`command`] and [`store`], then [`master`] and [`agent`].
//!
//! `no_std` makes clocks, sockets, files, threads and hash maps compile errors here.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod agent;
pub mod command;
pub mod deadlines;
pub mod election;
pub mod error;
pub mod event;
pub mod ids;
pub mod lease;
pub mod master;
pub mod message;
pub mod model;
pub mod outcome;
pub mod policy;
pub mod random;
pub mod rules;
pub mod spec;
pub mod store;
pub mod text;
pub mod time;
