//! The worker's driver with real processes, against a master that follows a script.

mod drain;
mod logs;
mod outcomes;
mod progress;
mod restart;
mod run;
mod support;
