//! A hook for tests alone: a worker that dies at an exact point.
//!
//! The moments around the record of an outcome last microseconds, so a test that killed a worker from
//! outside would hardly ever meet them. Without the variable nothing here does anything.

use nix::sys::signal::{Signal, raise};

const VARIABLE: &str = "TENURE_TEST_FAULT";

/// Where a worker can be told to die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// After a process has ended, before its outcome is on the disk.
    BeforeOutcomeRecord,
    /// When its outcome is on the disk, before anybody is told.
    AfterOutcomeRecord,
}

impl Fault {
    /// The point that the environment names.
    pub(super) fn asked_for() -> Option<Fault> {
        match std::env::var(VARIABLE).ok()?.as_str() {
            "exit-before-outcome-record" => Some(Fault::BeforeOutcomeRecord),
            "exit-after-outcome-record" => Some(Fault::AfterOutcomeRecord),
            _ => None,
        }
    }

    /// Dies as by `kill -9` if this is the point.
    pub(super) fn here(asked_for: Option<Fault>, here: Fault) {
        if asked_for == Some(here) {
            let _ = raise(Signal::SIGKILL);
            // Not reached: that signal cannot be ignored.
            std::process::abort();
        }
    }

    /// Whether a variable of the worker's is this hook, which its tasks must not inherit.
    pub(super) fn is_hook(name: &std::ffi::OsStr) -> bool {
        name == VARIABLE
    }
}
