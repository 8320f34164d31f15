//! A worker's connection to a master: one task reads and writes it, and what is said in haste goes before logs.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::StreamExt;
use tenure_core::ids::SessionId;
use tenure_proto::{Decoded, FrameCodec, Limits, Message, Peer};
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::codec::FramedRead;

/// Messages that may wait for a master that does not read. A worker says a few a second, so this many
/// mean that nobody reads any more.
const CONTROL_ROOM: usize = 4096;

/// Log frames that may wait between the shipper and the socket: one is written while one is prepared.
/// More would only stand between the worker and its heartbeats.
const LOG_ROOM: usize = 2;

/// Messages written at once end here.
const COALESCED: usize = 64 << 10;

/// Connects to `host:port`, every address of that name in turn, within the limit.
///
/// # Errors
/// What the last address said, or that the time was up.
pub async fn connect(master: &str, limit: Duration) -> io::Result<TcpStream> {
    match tokio::time::timeout(limit, connect_any(master)).await {
        Ok(done) => done,
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            format!("no answer from {master} within {} ms", limit.as_millis()),
        )),
    }
}

async fn connect_any(master: &str) -> io::Result<TcpStream> {
    let mut last = None;
    for address in lookup_host(master).await? {
        match connect_one(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, format!("{master} has no address"))
    }))
}

async fn connect_one(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_keepalive(true)?;
    let stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// What comes out of a connection.
#[derive(Debug)]
pub enum Heard {
    /// The master said something.
    Message(Message),
    /// The connection is over: why, for people. Nothing follows.
    Closed(String),
}

/// One connection that can be spoken into. Dropping it says what waits, then closes it.
#[derive(Debug)]
pub struct Link {
    control: mpsc::Sender<Said>,
    logs: mpsc::Sender<Message>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Said {
    message: Message,
    place: Place,
}

/// Where a message stands among those that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Before every log frame that waits.
    First,
    /// After the log frames that wait, a few at most: an outcome, whose lines came before it.
    AfterLogs,
}

/// The master does not read: so much waits that the connection is as good as closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clogged;

impl Link {
    /// Starts reading and writing. Each `Heard` goes to `heard` under this session.
    ///
    /// A write that makes no progress for `stalled` ends the connection.
    pub fn open<T: Send + 'static>(
        stream: TcpStream,
        session: SessionId,
        limits: Limits,
        stalled: Duration,
        heard: mpsc::Sender<T>,
        wrap: fn(SessionId, Heard) -> T,
    ) -> Link {
        let (control, said) = mpsc::channel(CONTROL_ROOM);
        let (logs, lines) = mpsc::channel(LOG_ROOM);
        let (reader, writer) = stream.into_split();
        let codec = FrameCodec::new(limits);
        let ear = Ear { session, heard, wrap };
        let writer =
            Writer { half: writer, codec: codec.clone(), buffer: BytesMut::new(), stalled };
        let task = tokio::spawn(async move {
            let why = tokio::select! {
                why = read(FramedRead::new(reader, codec), &ear) => why,
                written = writer.run(said, lines) => match written {
                    // Hung up from this side: nobody asks for the reason.
                    Ok(()) => return,
                    Err(error) => format!("it cannot be written to: {error}"),
                },
            };
            ear.pass(Heard::Closed(why)).await;
        });
        Link { control, logs, task }
    }

    /// Says something. Never waits.
    ///
    /// # Errors
    /// [`Clogged`] if it cannot be kept for a master that does not read.
    pub fn say(&self, message: Message, place: Place) -> Result<(), Clogged> {
        match self.control.try_send(Said { message, place }) {
            // A connection that is over says so by itself.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
            Err(mpsc::error::TrySendError::Full(_)) => Err(Clogged),
        }
    }

    /// The way for log frames, which waits while the socket is busy.
    #[must_use]
    pub fn logs(&self) -> mpsc::Sender<Message> {
        self.logs.clone()
    }

    /// Stops hearing, says what waits, then closes. The handle ends when that is done.
    #[must_use]
    pub fn hang_up(self) -> JoinHandle<()> {
        self.task
    }
}

/// Where what is heard goes.
struct Ear<T> {
    session: SessionId,
    heard: mpsc::Sender<T>,
    wrap: fn(SessionId, Heard) -> T,
}

impl<T> Ear<T> {
    /// False if nobody listens any more.
    async fn pass(&self, what: Heard) -> bool {
        self.heard.send((self.wrap)(self.session, what)).await.is_ok()
    }
}

async fn read<T>(mut frames: FramedRead<OwnedReadHalf, FrameCodec>, ear: &Ear<T>) -> String {
    loop {
        match frames.next().await {
            Some(Ok(Decoded::Message(message))) if message.sender() == Peer::Worker => {
                return format!("it sent {}, which only workers send", message.name());
            }
            Some(Ok(Decoded::Message(message))) => {
                if !ear.pass(Heard::Message(message)).await {
                    return "the worker ends".to_owned();
                }
            }
            Some(Ok(Decoded::Unknown { type_code, length })) => {
                tracing::debug!(type_code, length, "skipped a message of a type not known here");
            }
            Some(Err(error)) => return error.to_string(),
            None => return "the master closed it".to_owned(),
        }
    }
}

struct Writer {
    half: OwnedWriteHalf,
    codec: FrameCodec,
    buffer: BytesMut,
    stalled: Duration,
}

impl Writer {
    /// Ends well when the [`Link`] is gone and everything said is written.
    async fn run(
        mut self,
        mut said: mpsc::Receiver<Said>,
        mut lines: mpsc::Receiver<Message>,
    ) -> io::Result<()> {
        loop {
            tokio::select! {
                biased;
                next = said.recv() => match next {
                    Some(next) => self.add_said(next, &mut said, &mut lines),
                    None => return self.half.shutdown().await,
                },
                Some(frame) = lines.recv() => self.add(&frame),
            }
            self.flush().await?;
        }
    }

    /// The message and those that wait behind it, up to a buffer full.
    fn add_said(
        &mut self,
        first: Said,
        said: &mut mpsc::Receiver<Said>,
        lines: &mut mpsc::Receiver<Message>,
    ) {
        let mut next = Some(first);
        while let Some(Said { message, place }) = next {
            if place == Place::AfterLogs {
                while let Ok(frame) = lines.try_recv() {
                    self.add(&frame);
                }
            }
            self.add(&message);
            next = if self.buffer.len() < COALESCED { said.try_recv().ok() } else { None };
        }
    }

    fn add(&mut self, message: &Message) {
        if let Err(error) = self.codec.write(message, &mut self.buffer) {
            // Bodies are bounded far below any limit; a peer's setting may still be too low.
            tracing::error!(kind = message.name(), %error, "a message cannot be sent; raise the frame limit");
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        while !self.buffer.is_empty() {
            let write = self.half.write_buf(&mut self.buffer);
            match tokio::time::timeout(self.stalled, write).await {
                Ok(written) => written?,
                Err(_) => return Err(io::ErrorKind::TimedOut.into()),
            };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_proto::messages as pb;
    use tokio::net::TcpListener;

    /// Nothing runs between two lines of the test, so all is said before the writer's first turn.
    #[tokio::test(flavor = "current_thread")]
    async fn what_is_urgent_goes_before_logs_and_an_outcome_after_them() {
        let (ours, theirs) = pair().await;
        let (heard, _ears) = mpsc::channel(1);
        let limit = Duration::from_secs(60);
        let wrap = |_, heard| heard;
        let link = Link::open(ours, SessionId(1), Limits::default(), limit, heard, wrap);
        let logs = link.logs();
        for _ in 0..LOG_ROOM {
            logs.try_send(pb::LogDataRequest::default().into()).expect("there is room");
        }
        assert!(logs.try_send(pb::LogDataRequest::default().into()).is_err(), "and no more");
        link.say(pb::HeartbeatRequest::default().into(), Place::First).expect("room");
        link.say(pb::TaskStatusReport::default().into(), Place::AfterLogs).expect("room");
        drop(logs);
        let written = link.hang_up();
        let frames: Vec<_> = FramedRead::new(theirs, FrameCodec::default())
            .map(|frame| match frame {
                Ok(Decoded::Message(message)) => message.name(),
                other => panic!("{other:?}"),
            })
            .collect()
            .await;
        let logs = ["LogDataRequest"; LOG_ROOM];
        assert_eq!(frames[0], "HeartbeatRequest");
        assert_eq!(frames[1..=LOG_ROOM], logs);
        assert_eq!(frames[1 + LOG_ROOM..], ["TaskStatusReport"]);
        written.await.expect("no panic");
    }

    #[tokio::test]
    async fn a_peer_that_breaks_the_protocol_is_closed_with_the_reason() {
        let (ours, mut theirs) = pair().await;
        let (heard, mut ears) = mpsc::channel(1);
        let limit = Duration::from_secs(60);
        let wrap = |_, heard| heard;
        let _link = Link::open(ours, SessionId(1), Limits::default(), limit, heard, wrap);
        theirs.write_all(b"GET / HTTP/1.1\r\n").await.expect("connected");
        match ears.recv().await.expect("something is heard") {
            Heard::Closed(why) => assert!(why.contains("47455420"), "{why}"),
            Heard::Message(message) => panic!("{message:?}"),
        }
    }

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound").to_string();
        let ours = connect(&address, Duration::from_secs(60)).await.expect("it listens");
        let (theirs, _) = listener.accept().await.expect("connected");
        (ours, theirs)
    }
}
