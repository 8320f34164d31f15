//! The SQLite store against the table.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use tenure_adapters::names::Names;
use tenure_adapters::sql::{Durability, SqliteStore, StoreOptions};
use tenure_core::ids::EffectId;
use tenure_core::store::{StoreOp, StoreResult};
use tenure_core::time::Time;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::orders::{LABELS, WORKERS};
use crate::{Met, Subject, compare};

struct Sqlite {
    _dir: TempDir,
    path: PathBuf,
    clock: Arc<AtomicU64>,
    next: u64,
    open: Option<(SqliteStore, UnboundedReceiver<(EffectId, StoreResult)>)>,
}

impl Sqlite {
    async fn new() -> Sqlite {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("tenure.db");
        let clock = Arc::new(AtomicU64::new(0));
        let mut new = Sqlite { _dir: dir, path, clock, next: 0, open: None };
        new.open().await;
        new
    }

    async fn open(&mut self) {
        let names = Names::new();
        // The table's numbers, whatever the order in which the store would first see the names.
        (0..WORKERS).for_each(|n| assert_eq!(names.worker(&format!("worker-{n}")).0, n));
        (0..LABELS).for_each(|n| assert_eq!(names.label(&format!("label '{n}'")).0, n));
        let clock = Arc::clone(&self.clock);
        let options = StoreOptions {
            durability: Durability::Process,
            clock: Arc::new(move || Time(clock.load(Ordering::Relaxed))),
            ..StoreOptions::default()
        };
        let (answers, answered) = unbounded_channel();
        let store = SqliteStore::open(&self.path, Arc::new(names), options, answers).await;
        self.open = Some((store.expect("the file opens"), answered));
    }
}

impl Subject for Sqlite {
    async fn carry_out(&mut self, now: Time, orders: &[StoreOp]) -> Vec<StoreResult> {
        self.clock.store(now.0, Ordering::Relaxed);
        let (store, answered) = self.open.as_mut().expect("the store is open");
        for (order, effect) in orders.iter().zip(self.next..) {
            store.submit(EffectId(effect), order.clone());
        }
        let mut results = Vec::new();
        for _ in orders {
            let (effect, result) = answered.recv().await.expect("every order is answered");
            assert_eq!(effect, EffectId(self.next), "answers come in order");
            self.next += 1;
            results.push(result);
        }
        results
    }

    async fn restart(&mut self) {
        let (store, _) = self.open.take().expect("the store is open");
        store.close().await;
        self.open().await;
    }
}

#[tokio::test]
async fn sqlite_answers_like_the_table() {
    let mut met = Met::default();
    for seed in 0..12 {
        let mut sqlite = Sqlite::new().await;
        compare(seed, 150, &mut sqlite, &mut met).await;
    }
    let all = [
        "Ahead",
        "All",
        "Applied",
        "Changed",
        "Deposed",
        "Inserted",
        "KeyTaken",
        "NoTask",
        "NotTaken",
        "Read",
        "Refused",
        "Registered",
        "Released",
        "Renewed",
        "Repeat",
        "Superseded",
        "Taken",
        "TermIs",
        "WasReplaced",
        "existed",
    ];
    let missing: Vec<&str> = all.into_iter().filter(|kind| !met.0.contains(*kind)).collect();
    assert!(missing.is_empty(), "no order led to {missing:?}");
}
