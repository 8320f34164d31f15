//! A master's beginning and end: everything that must be locked, opened and bound, and closed again.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::ids::{Incarnation, SessionId};
use tenure_core::master::{Master, MasterConfig};
use tenure_core::rules::Rules;
use tenure_proto::Limits;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::connection::{Service, serve};
use super::run::{Answer, Loop, State};
use super::{MasterHandle, MasterOptions, MasterStatus, Shared, StartError};
use crate::clock::{Clock, millis};
use crate::data_dir::DataDir;
use crate::incarnation;
use crate::logs::LogStore;
use crate::names::Names;
use crate::sql::SqliteStore;
use crate::tcp::complaints::Complaints;
use crate::tcp::listen;

/// Inputs that may wait for the loop; whoever has more to say waits, down to the peer's socket.
const INPUTS: usize = 8 * 1024;
/// Changes that a slow reader may lag behind.
const CHANGES: usize = 16 * 1024;
/// How long connections may take to say their last words when the master ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// Everything that is open while a master runs.
struct Parts {
    dir: DataDir,
    store: Arc<SqliteStore>,
    logs: Arc<LogStore>,
    names: Arc<Names>,
    complaints: Arc<Complaints>,
    listener: TcpListener,
    address: SocketAddr,
    incarnation: Incarnation,
    seed: u64,
    limits: Limits,
    answers: mpsc::UnboundedReceiver<Answer>,
}

pub(super) async fn start(options: MasterOptions) -> Result<MasterHandle, StartError> {
    let parts = open(&options).await?;
    let waited = options.start_timeout;
    let data_dir = parts.dir.path().to_owned();
    let handle = run(options, parts);
    match tokio::time::timeout(waited, leads(handle.status_changes())).await {
        Ok(true) => Ok(handle),
        Ok(false) | Err(_) => {
            let error = not_leading(&handle, data_dir, waited);
            handle.stop().await;
            Err(error)
        }
    }
}

async fn leads(mut status: watch::Receiver<MasterStatus>) -> bool {
    let reached = status.wait_for(|status| status.leads.is_some() || status.stopped).await;
    reached.is_ok_and(|status| status.leads.is_some())
}

fn not_leading(handle: &MasterHandle, data_dir: PathBuf, waited: Duration) -> StartError {
    StartError::NotLeading { data_dir, waited, trouble: handle.store().trouble() }
}

/// The port comes before the store: a port in use is found out before a large store is opened.
async fn open(options: &MasterOptions) -> Result<Parts, StartError> {
    let limits = Limits::new(options.frame_limit)?;
    let dir = DataDir::lock(&options.data_dir)?;
    let listener = listen::bind(options.listen)?;
    let address = listener.local_addr().unwrap_or(options.listen);
    let names = Arc::new(Names::new());
    let (sender, answers) = mpsc::unbounded_channel();
    let database = dir.database();
    let store =
        SqliteStore::open(&database, Arc::clone(&names), options.store.clone(), sender).await?;
    Ok(Parts {
        logs: Arc::new(LogStore::open(&dir.logs(), options.logs)?),
        store: Arc::new(store),
        names,
        complaints: Arc::default(),
        listener,
        address,
        incarnation: incarnation::draw().map_err(StartError::Random)?,
        seed: getrandom::u64().map_err(StartError::Random)?,
        limits,
        answers,
        dir,
    })
}

fn run(options: MasterOptions, parts: Parts) -> MasterHandle {
    let clock = Clock::start();
    let (inputs, waiting) = mpsc::channel(INPUTS);
    let (status_sender, status) = watch::channel(MasterStatus::default());
    let changes = broadcast::Sender::new(CHANGES);
    let progress = Arc::default();
    let shared = Arc::new(Shared {
        address: parts.address,
        incarnation: parts.incarnation,
        data_dir: parts.dir.path().to_owned(),
        clock,
        store: Arc::clone(&parts.store),
        logs: Arc::clone(&parts.logs),
        names: Arc::clone(&parts.names),
        complaints: Arc::clone(&parts.complaints),
        progress: Arc::clone(&progress),
    });
    let service = Service {
        inputs: inputs.clone(),
        names: Arc::clone(&parts.names),
        logs: Arc::clone(&parts.logs),
        complaints: Arc::clone(&parts.complaints),
        progress,
        limits: parts.limits,
        hello_timeout: options.hello_timeout,
        idle_timeout: options.idle_limit(),
        write_timeout: options.write_timeout,
    };
    let config = MasterConfig {
        policy: options.policy,
        rules: Rules::ALL,
        incarnation: parts.incarnation,
        exclusive: options.exclusive,
        seed: parts.seed,
    };
    let driver = Loop {
        master: Master::new(config),
        clock,
        store: Arc::clone(&parts.store),
        names: parts.names,
        complaints: parts.complaints,
        status: status_sender.clone(),
        changes: changes.clone(),
        heartbeat: options.policy.settings().heartbeat,
        store_timeout: millis(options.store_timeout),
        state: State::default(),
    };
    let end = CancellationToken::new();
    let doors = tokio::spawn(admit(parts.listener, service, end.clone()));
    let work = tokio::spawn(driver.run(waiting, parts.answers));
    let (store, logs, dir) = (parts.store, parts.logs, parts.dir);
    tokio::spawn(async move {
        if let Err(error) = work.await {
            tracing::error!("the master's loop ended: {error}; start the process again");
        }
        end.cancel();
        // A panic there has been told, and its connections are closed.
        let _ = doors.await;
        store.close().await;
        logs.close().await;
        drop(dir);
        status_sender.send_modify(|status| {
            status.leads = None;
            status.stopped = true;
        });
    });
    MasterHandle { inputs, status, changes, shared }
}

/// Accepts connections until the end, then lets them say their last words.
async fn admit(listener: TcpListener, service: Service, end: CancellationToken) {
    let mut connections = JoinSet::new();
    let mut next = SessionId(1);
    loop {
        tokio::select! {
            biased;
            () = end.cancelled() => break,
            Some(_) = connections.join_next() => {}
            (stream, peer) = listen::accept(&listener) => {
                connections.spawn(serve(service.clone(), stream, peer, next));
                next.0 += 1;
            }
        }
    }
    drop(listener);
    drop(service);
    let farewell = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(FAREWELL, farewell).await.is_err() {
        tracing::debug!("{} connections were cut at the end", connections.len());
    }
}
