//! The SQLite store by itself: what it keeps for people, how it fails, how it batches.
//! That it decides nothing of its own is shown by the conformance suite.

mod batches;
mod failures;
mod kill;
mod opening;
mod story;
mod support;
