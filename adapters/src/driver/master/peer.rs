//! What the loop and a connection's own task share.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tenure_core::ids::{AttemptRef, SessionId};
use tenure_core::message::ToWorker;
use tenure_proto::messages::{HelloAck, LogPosition};
use tenure_proto::{Message, messages as pb};

use crate::convert::{Dialect, DocumentedLog, write_to_worker};
use crate::tcp::complaints::Complaints;
use crate::tcp::session::{Outgoing, SayError};

/// One connection.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) id: SessionId,
    pub(super) address: SocketAddr,
    pub(super) out: Arc<Outgoing>,
    /// Known from its first message on.
    dialect: OnceLock<Dialect>,
    /// Known from its hello, or a documented worker's first heartbeat, on.
    about: OnceLock<About>,
    /// For documented workers: what they were sent on this connection, and what its log told.
    run: Mutex<Option<DocumentedRun>>,
    /// Whether it speaks for a worker.
    live: AtomicBool,
    complaints: Arc<Complaints>,
}

/// How a worker introduced itself, as far as core does not know it.
#[derive(Debug, Default)]
pub(super) struct About {
    pub(super) name: Arc<str>,
    pub(super) hostname: Arc<str>,
    pub(super) pid: Option<u32>,
    pub(super) version: Option<Arc<str>>,
    /// The message types that it takes.
    pub(super) understands: Vec<u8>,
    /// Where the logs of the attempts that it has go on.
    pub(super) log_positions: Vec<LogPosition>,
}

/// What a documented worker runs.
#[derive(Debug)]
pub(super) struct DocumentedRun {
    pub(super) at: AttemptRef,
    pub(super) log: DocumentedLog,
}

impl Peer {
    pub(super) fn new(
        id: SessionId,
        address: SocketAddr,
        out: Arc<Outgoing>,
        complaints: Arc<Complaints>,
    ) -> Peer {
        Peer {
            id,
            address,
            out,
            dialect: OnceLock::new(),
            about: OnceLock::new(),
            run: Mutex::default(),
            live: AtomicBool::new(false),
            complaints,
        }
    }

    pub(super) fn dialect(&self) -> Option<Dialect> {
        self.dialect.get().copied()
    }

    pub(super) fn about(&self) -> Option<&About> {
        self.about.get()
    }

    /// Takes the first introduction; core ends a session that makes a second one.
    pub(super) fn introduce(&self, dialect: Dialect, about: About) {
        let _ = self.dialect.set(dialect);
        let _ = self.about.set(about);
    }

    pub(super) fn is_live(&self) -> bool {
        self.live.load(Ordering::Relaxed)
    }

    pub(super) fn set_live(&self) -> bool {
        !self.live.swap(true, Ordering::Relaxed)
    }

    /// Says what core orders, filled up with what core does not know. What this worker does not take is left out.
    pub(super) fn tell(&self, said: &ToWorker, fill: impl FnOnce(&mut HelloAck)) {
        let dialect = self.dialect().unwrap_or(Dialect::Native);
        let Some(mut message) = write_to_worker(said, dialect) else {
            return;
        };
        if let (ToWorker::Execute(order), Dialect::Documented) = (said, dialect) {
            self.begin(order.at);
        }
        if let Message::HelloAck(ack) = &mut message {
            fill(ack);
        }
        self.say(&message);
    }

    /// Says it if the worker takes this type of message.
    pub(super) fn say(&self, message: &Message) {
        let code = message.type_code();
        let listed = self.about().is_some_and(|about| about.understands.contains(&code));
        // Whoever says hello takes its answer, and orders to run are what a worker is there for.
        if !listed && !matches!(message, Message::HelloAck(_) | Message::Execute(_)) {
            return;
        }
        match self.out.say(message) {
            Ok(()) => {}
            Err(SayError::Full) => self.slow(),
            Err(SayError::Frame(error)) => {
                self.complaints.raise("not_sent", self.address, &error);
            }
        }
    }

    /// It took nothing of what it was sent for too long.
    pub(super) fn slow(&self) {
        let what = "does not read what it is sent; the connection was closed";
        self.complaints.raise("slow", self.address, &what);
    }

    /// The same attempt may be sent again; its log goes on.
    fn begin(&self, at: AttemptRef) {
        let mut run = self.run.lock().unwrap_or_else(PoisonError::into_inner);
        if run.as_ref().is_none_or(|run| run.at != at) {
            *run = Some(DocumentedRun { at, log: DocumentedLog::default() });
        }
    }

    /// Looks at what a documented worker was sent.
    pub(super) fn with_run<T>(&self, look: impl FnOnce(Option<&mut DocumentedRun>) -> T) -> T {
        look(self.run.lock().unwrap_or_else(PoisonError::into_inner).as_mut())
    }
}

impl About {
    pub(super) fn of_hello(hello: &pb::Hello, log_positions: Vec<LogPosition>) -> About {
        let codes = hello.understands.iter();
        About {
            name: Arc::from(hello.worker.as_str()),
            hostname: Arc::from(hello.hostname.as_str()),
            pid: Some(hello.pid),
            version: Some(Arc::from(hello.version.as_str())),
            understands: codes.filter_map(|code| u8::try_from(*code).ok()).collect(),
            log_positions,
        }
    }

    pub(super) fn of_heartbeat(beat: &pb::HeartbeatRequest) -> About {
        About {
            name: Arc::from(beat.worker_id.as_str()),
            hostname: Arc::from(beat.hostname.as_str()),
            ..About::default()
        }
    }
}
