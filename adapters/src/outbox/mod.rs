//! What a worker must not forget: which attempts it was given, how they ended, which leader is the newest.

mod disk;
mod held;
mod record;

pub use disk::{Outbox, OutboxError, OutboxOptions, Recovered};
