//! Counts log lines of warnings and errors, each test its own: every test has a thread to itself, on which
//! all of its tasks run. One subscriber serves all, since whether a line is wanted is remembered per process.

use std::cell::Cell;
use std::sync::Once;

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

thread_local! {
    static TOLD: Cell<usize> = const { Cell::new(0) };
}

/// Lines of this test so far.
pub(crate) fn told() -> usize {
    TOLD.get()
}

/// Counts from here on.
pub(crate) fn count() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing::subscriber::set_global_default(Counter).expect("nobody else sets one");
    });
}

struct Counter;

impl Subscriber for Counter {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {
        TOLD.set(TOLD.get() + 1);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
