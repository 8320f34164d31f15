//! One worker's connection: its own task reads what it says and passes it on.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::ids::{Attempt, AttemptRef, SessionId, TaskId};
use tenure_core::message::ToMaster;
use tenure_proto::messages::{Hello, LogDataRequest, LogPosition};
use tenure_proto::{CodecError, Decoded, FrameError, Limits, Message};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::logs::LogPath;
use super::peer::{About, Peer};
use super::progress::{Board, Part};
use super::run::Input;
use crate::convert::{
    ConvertError, Dialect, attempts_in, progress_in, read_documented, read_to_master, reward_in,
};
use crate::logs::{Line, LogStore};
use crate::names::Names;
use crate::tcp::complaints::Complaints;
use crate::tcp::session::{self, Incoming};

/// How long the peer may go on talking after this side has ended the connection.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long a hello may wait for where its logs go on. A worker sends a log that is not listed from its beginning.
const POSITIONS_WITHIN: Duration = Duration::from_secs(1);

/// What every connection of a master needs.
#[derive(Clone)]
pub(super) struct Service {
    pub(super) inputs: mpsc::Sender<Input>,
    pub(super) names: Arc<Names>,
    pub(super) logs: Arc<LogStore>,
    pub(super) complaints: Arc<Complaints>,
    pub(super) progress: Arc<Board>,
    pub(super) limits: Limits,
    pub(super) hello_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) write_timeout: Duration,
}

/// Why this side ends a connection.
#[derive(Debug, Error)]
enum Breach {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Value(#[from] ConvertError),
    #[error("type {0} is not known, and a peer that says no hello sends types 1, 3, 4 and 5 only")]
    UnknownType(u8),
    #[error("{0} is sent by masters only")]
    WrongSide(&'static str),
    #[error("a hello comes first or not at all; this peer began without one")]
    LateHello,
}

impl Breach {
    fn kind(&self) -> &'static str {
        match self {
            Breach::Frame(error) => error.kind(),
            Breach::Value(error) => error.kind(),
            Breach::UnknownType(_) => "unknown_type",
            Breach::WrongSide(_) => "wrong_side",
            Breach::LateHello => "late_hello",
        }
    }
}

/// How a connection ended.
enum End {
    /// The peer ended it, or the network did.
    Gone,
    /// This side closed it.
    Closed,
    /// Nothing was said for too long.
    Silent,
    /// The peer broke the protocol.
    Breach(Breach),
    /// The master's loop has ended.
    Stopped,
}

/// Serves a connection to its end.
pub(super) async fn serve(service: Service, stream: TcpStream, address: SocketAddr, id: SessionId) {
    let (incoming, out, writer) = session::open(stream, service.limits, service.write_timeout);
    let complaints = Arc::clone(&service.complaints);
    let peer = Arc::new(Peer::new(id, address, out, complaints));
    let progress = Part::new(Arc::clone(&service.progress), id);
    let logs = LogPath::new();
    let connection = Connection { service, peer: Arc::clone(&peer), logs, progress };
    connection.run(incoming).await;
    if let Ok(Err(error)) = writer.await
        && error.kind() == io::ErrorKind::TimedOut
    {
        peer.slow();
    }
}

struct Connection {
    service: Service,
    peer: Arc<Peer>,
    logs: LogPath,
    progress: Part,
}

impl Connection {
    /// The loop hears of the beginning and of the end, and of what was said in between, in this order.
    async fn run(mut self, mut incoming: Incoming) {
        let inputs = self.service.inputs.clone();
        if inputs.send(Input::Opened(Arc::clone(&self.peer))).await.is_err() {
            return;
        }
        match self.read(&mut incoming).await {
            End::Closed => incoming.drain(LAST_WORDS).await,
            End::Breach(breach) => {
                self.service.complaints.raise(breach.kind(), self.peer.address, &breach);
            }
            End::Silent => self.service.complaints.count("silent"),
            End::Gone | End::Stopped => {}
        }
        // The loop may have ended; then nobody needs to know.
        let _ = inputs.send(Input::Closed(self.peer.id)).await;
    }

    async fn read(&mut self, incoming: &mut Incoming) -> End {
        let out = Arc::clone(&self.peer.out);
        let mut until = Instant::now() + self.service.hello_timeout;
        loop {
            let decoded = tokio::select! {
                biased;
                () = out.ended() => return End::Closed,
                decoded = incoming.next() => decoded,
                () = tokio::time::sleep_until(until) => return End::Silent,
            };
            let message = match decoded {
                Ok(Some(Decoded::Message(message))) => message,
                Ok(Some(Decoded::Unknown { type_code, .. })) => {
                    if self.peer.dialect() != Some(Dialect::Native) {
                        return End::Breach(Breach::UnknownType(type_code));
                    }
                    self.service.complaints.count("unknown_type");
                    continue;
                }
                Ok(None) => return End::Gone,
                Err(error) => return self.broken(error),
            };
            match self.on_message(message).await {
                // What comes before a hello does not put off the time by which it must come.
                Ok(true) if self.peer.dialect().is_some() => {
                    until = Instant::now() + self.service.idle_timeout;
                }
                Ok(true) => {}
                Ok(false) => return End::Stopped,
                Err(breach) => return End::Breach(breach),
            }
        }
    }

    /// A connection that ends in the middle of a frame is a crash of the peer, not a breach worth a line.
    fn broken(&self, error: CodecError) -> End {
        match error {
            CodecError::Frame(error @ FrameError::Truncated { .. }) => {
                self.service.complaints.count(error.kind());
                End::Gone
            }
            CodecError::Frame(error) => End::Breach(error.into()),
            CodecError::Io(error) => {
                tracing::debug!("{}: {error}", self.peer.address);
                End::Gone
            }
        }
    }

    /// False: the master's loop has ended.
    async fn on_message(&mut self, message: Message) -> Result<bool, Breach> {
        if message.sender() == tenure_proto::Peer::Master {
            return Err(Breach::WrongSide(message.name()));
        }
        let Some(dialect) = self.peer.dialect().or_else(|| Dialect::of(&message)) else {
            // Before its hello a peer has nothing to say.
            self.service.complaints.count("before_hello");
            return Ok(true);
        };
        let said = match (message, dialect) {
            (Message::Log(lines), Dialect::Native) => {
                self.on_lines(lines)?;
                return Ok(true);
            }
            (Message::Log(line), Dialect::Documented) => {
                self.on_plain_line(line);
                return Ok(true);
            }
            (message, Dialect::Native) => self.native(message).await?,
            (message, Dialect::Documented) => self.documented(&message)?,
        };
        match said {
            Some(said) => Ok(self.pass_on(said).await),
            None => Ok(true),
        }
    }

    async fn pass_on(&self, said: ToMaster) -> bool {
        self.service.inputs.send(Input::Received(self.peer.id, said)).await.is_ok()
    }

    async fn native(&mut self, mut message: Message) -> Result<Option<ToMaster>, Breach> {
        if let Message::Hello(hello) = &message {
            let positions = self.log_positions(hello).await;
            self.peer.introduce(Dialect::Native, About::of_hello(hello, positions));
        }
        let news = match &mut message {
            Message::Heartbeat(beat) => progress_in(beat),
            _ => Vec::new(),
        };
        let said = read_to_master(message, &self.service.names)?;
        // A peer whose hello was not acknowledged speaks for no worker.
        if let Some(said) = said.as_ref().filter(|_| self.peer.is_live()) {
            self.progress.on_said(said, news);
        }
        Ok(said)
    }

    fn documented(&self, message: &Message) -> Result<Option<ToMaster>, Breach> {
        if matches!(message, Message::Hello(_)) {
            return Err(Breach::LateHello);
        }
        if let Message::Heartbeat(beat) = message
            && self.peer.about().is_none()
        {
            self.peer.introduce(Dialect::Documented, About::of_heartbeat(beat));
        }
        let names = &self.service.names;
        let said = self.peer.with_run(|run| match run {
            Some(run) => read_documented(message, &run.log, names),
            None => read_documented(message, &Default::default(), names),
        });
        Ok(said?)
    }

    async fn log_positions(&self, hello: &Hello) -> Vec<LogPosition> {
        let mut positions = Vec::new();
        let ask_all = async {
            for at in attempts_in(hello) {
                match self.service.logs.next_offset(at).await {
                    Ok(next_offset) => positions.push(position(at, next_offset)),
                    Err(error) => tracing::warn!("{at}: {error}"),
                }
            }
        };
        if tokio::time::timeout(POSITIONS_WITHIN, ask_all).await.is_err() {
            self.service.complaints.count("positions_late");
        }
        positions
    }

    fn on_lines(&mut self, sent: LogDataRequest) -> Result<(), Breach> {
        let at = attempt_of(&sent)?;
        if !self.logs.numbered(at, sent.lines, &self.peer, &self.service.logs) {
            // They are not acknowledged, so the worker sends them again.
            self.service.complaints.count("log_later");
        }
        Ok(())
    }

    /// A line without number belongs to the attempt that was sent on this connection.
    fn on_plain_line(&mut self, sent: LogDataRequest) {
        let reward = reward_in(&sent.log_line).map(str::to_owned);
        let at = self.peer.with_run(|run| {
            let run = run.filter(|run| run.at.task.0.to_string() == sent.task_id)?;
            if reward.is_some() {
                run.log.reward = reward;
            }
            Some(run.at)
        });
        let Some(at) = at else {
            self.service.complaints.count("log_of_no_task");
            return;
        };
        let line = Line {
            is_error: sent.is_error,
            at_ms: u64::try_from(sent.timestamp).unwrap_or_default(),
            text: sent.log_line.into_bytes(),
            continues: false,
        };
        if self.logs.plain(at, line, &self.peer, &self.service.logs) {
            self.peer.with_run(|run| {
                if let Some(run) = run.filter(|run| run.at == at) {
                    run.log.lines += 1;
                }
            });
        } else {
            let what = format!("a log line of {at} was dropped, since the log store is slow");
            self.service.complaints.raise("log_dropped", self.peer.address, &what);
        }
    }
}

fn attempt_of(sent: &LogDataRequest) -> Result<AttemptRef, ConvertError> {
    const MESSAGE: &str = "LogDataRequest";
    if sent.task == 0 {
        return Err(ConvertError::Missing { message: MESSAGE, field: "task" });
    }
    match Attempt::new(sent.attempt) {
        Some(attempt) => Ok(AttemptRef::new(TaskId(sent.task), attempt)),
        None => Err(ConvertError::Missing { message: MESSAGE, field: "attempt" }),
    }
}

fn position(at: AttemptRef, next_offset: u64) -> LogPosition {
    let at = tenure_proto::messages::AttemptRef { task: at.task.0, attempt: at.attempt.number() };
    LogPosition { at: Some(at), next_offset }
}
