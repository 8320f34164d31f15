//! One connection: frames in, frames out.
//!
//! What is to be said is encoded into a buffer at once and written by a task of its own, so that whoever
//! speaks never waits for a slow peer; many messages become one write. What a peer says is read by whoever
//! serves the connection.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use tenure_proto::{CodecError, Decoded, FrameCodec, FrameError, Limits, Message};
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Room for what is read at once: little at first, since most of ten thousand peers say little.
const READ_AT_ONCE: usize = 4 << 10;
/// A buffer that grew beyond this is given back when it is empty.
const KEPT_ROOM: usize = 64 << 10;

/// What a peer says. Dropping it cuts the connection: nobody listens any more.
#[derive(Debug)]
pub struct Incoming {
    half: OwnedReadHalf,
    outgoing: Arc<Outgoing>,
    bytes: BytesMut,
    codec: FrameCodec,
}

impl Incoming {
    /// The next frame; `None` when the peer has ended the connection between two. May be dropped while it
    /// waits and called again; nothing is lost.
    ///
    /// # Errors
    /// [`CodecError`] if the peer broke the protocol or the connection broke. Then it must be closed.
    pub async fn next(&mut self) -> Result<Option<Decoded>, CodecError> {
        loop {
            if let Some(decoded) = self.codec.read(&mut self.bytes)? {
                return Ok(Some(decoded));
            }
            self.make_room();
            if self.half.read_buf(&mut self.bytes).await? == 0 {
                self.codec.finish(&self.bytes)?;
                return Ok(None);
            }
        }
    }

    fn make_room(&mut self) {
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_ROOM {
            self.bytes = BytesMut::new();
        }
        self.bytes.reserve(READ_AT_ONCE);
    }

    /// Reads and drops what the peer still says, until it ends the connection too or the time is up. To close
    /// with unread bytes would reset the connection and take back what it has not read yet.
    pub async fn drain(&mut self, limit: Duration) {
        let read_on = async {
            loop {
                self.bytes.clear();
                self.bytes.reserve(READ_AT_ONCE);
                if !matches!(self.half.read_buf(&mut self.bytes).await, Ok(1..)) {
                    return;
                }
            }
        };
        // Either way the connection is closed next.
        let _ = tokio::time::timeout(limit, read_on).await;
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.outgoing.cut();
    }
}

/// A message that is not said.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum SayError {
    /// More than a frame's limit waits already: the peer does not read. The connection was cut.
    #[error("the peer does not read what it is sent; the connection was closed")]
    Full,
    /// It is over the frame limit.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// What is to be said to a peer.
#[derive(Debug)]
pub struct Outgoing {
    state: Mutex<Waiting>,
    more: Notify,
    over: CancellationToken,
    codec: FrameCodec,
    /// At most so many bytes may wait before one more message.
    room: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: BytesMut,
    end: End,
}

/// How far a connection is from its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum End {
    #[default]
    Open,
    /// Says what waits, then ends.
    Closing,
    /// Ends with what waits unsaid.
    Cut,
}

impl Outgoing {
    /// Adds a message to what is to be said; [`Outgoing::flush`] sends it off. What is said after the end is swallowed.
    ///
    /// # Errors
    /// [`SayError`] says what was not said and why.
    pub fn say(&self, message: &Message) -> Result<(), SayError> {
        let mut waiting = self.lock();
        if waiting.end != End::Open {
            return Ok(());
        }
        if waiting.bytes.len() > self.room {
            drop(waiting);
            self.cut();
            return Err(SayError::Full);
        }
        Ok(self.codec.write(message, &mut waiting.bytes)?)
    }

    /// Sends off what was said.
    pub fn flush(&self) {
        self.more.notify_one();
    }

    /// Ends the connection once what was said is sent.
    pub fn close(&self) {
        self.end(End::Closing);
    }

    /// Ends the connection at once.
    pub fn cut(&self) {
        self.end(End::Cut);
    }

    /// Waits until the connection was closed or cut from this side.
    pub async fn ended(&self) {
        self.over.cancelled().await;
    }

    fn end(&self, end: End) {
        {
            let mut waiting = self.lock();
            if waiting.end != End::Cut {
                waiting.end = end;
            }
        }
        self.over.cancel();
        self.more.notify_one();
    }

    /// Swaps what waits with an empty buffer.
    fn take(&self, written: &mut BytesMut) -> End {
        written.clear();
        if written.capacity() > KEPT_ROOM {
            *written = BytesMut::new();
        }
        let mut waiting = self.lock();
        std::mem::swap(&mut waiting.bytes, written);
        waiting.end
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // An encoder that panicked has written nothing or a whole frame.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Splits a connection into its two directions and starts its writer. A write that makes no progress for
/// `stall` ends the connection.
pub fn open(
    stream: TcpStream,
    limits: Limits,
    stall: Duration,
) -> (Incoming, Arc<Outgoing>, JoinHandle<io::Result<()>>) {
    let (read, write) = stream.into_split();
    let outgoing = Arc::new(Outgoing {
        state: Mutex::default(),
        more: Notify::new(),
        over: CancellationToken::new(),
        codec: FrameCodec::new(limits),
        room: limits.max_frame() as usize,
    });
    let incoming = Incoming {
        half: read,
        outgoing: Arc::clone(&outgoing),
        bytes: BytesMut::new(),
        codec: FrameCodec::new(limits),
    };
    let writer = tokio::spawn(write_until_ended(Arc::clone(&outgoing), write, stall));
    (incoming, outgoing, writer)
}

async fn write_until_ended(
    outgoing: Arc<Outgoing>,
    mut half: OwnedWriteHalf,
    stall: Duration,
) -> io::Result<()> {
    let mut bytes = BytesMut::new();
    let done = loop {
        let end = outgoing.take(&mut bytes);
        if end == End::Cut {
            break Ok(());
        }
        if !bytes.is_empty() {
            if let Err(error) = write_all(&mut half, &bytes, stall).await {
                break Err(error);
            }
        } else if end == End::Closing {
            break half.shutdown().await;
        } else {
            outgoing.more.notified().await;
        }
    };
    outgoing.cut();
    done
}

async fn write_all(half: &mut OwnedWriteHalf, mut rest: &[u8], stall: Duration) -> io::Result<()> {
    while !rest.is_empty() {
        let written = match tokio::time::timeout(stall, half.write(rest)).await {
            Ok(written) => written?,
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        };
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        rest = &rest[written..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_proto::messages::{ExecuteTaskRequest, Ping};
    use tokio::net::TcpListener;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let (one, other) = tokio::join!(TcpStream::connect(address), listener.accept());
        (one.expect("connected"), other.expect("accepted").0)
    }

    fn large() -> Message {
        let body = vec![0; 1 << 20].into();
        ExecuteTaskRequest { body, ..Default::default() }.into()
    }

    #[tokio::test]
    async fn a_peer_that_reads_nothing_is_cut_off_before_memory_runs_out() {
        let (_silent, stream) = pair().await;
        let limits = Limits::new(4 << 20).expect("a usable limit");
        let (_incoming, out, _writer) = open(stream, limits, Duration::from_secs(600));
        let said = (0..64).take_while(|_| out.say(&large()).is_ok()).count();
        assert_eq!(said, 4, "a frame's limit and no more");
        out.ended().await;
    }

    #[tokio::test]
    async fn a_write_without_progress_ends_the_connection() {
        let (_silent, stream) = pair().await;
        let stall = Duration::from_millis(50);
        let (_incoming, out, writer) = open(stream, Limits::default(), stall);
        (0..16).for_each(|_| out.say(&large()).expect("there is room"));
        out.flush();
        let ended = writer.await.expect("no panic").expect_err("it stalls");
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
        out.ended().await;
    }

    #[tokio::test]
    async fn what_was_said_before_the_end_arrives_although_the_peer_talks_on() {
        let (mut talker, stream) = pair().await;
        let (mut incoming, out, writer) = open(stream, Limits::default(), Duration::from_secs(5));
        talker.write_all(&[0; 4096]).await.expect("nobody has closed");
        out.say(&Ping {}.into()).expect("there is room");
        out.close();
        let listen = async {
            let mut heard = Vec::new();
            let done = talker.read_to_end(&mut heard).await;
            drop(talker);
            done.map(|_| heard)
        };
        let (heard, ()) = tokio::join!(listen, incoming.drain(Duration::from_secs(5)));
        assert_eq!(heard.expect("no reset"), [0xCA, 0xFE, 0xBA, 0xBE, 1, 0, 0, 0, 10, 24]);
        writer.await.expect("no panic").expect("written");
    }

    #[tokio::test]
    async fn a_connection_that_nobody_reads_any_more_is_closed() {
        let (mut peer, stream) = pair().await;
        let (incoming, _out, writer) = open(stream, Limits::default(), Duration::from_secs(5));
        drop(incoming);
        writer.await.expect("no panic").expect("nothing to write");
        assert_eq!(peer.read(&mut [0; 1]).await.expect("an orderly end"), 0);
    }
}
