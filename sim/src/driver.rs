//! The only place of this crate that knows of threads and of the real clock: exploring is work to share, and
//! a budget is real time. No history depends on either.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "the budget of a run is real time, and its histories are shared among threads"
)]

use std::time::{Duration, Instant};

/// How long a run may take.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    started: Instant,
    budget: Option<Duration>,
}

impl Stopwatch {
    pub(crate) fn start(budget: Option<Duration>) -> Stopwatch {
        Stopwatch { started: Instant::now(), budget }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.budget.is_some_and(|budget| self.elapsed() > budget)
    }
}

/// Does the same work on so many threads, and gives what each came to.
pub(crate) fn on_threads<T: Send>(jobs: usize, work: impl Fn() -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs.max(1)).map(|_| scope.spawn(&work)).collect();
        let joined = threads.into_iter().map(|thread| {
            thread.join().expect("histories catch panics, so a thread that dies is a bug here")
        });
        joined.collect()
    })
}
