//! A master on a directory of its own, and a worker that says what a test wants.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::BytesMut;
use tempfile::TempDir;
use tenure_adapters::driver::master::{MasterHandle, MasterOptions, MasterStatus};
use tenure_adapters::sql::{Durability, StoreOptions};
use tenure_core::command::Reply;
use tenure_core::event::Ask;
use tenure_core::ids::TaskId;
use tenure_core::spec::{IdempotencyKey, Limits, Payload, Shape, Submission};
use tenure_core::store::Status;
use tenure_proto::messages as pb;
use tenure_proto::{Decoded, FrameCodec, Message};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Nothing here takes so long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn soon<T>(what: &str, wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{what}: never came"))
}

pub(crate) struct Bench {
    pub(crate) dir: TempDir,
    pub(crate) master: MasterHandle,
}

pub(crate) fn options(dir: &Path) -> MasterOptions {
    MasterOptions {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        store: StoreOptions { durability: Durability::Process, ..Default::default() },
        ..MasterOptions::new(dir)
    }
}

impl Bench {
    pub(crate) async fn start() -> Bench {
        Bench::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut MasterOptions)) -> Bench {
        crate::lines::count();
        let dir = TempDir::new().expect("a temporary directory");
        let mut options = options(dir.path());
        change(&mut options);
        let master = soon("a master", MasterHandle::start(options)).await.expect("it leads");
        Bench { dir, master }
    }

    pub(crate) async fn worker(&self, name: &str, incarnation: u64) -> Worker {
        let mut worker = Worker::connect(self.master.address()).await;
        let ack = worker.hello(name, incarnation, pb::Inventory::default()).await;
        assert_eq!(ack.refused, 0, "{}", ack.detail);
        worker
    }

    pub(crate) async fn submit(&self, key: &str) -> TaskId {
        match submit(&self.master, key).await {
            Reply::Submitted { task, .. } => task,
            other => panic!("{key}: {other:?}"),
        }
    }

    pub(crate) async fn until(&self, task: TaskId, status: Status) {
        let mut changes = self.master.changes();
        let reached = async {
            loop {
                let view = self.master.store().task(task).await.expect("a readable store");
                if view.expect("a stored task").row.status == status {
                    return;
                }
                changes.recv().await.expect("the master runs");
            }
        };
        soon("a status", reached).await;
    }

    pub(crate) async fn shows(&self, what: impl FnMut(&MasterStatus) -> bool) -> MasterStatus {
        let mut changes = self.master.status_changes();
        *soon("a state of the master", changes.wait_for(what)).await.expect("it runs")
    }
}

pub(crate) async fn submit(master: &MasterHandle, key: &str) -> Reply {
    submit_command(master, key, &["true"]).await
}

pub(crate) async fn submit_command(master: &MasterHandle, key: &str, command: &[&str]) -> Reply {
    let body = pb::TaskBody {
        command: command.iter().map(|&part| part.to_owned()).collect(),
        algorithm: "PPO".to_owned(),
        episodes: 5,
        learning_rate: 0.001,
        trace_id: "trace-1".to_owned(),
        ..Default::default()
    };
    let submission = Submission {
        shape: Shape::default(),
        limits: Limits::default(),
        payload: Payload::of(&body.to_bytes()),
        key: IdempotencyKey(key.into()),
        fingerprint: 1,
    };
    soon("an answer", master.ask(Ask::Submit(submission))).await
}

/// A worker, or whatever a test makes of it.
pub(crate) struct Worker {
    stream: TcpStream,
    bytes: BytesMut,
    codec: FrameCodec,
}

impl Worker {
    pub(crate) async fn connect(master: SocketAddr) -> Worker {
        let stream = soon("a connection", TcpStream::connect(master)).await.expect("it listens");
        Worker { stream, bytes: BytesMut::new(), codec: FrameCodec::default() }
    }

    pub(crate) async fn say(&mut self, message: impl Into<Message>) {
        let mut frame = BytesMut::new();
        self.codec.write(&message.into(), &mut frame).expect("small");
        self.say_bytes(&frame).await;
    }

    pub(crate) async fn say_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("the master listens");
    }

    /// The next message; none when the master has ended the connection.
    pub(crate) async fn hear_any(&mut self) -> Option<Message> {
        let next = async {
            loop {
                match self.codec.read(&mut self.bytes).expect("masters speak frames") {
                    Some(Decoded::Message(message)) => return Some(message),
                    Some(Decoded::Unknown { type_code, .. }) => panic!("type {type_code}"),
                    None => {}
                }
                // A reset is an end too: the master closed with words of this worker unread.
                if !matches!(self.stream.read_buf(&mut self.bytes).await, Ok(1..)) {
                    return None;
                }
            }
        };
        soon("a message", next).await
    }

    pub(crate) async fn hear(&mut self) -> Message {
        self.hear_any().await.expect("the master has ended the connection")
    }

    /// The next message that this picks; others are passed over.
    pub(crate) async fn pick<T>(&mut self, mut pick: impl FnMut(Message) -> Option<T>) -> T {
        loop {
            if let Some(picked) = pick(self.hear().await) {
                return picked;
            }
        }
    }

    pub(crate) async fn ordered(&mut self) -> pb::ExecuteTaskRequest {
        self.pick(|message| match message {
            Message::Execute(order) => Some(order),
            _ => None,
        })
        .await
    }

    pub(crate) async fn acknowledged(&mut self) -> pb::ResultAck {
        self.pick(|message| match message {
            Message::ResultAck(ack) => Some(ack),
            _ => None,
        })
        .await
    }

    /// Waits until the master ends the connection, and gives what it said before.
    pub(crate) async fn ended(&mut self) -> Vec<Message> {
        let mut heard = Vec::new();
        while let Some(message) = self.hear_any().await {
            heard.push(message);
        }
        heard
    }

    pub(crate) async fn hello(
        &mut self,
        name: &str,
        incarnation: u64,
        inventory: pb::Inventory,
    ) -> pb::HelloAck {
        self.say(hello(name, incarnation, inventory)).await;
        match self.hear().await {
            Message::HelloAck(ack) => ack,
            other => panic!("{other:?} is no answer to a hello"),
        }
    }

    pub(crate) async fn accept(&mut self, order: &pb::ExecuteTaskRequest) {
        self.say(pb::ExecuteTaskResponse {
            task_id: order.task_id.clone(),
            accepted: true,
            task: order.task,
            attempt: order.attempt.cast_unsigned(),
            ..Default::default()
        })
        .await;
    }

    pub(crate) async fn succeed(&mut self, order: &pb::ExecuteTaskRequest, ran_by: u64) {
        self.say(pb::TaskStatusReport {
            attempt: order.attempt,
            task: order.task,
            ran_by,
            verdict: pb::Verdict::Succeeded.into(),
            ..Default::default()
        })
        .await;
    }

    /// Beats and waits for the answer: the master serves this worker.
    pub(crate) async fn beat(&mut self, incarnation: u64, running: Vec<pb::AttemptRef>) {
        self.say(heartbeat(incarnation, running)).await;
        self.pick(|message| matches!(message, Message::HeartbeatAck(_)).then_some(())).await;
    }
}

pub(crate) fn hello(name: &str, incarnation: u64, inventory: pb::Inventory) -> pb::Hello {
    pb::Hello {
        worker: name.to_owned(),
        incarnation,
        hostname: "test-host".to_owned(),
        pid: 77,
        slots: 1,
        inventory: Some(inventory),
        understands: Message::understands(),
        ..Default::default()
    }
}

pub(crate) fn heartbeat(incarnation: u64, running: Vec<pb::AttemptRef>) -> pb::HeartbeatRequest {
    pb::HeartbeatRequest {
        inventory: Some(pb::Inventory { running, finished: Vec::new() }),
        incarnation,
        ..Default::default()
    }
}

pub(crate) fn attempt_of(order: &pb::ExecuteTaskRequest) -> pb::AttemptRef {
    pb::AttemptRef { task: order.task, attempt: order.attempt.cast_unsigned() }
}
