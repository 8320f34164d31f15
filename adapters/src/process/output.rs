//! Output of a command, cut into lines and slowed down to what the consumer takes.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::sync::{Semaphore, mpsc};

use super::event::{Ending, Line, ProcessEvent, Stream};

/// What a line costs beside its bytes: the event, the allocation, the channel's slot.
const LINE_OVERHEAD: usize = 128;

/// Read at once; also what a pipe holds by default.
const CHUNK: usize = 64 << 10;

/// How many bytes of one command's output may wait for the consumer.
#[derive(Clone)]
pub(super) struct Budget {
    room: Arc<Semaphore>,
    size: usize,
}

impl Budget {
    pub(super) fn new(size: usize) -> Budget {
        let size = size.clamp(1, Semaphore::MAX_PERMITS / 4);
        Budget { room: Arc::new(Semaphore::new(size)), size }
    }

    /// Lets everything through from here on. For the end of a command: what is left is bounded by
    /// the size of the pipes, and a consumer that stands still must not hold up the end.
    pub(super) fn open(&self) {
        self.room.close();
    }

    async fn wait_for(&self, bytes: usize) -> Option<tokio::sync::OwnedSemaphorePermit> {
        let cost = (bytes + LINE_OVERHEAD).min(self.size) as u32;
        // Closed means open for all, without a permit.
        self.room.clone().acquire_many_owned(cost).await.ok()
    }
}

/// One stream of a command.
pub(super) struct Output {
    key: u64,
    stream: Stream,
    pipe: pipe::Receiver,
    splitter: Splitter,
    budget: Budget,
    events: mpsc::UnboundedSender<ProcessEvent>,
}

impl Output {
    pub(super) fn new(
        (key, stream): (u64, Stream),
        pipe: OwnedFd,
        line_cap: usize,
        budget: Budget,
        events: mpsc::UnboundedSender<ProcessEvent>,
    ) -> io::Result<Output> {
        let pipe = pipe::Receiver::from_owned_fd(pipe)?;
        Ok(Output { key, stream, pipe, splitter: Splitter::new(line_cap), budget, events })
    }

    /// Passes lines on until the end of the stream. May be dropped at any point and called again
    /// without losing a byte.
    pub(super) async fn pump(&mut self) {
        loop {
            while let Some(length) = self.splitter.ready() {
                let room = self.budget.wait_for(length).await;
                if let Some((bytes, ending)) = self.splitter.take() {
                    self.send(bytes, ending, room);
                }
            }
            match self.pipe.read_buf(self.splitter.space()).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    /// Passes on what came without a newline, and all else that `pump` left.
    pub(super) fn finish(mut self) {
        while let Some((bytes, ending)) = self.splitter.take() {
            self.send(bytes, ending, None);
        }
        if let Some(bytes) = self.splitter.rest() {
            self.send(bytes, Ending::End, None);
        }
    }

    fn send(
        &self,
        bytes: Vec<u8>,
        ending: Ending,
        room: Option<tokio::sync::OwnedSemaphorePermit>,
    ) {
        let line = Line { stream: self.stream, bytes, ending, room };
        // Nobody listens when the worker ends; the command's output then goes nowhere.
        let _ = self.events.send(ProcessEvent::Line { key: self.key, line });
    }
}

/// Cuts bytes into lines, and lines that are too long into parts.
struct Splitter {
    bytes: Vec<u8>,
    /// Where the next line begins; bytes before it were taken.
    start: usize,
    /// Up to here there is no newline after `start`: long lines are not searched twice.
    searched: usize,
    cap: usize,
}

impl Splitter {
    fn new(cap: usize) -> Splitter {
        Splitter { bytes: Vec::new(), start: 0, searched: 0, cap: cap.max(1) }
    }

    /// Room to read into, at the end of what waits.
    fn space(&mut self) -> &mut Vec<u8> {
        self.bytes.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        self.bytes.reserve(CHUNK);
        &mut self.bytes
    }

    /// The length of the next line or part, if there is one.
    fn ready(&mut self) -> Option<usize> {
        self.searched = self.searched.max(self.start);
        let found = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n');
        self.searched = found.map_or(self.bytes.len(), |at| self.searched + at);
        let length = self.searched - self.start;
        // A line of exactly the cap is whole, but only its newline says so.
        (found.is_some() || length > self.cap).then_some(length.min(self.cap))
    }

    fn take(&mut self) -> Option<(Vec<u8>, Ending)> {
        let length = self.ready()?;
        let end = self.start + length;
        let bytes = self.bytes[self.start..end].to_vec();
        let whole = self.bytes.get(end) == Some(&b'\n');
        self.start = end + usize::from(whole);
        Some((bytes, if whole { Ending::Newline } else { Ending::Continues }))
    }

    fn rest(&mut self) -> Option<Vec<u8>> {
        let rest = self.bytes.split_off(self.start);
        self.bytes.clear();
        (self.start, self.searched) = (0, 0);
        (!rest.is_empty()).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Cut = (Vec<u8>, Ending);

    fn split(chunks: &[&[u8]], cap: usize) -> (Vec<Cut>, Option<Vec<u8>>) {
        let mut splitter = Splitter::new(cap);
        let mut lines = Vec::new();
        for chunk in chunks {
            splitter.space().extend_from_slice(chunk);
            while let Some(line) = splitter.take() {
                lines.push(line);
            }
        }
        (lines, splitter.rest())
    }

    fn line(text: &[u8]) -> Cut {
        (text.to_vec(), Ending::Newline)
    }

    fn part(text: &[u8]) -> Cut {
        (text.to_vec(), Ending::Continues)
    }

    #[test]
    fn lines_are_cut_at_newlines_wherever_the_chunks_end() {
        let (lines, rest) = split(&[b"a\nb", b"c\r\n\n", b"\xff"], 100);
        assert_eq!(lines, [line(b"a"), line(b"bc\r"), line(b"")]);
        assert_eq!(rest, Some(b"\xff".to_vec()));
    }

    #[test]
    fn a_line_over_the_cap_comes_in_parts_and_one_of_exactly_the_cap_is_whole() {
        let (lines, rest) = split(&[b"abcdefgh\nabc\nab"], 3);
        assert_eq!(lines, [part(b"abc"), part(b"def"), line(b"gh"), line(b"abc")]);
        assert_eq!(rest, Some(b"ab".to_vec()));
        let (lines, rest) = split(&[b"ab", b"c", b"d", b"\n"], 3);
        assert_eq!(lines, [part(b"abc"), line(b"d")]);
        assert_eq!(rest, None);
    }
}
