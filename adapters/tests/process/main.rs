//! The process executor with real processes.

mod output;
mod start;
mod support;
mod tree;
