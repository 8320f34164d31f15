//! A store in a directory of its own, and orders for it.

use std::path::PathBuf;
use std::sync::Arc;

use sqlx::{ConnectOptions, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;
use tenure_adapters::names::Names;
use tenure_adapters::sql::{Durability, SqliteStore, StoreError, StoreOptions};
use tenure_core::ids::{AttemptRef, EffectId, Epoch, Holder, Incarnation, TaskId, Term};
use tenure_core::outcome::{Outcome, Verdict};
use tenure_core::spec::{IdempotencyKey, Limits, Payload, Shape, Submission};
use tenure_core::store::{Change, Row, StoreAnswer, StoreOp, StoreResult};
use tenure_core::time::{Millis, Time};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The term that [`Fixture::lead`] takes.
pub(crate) const TERM: Term = Term { epoch: Epoch(1), leader: Incarnation(u64::MAX - 5) };

pub(crate) struct Fixture {
    pub(crate) dir: TempDir,
    pub(crate) names: Arc<Names>,
    pub(crate) store: SqliteStore,
    answers: UnboundedReceiver<(EffectId, StoreResult)>,
    next: u64,
}

pub(crate) fn options() -> StoreOptions {
    StoreOptions {
        durability: Durability::Process,
        busy_timeout: std::time::Duration::from_millis(20),
        ..StoreOptions::default()
    }
}

/// Opens a file whose answers nobody wants.
pub(crate) async fn open(path: &std::path::Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, Arc::new(Names::new()), options(), unbounded_channel().0).await
}

impl Fixture {
    pub(crate) async fn new() -> Fixture {
        Fixture::with(options()).await
    }

    pub(crate) async fn with(options: StoreOptions) -> Fixture {
        let dir = tempfile::tempdir().expect("a temporary directory");
        Fixture::at(dir, Names::new(), options).await
    }

    /// A store whose first leader leads.
    pub(crate) async fn led() -> Fixture {
        let mut fixture = Fixture::new().await;
        fixture.lead().await;
        fixture
    }

    pub(crate) async fn at(dir: TempDir, names: Names, options: StoreOptions) -> Fixture {
        let names = Arc::new(names);
        let (tell, answers) = unbounded_channel();
        let path = dir.path().join("tenure.db");
        let store = SqliteStore::open(&path, Arc::clone(&names), options, tell).await;
        Fixture { dir, names, store: store.expect("the file opens"), answers, next: 0 }
    }

    /// Closes the store and opens the file anew, as a later process would.
    pub(crate) async fn reopened(self, names: Names) -> Fixture {
        self.store.close().await;
        Fixture::at(self.dir, names, options()).await
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.store.path().to_owned()
    }

    /// A connection of somebody else.
    pub(crate) async fn intruder(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(self.path());
        options.connect().await.expect("the file opens")
    }

    /// Orders that arrive at once; their results in order.
    pub(crate) async fn all(&mut self, orders: Vec<StoreOp>) -> Vec<StoreResult> {
        let count = orders.len();
        self.submit(orders);
        self.results(count).await
    }

    pub(crate) fn submit(&mut self, orders: Vec<StoreOp>) {
        for order in orders {
            self.store.submit(EffectId(self.next), order);
            self.next += 1;
        }
    }

    pub(crate) async fn results(&mut self, count: usize) -> Vec<StoreResult> {
        let mut results = Vec::new();
        for _ in 0..count {
            results.push(self.answers.recv().await.expect("every order is answered").1);
        }
        results
    }

    pub(crate) async fn one(&mut self, order: StoreOp) -> StoreResult {
        self.all(vec![order]).await.remove(0)
    }

    pub(crate) async fn lead(&mut self) {
        let order = StoreOp::TakeTerm {
            after: Epoch(0),
            floor: Epoch(0),
            leader: TERM.leader,
            ttl: Millis(10_000),
            seize: false,
        };
        assert_eq!(self.one(order).await, StoreResult::Answer(StoreAnswer::Taken(TERM)));
    }

    pub(crate) async fn insert(&mut self, key: &str) -> TaskId {
        match self.one(insert(key)).await {
            StoreResult::Answer(StoreAnswer::Inserted { row, existed: false }) => row.task,
            other => panic!("not inserted: {other:?}"),
        }
    }

    /// Makes a change that takes effect.
    pub(crate) async fn change(&mut self, task: TaskId, at: u64, change: Change) -> Row {
        match self.one(StoreOp::Change { task, term: TERM, at: Time(at), change }).await {
            StoreResult::Answer(StoreAnswer::Changed { row, .. }) => row,
            other => panic!("not changed: {other:?}"),
        }
    }

    pub(crate) fn holder(&self, worker: &str, incarnation: u64) -> Holder {
        Holder { worker: self.names.worker(worker), incarnation: Incarnation(incarnation) }
    }

    pub(crate) async fn claim(&mut self, task: TaskId, at: u64, holder: Holder) -> AttemptRef {
        let newest =
            self.store.task(task).await.expect("readable").and_then(|view| view.row.attempt);
        let row = self.change(task, at, Change::Claim { newest, holder }).await;
        row.newest().expect("a claim makes an attempt")
    }
}

pub(crate) fn insert(key: &str) -> StoreOp {
    let submission = Submission {
        shape: Shape::default(),
        limits: Limits::default(),
        payload: Payload::of(format!("run {key}").as_bytes()),
        key: IdempotencyKey(Arc::from(key)),
        fingerprint: 1,
    };
    StoreOp::Insert { submission, at: Time(100), claim: None }
}

pub(crate) fn commit(at: AttemptRef, ran_by: u64, verdict: Verdict) -> Change {
    let report = Payload::of(format!("{verdict:?}").as_bytes());
    let outcome = Outcome { at, ran_by: Incarnation(ran_by), verdict, report };
    Change::Commit { outcome, retry_at: Time(0) }
}
