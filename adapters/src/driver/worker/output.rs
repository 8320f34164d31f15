//! The output of one attempt: kept as log lines, and read for what it says.

use tenure_core::ids::AttemptRef;
use tokio::sync::mpsc;

use super::progress::Board;
use super::shipper::Shipment;
use super::wall_ms;
use crate::logs;
use crate::process::result::Findings;
use crate::process::{Ending, Line, Stream};

/// Where an attempt's output goes.
#[derive(Debug)]
pub(super) struct Output {
    at: AttemptRef,
    spool: logs::Spool,
    shipper: mpsc::UnboundedSender<Shipment>,
    progress: Board,
    findings: Findings,
    /// Whether the findings have changed since the board was told.
    found: bool,
    /// Whether the last piece of each stream was no whole line.
    continuing: [bool; 2],
    /// Lines that are not in the spool yet. They hold room of the command's output budget, so that a
    /// command which writes faster than the disk is slowed down.
    held: Vec<(Line, u64)>,
    count: u64,
    lost: u64,
}

impl Output {
    pub(super) fn new(
        at: AttemptRef,
        spool: logs::Spool,
        shipper: mpsc::UnboundedSender<Shipment>,
        progress: Board,
    ) -> Output {
        Output {
            at,
            spool,
            shipper,
            progress,
            findings: Findings::default(),
            found: false,
            continuing: [false; 2],
            held: Vec::new(),
            count: 0,
            lost: 0,
        }
    }

    /// Takes one line; it is kept by the next [`Output::write`].
    pub(super) fn add(&mut self, line: Line) {
        let continuing = &mut self.continuing[usize::from(line.stream == Stream::Stderr)];
        let continues = line.ending == Ending::Continues;
        // A piece of a longer line means nothing by itself.
        if !*continuing && !continues {
            self.found |= self.findings.feed(&line.bytes);
        }
        *continuing = continues;
        self.held.push((line, wall_ms()));
    }

    /// Keeps what was added.
    pub(super) async fn write(&mut self) {
        if self.held.is_empty() {
            return;
        }
        if std::mem::take(&mut self.found)
            && let Some(text) = self.findings.progress.clone()
        {
            self.progress.line(self.at, text);
        }
        let mut held = std::mem::take(&mut self.held);
        let count = held.len() as u64;
        let lines = held.iter_mut().map(for_spool).collect();
        let appended = self.spool.append(self.at, lines).await;
        drop(held);
        match appended {
            Ok(end) => {
                self.count = end;
                let _ = self.shipper.send(Shipment::Grew(self.at, end));
            }
            Err(error) => {
                self.lost += count;
                tracing::error!(at = %self.at, lost = self.lost, %error, "lines of output cannot be kept");
            }
        }
    }

    /// What the output said so far.
    pub(super) fn findings(&self) -> Findings {
        self.findings.clone()
    }

    /// There will be no more: how many lines there are.
    pub(super) fn finish(self) -> u64 {
        let _ = self.shipper.send(Shipment::Ended(self.at));
        self.count
    }
}

/// Takes the bytes; what is left of the line still holds its room.
fn for_spool((line, at_ms): &mut (Line, u64)) -> logs::Line {
    logs::Line {
        is_error: line.stream == Stream::Stderr,
        at_ms: *at_ms,
        text: std::mem::take(&mut line.bytes),
        continues: line.ending == Ending::Continues,
    }
}
