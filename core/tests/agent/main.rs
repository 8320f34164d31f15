//! The worker's agent, event by event: what it does, and what it never does.

mod accept;
mod bench;
mod drain;
mod outbox;
mod properties;
mod reconnect;
mod run;
mod session;
#[cfg(feature = "bugs")]
mod switches;
mod together;
