//! How a master is set up, and why it cannot start.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use tenure_core::policy::Policy;
use tenure_proto::LimitError;
use thiserror::Error;

use crate::data_dir::DirError;
use crate::logs::{LogError, LogOptions};
use crate::sql::{StoreError, StoreOptions};
use crate::tcp::listen::ListenError;

/// The conventional port for workers.
const PORT: u16 = 9000;

/// How a master is set up.
#[derive(Clone)]
pub struct MasterOptions {
    /// Timings.
    pub policy: Policy,
    /// Where its data is; this process's own.
    pub data_dir: PathBuf,
    /// Where workers connect. Default 127.0.0.1:9000; port 0 takes a free one.
    pub listen: SocketAddr,
    /// No other master can reach the store: leads at once, and needs no renewal. Default: so, since a data
    /// directory belongs to one process.
    pub exclusive: bool,
    /// The largest frame in bytes. Default 16 MiB.
    pub frame_limit: usize,
    /// How the task store is opened.
    pub store: StoreOptions,
    /// How logs are kept.
    pub logs: LogOptions,
    /// How long a new connection may take to say its first message. Default 15 s: a documented worker beats
    /// every 10 s on a clock that does not start with the connection.
    pub hello_timeout: Duration,
    /// How long a connection may go without a message after that, two heartbeat TTLs at least. Default 60 s. Core
    /// ends sessions of workers much sooner, this ends what is none.
    pub idle_timeout: Duration,
    /// How long a peer may take to read anything of what it is sent. Default 10 s.
    pub write_timeout: Duration,
    /// After this long an order to the store counts as not answered. Default 10 s.
    pub store_timeout: Duration,
    /// How long a start may take until it leads. Default 2 min: a million tasks are read in seconds.
    pub start_timeout: Duration,
}

impl MasterOptions {
    /// Defaults, with data in this directory.
    #[must_use]
    pub fn new(data_dir: impl Into<PathBuf>) -> MasterOptions {
        MasterOptions {
            policy: Policy::default(),
            data_dir: data_dir.into(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            exclusive: true,
            frame_limit: tenure_proto::Limits::DEFAULT_MAX_FRAME as usize,
            store: StoreOptions::default(),
            logs: LogOptions::default(),
            hello_timeout: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(10),
            store_timeout: Duration::from_secs(10),
            start_timeout: Duration::from_secs(120),
        }
    }
}

impl MasterOptions {
    /// Whatever is set, a worker is judged by its heartbeat TTL before its connection is taken for dead.
    pub(super) fn idle_limit(&self) -> Duration {
        let ttl = Duration::from_millis(self.policy.settings().heartbeat_ttl.0);
        self.idle_timeout.max(ttl.saturating_mul(2))
    }
}

/// Why a master cannot start. Each names what stands in the way and what to do.
#[derive(Debug, Error)]
pub enum StartError {
    /// The data directory.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// The task store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The logs.
    #[error(transparent)]
    Logs(#[from] LogError),
    /// The port for workers.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The frame limit.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// The system has no randomness.
    #[error(
        "the system gives no random numbers ({0}); a master cannot be told from others without one"
    )]
    Random(getrandom::Error),
    /// It does not come to lead.
    #[error(
        "{}: after {} s this master does not lead{}; check that no other master uses this store",
        data_dir.display(),
        waited.as_secs(),
        trouble.as_ref().map(|why| format!(", since {why}")).unwrap_or_default()
    )]
    NotLeading {
        /// Its data.
        data_dir: PathBuf,
        /// How long it waited.
        waited: Duration,
        /// Why the store does not take writes, if it does not.
        trouble: Option<std::sync::Arc<str>>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::policy::Settings;
    use tenure_core::time::Millis;

    #[test]
    fn a_long_heartbeat_ttl_is_waited_for() {
        let mut options = MasterOptions::new("data");
        assert_eq!(options.idle_limit(), Duration::from_secs(60));
        let settings = Settings { heartbeat_ttl: Millis(120_000), ..Settings::DOCUMENTED };
        options.policy = Policy::new(settings).expect("a safe policy");
        assert_eq!(options.idle_limit(), Duration::from_secs(240));
    }
}
