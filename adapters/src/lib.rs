//! What connects the core to the world: thin translators that take no decision.
//!
//! Each module turns bytes, rows and signals into events of `tenure_core`, and performs the
//! commands that come back. An `if` here on a task's state belongs in core.

pub mod clock;
pub mod convert;
pub mod data_dir;
pub mod driver;
mod frames;
pub mod http;
pub mod incarnation;
pub mod logs;
pub mod names;
pub mod outbox;
pub mod process;
pub mod sql;
mod syncer;
pub mod tcp;
pub mod wall;
