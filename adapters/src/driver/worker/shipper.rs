//! Sends log lines from the spool to the master, as far ahead of its acknowledgements as the window allows.
//!
//! The spool has the lines of every attempt that may still be asked for, those of earlier starts of the
//! worker included. Where a log goes on is the master's to say: in its hello-ack, and in each
//! acknowledgement. Lines that it has already are ignored there, so sending again does no harm.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::time::Duration;

use tenure_core::ids::{AttemptRef, SessionId};
use tenure_proto::Message;
use tenure_proto::messages::{LogDataRequest, LogLine};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::logs::{Spool, StoredLine};

/// Log bytes under way without acknowledgement. They sit in socket buffers in front of heartbeats, so
/// this is kept to what a slow link (10 Mbit/s) moves in half a second.
const WINDOW: usize = 512 << 10;

/// Lines sent at once: up to this many bytes.
pub(super) const BATCH: usize = 64 << 10;

/// What the shipper is told.
#[derive(Debug)]
pub(super) enum Shipment {
    /// The attempt's log has lines below this offset.
    Grew(AttemptRef, u64),
    /// No line of the attempt will be added.
    Ended(AttemptRef),
    /// The attempt's outcome is acknowledged.
    Settled(AttemptRef),
    /// A master acknowledged a session: logs go there.
    Attach(Outlet),
    /// The session is over.
    Detach(SessionId),
    /// The master has an attempt's lines below an offset.
    Stored {
        session: SessionId,
        at: AttemptRef,
        next: u64,
        /// It wants no more of them.
        closed: bool,
    },
    /// Answered when the attempt's lines are on their way, or cannot be at present.
    Flush(AttemptRef, oneshot::Sender<()>),
    /// Answered when the master has every line, or there is none.
    Finish(oneshot::Sender<()>),
}

/// Where logs go.
#[derive(Debug)]
pub(super) struct Outlet {
    pub(super) session: SessionId,
    pub(super) frames: mpsc::Sender<Message>,
    /// Where the logs go on that the master knows.
    pub(super) positions: Vec<(AttemptRef, u64)>,
}

/// One attempt's log.
#[derive(Debug, Default)]
struct Log {
    /// Offset after its last line.
    end: u64,
    /// The master has the lines below.
    stored: u64,
    /// The next line to send.
    next: u64,
    /// Batches sent and not acknowledged: offset after the last line, and bytes.
    under_way: VecDeque<(u64, usize)>,
    ended: bool,
    settled: bool,
    closed: bool,
}

impl Log {
    fn has_more(&self) -> bool {
        !self.closed && self.next < self.end
    }

    fn is_stored(&self) -> bool {
        self.closed || self.stored >= self.end
    }

    fn go_on_from(&mut self, offset: u64) {
        self.stored = offset;
        self.next = offset;
        self.under_way.clear();
    }
}

pub(super) struct Shipper {
    spool: Spool,
    inbox: mpsc::UnboundedReceiver<Shipment>,
    outlet: Option<Outlet>,
    logs: BTreeMap<AttemptRef, Log>,
    /// Logs with lines to send.
    ready: BTreeSet<AttemptRef>,
    /// Served last: the next one in order comes after it, so that a talkative task starves nobody.
    last: Option<AttemptRef>,
    under_way: usize,
    /// When the window last moved.
    moved: Instant,
    /// Without an acknowledgement for this long, lines are sent again.
    again_after: Duration,
    flushes: Vec<(AttemptRef, oneshot::Sender<()>)>,
    finishes: Vec<oneshot::Sender<()>>,
}

impl Shipper {
    /// Starts with what the spool holds. `unsettled` are attempts whose outcome waits for an acknowledgement.
    pub(super) fn start(
        spool: Spool,
        held: Vec<(AttemptRef, u64)>,
        unsettled: &BTreeSet<AttemptRef>,
        again_after: Duration,
    ) -> mpsc::UnboundedSender<Shipment> {
        let (sender, inbox) = mpsc::unbounded_channel();
        let log = |(at, end)| {
            let settled = !unsettled.contains(&at);
            (at, Log { end, ended: true, settled, ..Log::default() })
        };
        let shipper = Shipper {
            spool,
            inbox,
            outlet: None,
            logs: held.into_iter().map(log).collect(),
            ready: BTreeSet::new(),
            last: None,
            under_way: 0,
            moved: Instant::now(),
            again_after,
            flushes: Vec::new(),
            finishes: Vec::new(),
        };
        tokio::spawn(shipper.run());
        sender
    }

    async fn run(mut self) {
        loop {
            let outlet = self.outlet.as_ref().filter(|_| self.may_send());
            let frames = outlet.map(|outlet| outlet.frames.clone());
            let again_at = self.moved + self.again_after;
            tokio::select! {
                biased;
                told = self.inbox.recv() => match told {
                    Some(told) => self.on(told).await,
                    None => return,
                },
                permit = reserve(frames) => match permit {
                    Some(permit) => self.send_one(permit).await,
                    None => self.detach(),
                },
                () = tokio::time::sleep_until(again_at), if self.under_way > 0 => self.send_again(),
            }
            self.answer();
        }
    }

    fn may_send(&self) -> bool {
        !self.ready.is_empty() && self.under_way < WINDOW
    }

    async fn on(&mut self, told: Shipment) {
        match told {
            Shipment::Grew(at, end) => {
                let log = self.logs.entry(at).or_default();
                log.end = log.end.max(end);
                self.sort(at);
            }
            Shipment::Ended(at) => {
                if let Some(log) = self.logs.get_mut(&at) {
                    log.ended = true;
                }
                self.drop_if_done(at).await;
            }
            Shipment::Settled(at) => {
                if let Some(log) = self.logs.get_mut(&at) {
                    log.settled = true;
                }
                self.drop_if_done(at).await;
            }
            Shipment::Attach(outlet) => self.attach(outlet),
            Shipment::Detach(session) => {
                if self.outlet.as_ref().is_some_and(|outlet| outlet.session == session) {
                    self.detach();
                }
            }
            Shipment::Stored { session, at, next, closed } => {
                if self.outlet.as_ref().is_some_and(|outlet| outlet.session == session) {
                    self.on_stored(at, next, closed).await;
                }
            }
            Shipment::Flush(at, done) => self.flushes.push((at, done)),
            Shipment::Finish(done) => self.finishes.push(done),
        }
    }

    /// Another master may have less than the last one had, so each says where it goes on; a log that it
    /// does not name is sent from its beginning.
    fn attach(&mut self, outlet: Outlet) {
        self.detach();
        let positions: BTreeMap<AttemptRef, u64> = outlet.positions.iter().copied().collect();
        for (at, log) in &mut self.logs {
            log.closed = false;
            log.go_on_from(positions.get(at).copied().unwrap_or(0));
            if log.has_more() {
                self.ready.insert(*at);
            }
        }
        self.outlet = Some(outlet);
    }

    fn detach(&mut self) {
        self.outlet = None;
        self.ready.clear();
        self.under_way = 0;
    }

    async fn on_stored(&mut self, at: AttemptRef, next: u64, closed: bool) {
        let Some(log) = self.logs.get_mut(&at) else { return };
        log.stored = log.stored.max(next);
        log.next = log.next.max(next);
        log.closed |= closed;
        while let Some((end, bytes)) = log.under_way.front().copied()
            && (closed || end <= next)
        {
            log.under_way.pop_front();
            self.under_way -= bytes;
        }
        self.moved = Instant::now();
        self.spool.acknowledged(at, next);
        self.sort(at);
        self.drop_if_done(at).await;
    }

    async fn send_one(&mut self, permit: mpsc::OwnedPermit<Message>) {
        let Some(at) = self.next_ready() else { return };
        let Some(log) = self.logs.get_mut(&at) else { return };
        let lines = match self.spool.read(at, log.next, BATCH).await {
            Ok(lines) => lines,
            Err(error) => {
                tracing::error!(%at, %error, "log lines cannot be read back from the worker's directory");
                Vec::new()
            }
        };
        let Some(last) = lines.last() else {
            // Tried again when the log grows, or in the next session.
            self.ready.remove(&at);
            return;
        };
        // The spool may have more than was told here yet.
        log.next = last.offset + 1;
        log.end = log.end.max(log.next);
        let message = Message::from(LogDataRequest {
            task_id: at.task.0.to_string(),
            task: at.task.0,
            attempt: at.attempt.number(),
            lines: lines.into_iter().map(on_the_wire).collect(),
            ..LogDataRequest::default()
        });
        let bytes = message.body_length();
        if self.under_way == 0 {
            self.moved = Instant::now();
        }
        log.under_way.push_back((log.next, bytes));
        self.under_way += bytes;
        self.sort(at);
        permit.send(message);
    }

    /// The master did not store what it was sent: an acknowledgement would have come.
    fn send_again(&mut self) {
        for (at, log) in &mut self.logs {
            if !log.under_way.is_empty() {
                log.go_on_from(log.stored);
                self.ready.insert(*at);
            }
        }
        self.under_way = 0;
    }

    fn next_ready(&mut self) -> Option<AttemptRef> {
        let after = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let next = self.ready.range((after, Bound::Unbounded)).next();
        self.last = next.or_else(|| self.ready.first()).copied();
        self.last
    }

    fn sort(&mut self, at: AttemptRef) {
        let more = self.logs.get(&at).is_some_and(Log::has_more);
        if more && self.outlet.is_some() {
            self.ready.insert(at);
        } else {
            self.ready.remove(&at);
        }
    }

    async fn drop_if_done(&mut self, at: AttemptRef) {
        let done = |log: &Log| log.ended && log.settled && log.is_stored();
        if self.logs.get(&at).is_some_and(done) {
            self.logs.remove(&at);
            self.ready.remove(&at);
            if let Err(error) = self.spool.remove(at).await {
                tracing::warn!(%at, %error, "log lines that are stored elsewhere stay in the worker's directory");
            }
        }
    }

    fn answer(&mut self) {
        let (ready, stuck) = (&self.ready, !self.may_send());
        for (_, done) in self.flushes.extract_if(.., |(at, _)| stuck || !ready.contains(at)) {
            let _ = done.send(());
        }
        if !self.finishes.is_empty()
            && (self.outlet.is_none() || self.logs.values().all(Log::is_stored))
        {
            for done in self.finishes.drain(..) {
                let _ = done.send(());
            }
        }
    }
}

fn on_the_wire(line: StoredLine) -> LogLine {
    let StoredLine { offset, is_error, at_ms, text, continues } = line;
    let at_ms = i64::try_from(at_ms).unwrap_or(i64::MAX);
    LogLine { offset, is_error, text: text.into(), at_ms, continues }
}

/// Room for one frame; `None` if the session is over. Without a way, for ever.
async fn reserve(frames: Option<mpsc::Sender<Message>>) -> Option<mpsc::OwnedPermit<Message>> {
    match frames {
        Some(frames) => frames.reserve_owned().await.ok(),
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::Line;
    use tenure_core::ids::{Attempt, TaskId};

    const SESSION: SessionId = SessionId(1);

    struct Bench {
        spool: Spool,
        shipper: mpsc::UnboundedSender<Shipment>,
        frames: mpsc::Receiver<Message>,
        _dir: tempfile::TempDir,
    }

    impl Bench {
        async fn new() -> Bench {
            let dir = tempfile::tempdir().expect("a directory");
            let (spool, held) = Spool::open(dir.path(), 1 << 30).expect("opened");
            let again_after = Duration::from_secs(600);
            let shipper = Shipper::start(spool.clone(), held, &BTreeSet::new(), again_after);
            let (sender, frames) = mpsc::channel(1);
            let outlet = Outlet { session: SESSION, frames: sender, positions: Vec::new() };
            shipper.send(Shipment::Attach(outlet)).expect("it runs");
            Bench { spool, shipper, frames, _dir: dir }
        }

        async fn append(&self, at: AttemptRef, count: usize, length: usize) -> u64 {
            let line =
                Line { is_error: false, at_ms: 1, text: vec![b'x'; length], continues: false };
            self.spool.append(at, vec![line; count]).await.expect("written")
        }

        fn tell(&self, told: Shipment) {
            self.shipper.send(told).expect("it runs");
        }

        fn stored(&self, at: AttemptRef, next: u64) {
            self.tell(Shipment::Stored { session: SESSION, at, next, closed: false });
        }

        /// The task of the next frame, and the offsets of its first and last line.
        async fn frame(&mut self) -> (u64, u64, u64) {
            match self.frames.recv().await {
                Some(Message::Log(log)) => {
                    let (first, last) = (log.lines.first(), log.lines.last());
                    let offset = |line: Option<&LogLine>| line.expect("a line").offset;
                    (log.task, offset(first), offset(last))
                }
                other => panic!("a log frame, not {other:?}"),
            }
        }
    }

    fn attempt(task: u64) -> AttemptRef {
        AttemptRef::new(TaskId(task), Attempt::FIRST)
    }

    #[tokio::test]
    async fn lines_that_went_before_they_were_told_of_do_not_go_again() {
        let mut bench = Bench::new().await;
        let at = attempt(1);
        bench.append(at, 2, 1).await;
        bench.tell(Shipment::Grew(at, 1));
        assert_eq!(bench.frame().await, (1, 0, 1), "the spool had one more");
        bench.stored(at, 2);
        bench.tell(Shipment::Grew(at, 2));
        let end = bench.append(at, 1, 1).await;
        bench.tell(Shipment::Grew(at, end));
        assert_eq!(bench.frame().await, (1, 2, 2));
    }

    #[tokio::test]
    async fn a_talkative_task_does_not_starve_another() {
        let mut bench = Bench::new().await;
        let loud = bench.append(attempt(1), 400, 1024).await;
        let quiet = bench.append(attempt(2), 1, 1).await;
        bench.tell(Shipment::Grew(attempt(1), loud));
        bench.tell(Shipment::Grew(attempt(2), quiet));
        let mut tasks = Vec::new();
        for _ in 0..3 {
            tasks.push(bench.frame().await.0);
        }
        assert!(tasks.contains(&2), "{tasks:?}");
    }

    #[tokio::test]
    async fn no_more_than_the_window_goes_ahead_of_acknowledgements() {
        let mut bench = Bench::new().await;
        let at = attempt(1);
        let end = bench.append(at, 2_000, 1024).await;
        bench.tell(Shipment::Grew(at, end));
        let mut last = 0;
        while last + 1 < (WINDOW / 1024) as u64 - 64 {
            last = bench.frame().await.2;
        }
        // Answered when the window is full, with all that fits on its way.
        let (done, flushed) = oneshot::channel();
        bench.tell(Shipment::Flush(at, done));
        let drain = async {
            while let Some(Message::Log(log)) = bench.frames.recv().await {
                last = log.lines.last().expect("a line").offset;
            }
        };
        tokio::select! {
            biased;
            () = drain => panic!("the shipper runs"),
            answered = flushed => answered.expect("answered"),
        }
        let ahead = usize::try_from(last + 1).expect("small") * 1024;
        assert!(ahead <= WINDOW + 2 * BATCH, "{ahead} bytes ahead");
        bench.stored(at, last + 1);
        assert_eq!(bench.frame().await.1, last + 1);
    }
}
