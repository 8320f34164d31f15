//! Log lines of one connection: from its reader to the log store on a path of their own, so that a slow
//! disk delays no heartbeat.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tenure_core::ids::AttemptRef;
use tenure_proto::Message;
use tenure_proto::messages::{AttemptRef as WireAttempt, LogAck, LogLine};
use tokio::sync::mpsc;

use super::peer::Peer;
use crate::logs::{Line, LogError, LogStore};

/// Bytes that may wait for the log store. A worker has half a MiB under way without acknowledgement; the rest
/// is room for lines of documented workers, about the 10,000 lines that their master kept in memory.
const ROOM: usize = 4 << 20;
/// What a waiting line costs beside its text.
const LINE_COST: usize = 96;
/// Batches taken at once.
const AT_ONCE: usize = 256;

/// Lines on their way to the store.
#[derive(Debug)]
enum Batch {
    /// Lines with their offsets, which are acknowledged.
    Numbered(AttemptRef, Vec<LogLine>),
    /// A line of a documented worker; it gets the next offset.
    Plain(AttemptRef, Line),
}

impl Batch {
    fn cost(&self) -> usize {
        match self {
            Batch::Numbered(_, lines) => lines.iter().map(|line| line.text.len() + LINE_COST).sum(),
            Batch::Plain(_, line) => line.text.len() + LINE_COST,
        }
    }
}

/// Where a connection's reader puts log lines. Its task starts with the first ones.
#[derive(Debug)]
pub(super) struct LogPath {
    batches: Option<mpsc::UnboundedSender<Batch>>,
    waiting: Arc<AtomicUsize>,
}

impl LogPath {
    pub(super) fn new() -> LogPath {
        LogPath { batches: None, waiting: Arc::default() }
    }

    /// Takes lines that are acknowledged once stored. False: there is no room, and the worker sends them again.
    pub(super) fn numbered(
        &mut self,
        at: AttemptRef,
        lines: Vec<LogLine>,
        peer: &Arc<Peer>,
        store: &Arc<LogStore>,
    ) -> bool {
        self.put(Batch::Numbered(at, lines), peer, store)
    }

    /// Takes a line of a documented worker. False: there is no room, and it is lost.
    pub(super) fn plain(
        &mut self,
        at: AttemptRef,
        line: Line,
        peer: &Arc<Peer>,
        store: &Arc<LogStore>,
    ) -> bool {
        self.put(Batch::Plain(at, line), peer, store)
    }

    fn put(&mut self, batch: Batch, peer: &Arc<Peer>, store: &Arc<LogStore>) -> bool {
        let cost = batch.cost();
        let waiting = self.waiting.load(Ordering::Relaxed);
        // One frame always goes in, however large.
        if waiting > 0 && waiting + cost > ROOM {
            return false;
        }
        self.waiting.fetch_add(cost, Ordering::Relaxed);
        let batches = self.batches.get_or_insert_with(|| {
            let (sender, receiver) = mpsc::unbounded_channel();
            let keeper = Keeper {
                peer: Arc::clone(peer),
                store: Arc::clone(store),
                waiting: Arc::clone(&self.waiting),
                next: BTreeMap::new(),
            };
            tokio::spawn(keeper.run(receiver));
            sender
        });
        batches.send(batch).is_ok()
    }
}

struct Keeper {
    peer: Arc<Peer>,
    store: Arc<LogStore>,
    waiting: Arc<AtomicUsize>,
    /// The next offsets of documented workers' attempts.
    next: BTreeMap<AttemptRef, u64>,
}

impl Keeper {
    /// Works until the connection's reader has ended and everything that it took is stored.
    async fn run(mut self, mut batches: mpsc::UnboundedReceiver<Batch>) {
        let mut taken = Vec::new();
        while batches.recv_many(&mut taken, AT_ONCE).await > 0 {
            let cost: usize = taken.iter().map(Batch::cost).sum();
            self.keep(&mut taken).await;
            self.waiting.fetch_sub(cost, Ordering::Relaxed);
        }
    }

    async fn keep(&mut self, taken: &mut Vec<Batch>) {
        let mut plain: Option<(AttemptRef, Vec<Line>)> = None;
        for batch in taken.drain(..) {
            match batch {
                Batch::Numbered(at, lines) => self.keep_numbered(at, lines).await,
                Batch::Plain(at, line) => match &mut plain {
                    Some((same, lines)) if *same == at => lines.push(line),
                    _ => {
                        if let Some((at, lines)) = plain.replace((at, vec![line])) {
                            self.keep_plain(at, lines).await;
                        }
                    }
                },
            }
        }
        if let Some((at, lines)) = plain {
            self.keep_plain(at, lines).await;
        }
    }

    /// Without an acknowledgement the worker sends the lines again, from the offset that the next one names.
    async fn keep_numbered(&self, at: AttemptRef, lines: Vec<LogLine>) {
        let mut stored = None;
        for (first, run) in runs(lines) {
            match self.store.append(at, first, run).await {
                Ok(next) => stored = Some(next),
                Err(error) => return self.complain(at, &error),
            }
        }
        if let Some(next_offset) = stored {
            let wire = WireAttempt { task: at.task.0, attempt: at.attempt.number() };
            self.peer.say(&Message::LogAck(LogAck { at: Some(wire), next_offset, closed: false }));
            self.peer.out.flush();
        }
    }

    async fn keep_plain(&mut self, at: AttemptRef, lines: Vec<Line>) {
        if let Err(error) = self.append_plain(at, lines).await {
            // Where the log goes on is asked again.
            self.next.remove(&at);
            self.complain(at, &error);
        }
    }

    async fn append_plain(&mut self, at: AttemptRef, lines: Vec<Line>) -> Result<(), LogError> {
        let first = match self.next.get(&at) {
            Some(next) => *next,
            None => self.store.next_offset(at).await?,
        };
        let next = self.store.append(at, first, lines).await?;
        self.next.insert(at, next);
        Ok(())
    }

    fn complain(&self, at: AttemptRef, error: &LogError) {
        tracing::warn!("{}: log lines of {at} are not stored: {error}", self.peer.address);
    }
}

/// The lines in runs of ascending offsets without gaps, each with its first offset.
fn runs(lines: Vec<LogLine>) -> Vec<(u64, Vec<Line>)> {
    let mut runs: Vec<(u64, Vec<Line>)> = Vec::new();
    for line in lines {
        let offset = line.offset;
        match runs.last_mut() {
            Some((first, run)) if first.checked_add(run.len() as u64) == Some(offset) => {
                run.push(of_wire(line));
            }
            _ => runs.push((offset, vec![of_wire(line)])),
        }
    }
    runs
}

fn of_wire(line: LogLine) -> Line {
    Line {
        is_error: line.is_error,
        at_ms: u64::try_from(line.at_ms).unwrap_or_default(),
        text: line.text.into(),
        continues: line.continues,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tenure_core::ids::{Attempt, SessionId, TaskId};

    use super::*;

    #[test]
    fn lines_are_cut_where_their_offsets_jump() {
        let line = |offset| LogLine { offset, ..Default::default() };
        let cut = runs([3, 4, 5, 9, 10, 4, u64::MAX, 0].into_iter().map(line).collect());
        let cut: Vec<(u64, usize)> = cut.iter().map(|(first, run)| (*first, run.len())).collect();
        assert_eq!(cut, [(3, 3), (9, 2), (4, 1), (u64::MAX, 1), (0, 1)]);
    }

    async fn peer() -> (Arc<Peer>, tokio::net::TcpStream) {
        let listener = crate::tcp::listen::bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (far, near) = tokio::join!(
            tokio::net::TcpStream::connect(address),
            crate::tcp::listen::accept(&listener)
        );
        let (incoming, out, _writer) =
            crate::tcp::session::open(near.0, Default::default(), Duration::from_secs(5));
        // Nobody reads it here, and the connection stays.
        std::mem::forget(incoming);
        let peer = Peer::new(SessionId(1), address, out, Arc::default());
        (Arc::new(peer), far.expect("connected"))
    }

    /// The reader never waits for the disk: until the store's task runs, which it cannot here before the first
    /// `await`, lines are taken up to the limit and then refused.
    #[tokio::test]
    async fn a_full_path_refuses_at_once_and_takes_lines_again_when_the_store_has_caught_up() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let store = Arc::new(LogStore::open(dir.path(), Default::default()).expect("writable"));
        let (peer, _far) = peer().await;
        let at = AttemptRef::new(TaskId(1), Attempt::FIRST);
        let line =
            || Line { is_error: false, at_ms: 0, text: vec![b'x'; 1 << 20], continues: false };
        let mut path = LogPath::new();
        let taken = (0..100).take_while(|_| path.plain(at, line(), &peer, &store)).count();
        assert_eq!(taken, 3, "under {ROOM} bytes");
        let mut stored = store.follow(at);
        stored.wait_for(|next| *next == 3).await.expect("they are stored");
        while !path.plain(at, line(), &peer, &store) {
            tokio::task::yield_now().await;
        }
        stored.wait_for(|next| *next == 4).await.expect("and the next one");
    }
}
