//! Ctrl-C and TERM for commands.

use std::io::Read;
use std::thread;

use tokio::signal::unix::{SignalKind, signal};

use crate::exit::Failure;
use crate::output;

/// What was asked for by signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// TERM.
    Terminate,
}

impl Signal {
    /// 128 + its number, as shells count.
    pub(crate) fn code(self) -> u8 {
        match self {
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }
}

/// The signals of this process, from the moment that this is made.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Takes them over. Must be called on a runtime.
    pub(crate) fn listen() -> Result<Signals, Failure> {
        let take = |kind| {
            signal(kind).map_err(|error| Failure::unavailable(format!("no signals: {error}")))
        };
        Ok(Signals {
            interrupt: take(SignalKind::interrupt())?,
            terminate: take(SignalKind::terminate())?,
        })
    }

    /// The next one.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}

/// From now on a signal ends this process, with a word (if there is one to say).
pub(crate) fn end_on_signal(word: String) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::unavailable(format!("no signals: {error}")))?;
    let mut signals = runtime.block_on(async { Signals::listen() })?;
    thread::spawn(move || {
        let signal = runtime.block_on(signals.next());
        if !word.is_empty() {
            output::note(&word);
        }
        std::process::exit(signal.code().into());
    });
    Ok(())
}

/// From now on the end of stdin ends this process, as a kill would: whoever started it holds the other
/// end and cannot leave it behind.
pub(crate) fn end_with_stdin() {
    thread::spawn(|| {
        let mut stdin = std::io::stdin().lock();
        let mut buffer = [0_u8; 64];
        while stdin.read(&mut buffer).is_ok_and(|read| read > 0) {}
        std::process::exit(i32::from(Signal::Terminate.code()));
    });
}
