//! The one task that writes: takes what has arrived, makes it one transaction, answers.
//!
//! While a batch is in flight the next collects; an idle store waits for nothing.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use tenure_core::ids::EffectId;
use tenure_core::store::{StoreAnswer, StoreOp, StoreResult};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::batch::Needs;
use super::error::{StoreError, Trouble, trouble};
use super::load::load;
use super::save::save;
use super::statements;
use crate::names::Names;
use crate::wall::WallClock;

/// An order and the effect that its answer repeats.
pub(super) type Order = (EffectId, StoreOp);

/// At most so many orders in one transaction, so that the first does not wait for ever.
const BATCH_ORDERS: usize = 1024;
/// At most so many bytes of payloads and reports in one transaction; SQLite takes 1 GB in one value.
const BATCH_BYTES: usize = 64 << 20;

/// What the writer shows to others.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) commits: AtomicU64,
    pub(super) trouble: Mutex<Option<Arc<str>>>,
}

/// What becomes of a batch that was not answered.
enum NoAnswer {
    /// Nothing was changed, and the orders would fare the same one by one.
    Failed,
    /// Nothing was changed; one of the orders may be to blame.
    MaybeOneOrder,
    /// The commit gave no clear answer.
    Unknown,
}

/// The writer's own: its connection, and where answers go.
pub(super) struct Writer {
    pub(super) path: PathBuf,
    pub(super) options: SqliteConnectOptions,
    pub(super) conn: Option<SqliteConnection>,
    pub(super) names: Arc<Names>,
    pub(super) clock: WallClock,
    pub(super) shown: Arc<Shown>,
    pub(super) answers: UnboundedSender<(EffectId, StoreResult)>,
}

impl Writer {
    /// Works until nobody can order any more and everything ordered is answered.
    pub(super) async fn run(mut self, mut orders: UnboundedReceiver<Order>) {
        let mut arrived = Vec::new();
        while orders.recv_many(&mut arrived, BATCH_ORDERS).await > 0 {
            let mut rest = arrived.as_slice();
            while !rest.is_empty() {
                let (batch, later) = rest.split_at(fitting(rest));
                self.settle(batch).await;
                rest = later;
            }
            arrived.clear();
        }
        if let Some(conn) = self.conn.take()
            && let Err(error) = conn.close().await
        {
            tracing::warn!("{}", StoreError::of(&self.path, error));
        }
    }

    /// Answers every order of the batch. If one order's own data fails the batch, halves are tried, so
    /// that the others succeed.
    async fn settle(&mut self, batch: &[Order]) {
        let mut parts = vec![batch];
        while let Some(part) = parts.pop() {
            match self.transact(part).await {
                Ok(answers) => {
                    self.mend();
                    let answered = part.iter().zip(answers);
                    answered
                        .for_each(|((effect, _), is)| self.tell(*effect, StoreResult::Answer(is)));
                }
                Err(NoAnswer::MaybeOneOrder) if part.len() > 1 => {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                }
                Err(NoAnswer::MaybeOneOrder | NoAnswer::Failed) => {
                    part.iter().for_each(|(effect, _)| self.tell(*effect, StoreResult::Failed));
                }
                Err(NoAnswer::Unknown) => {
                    part.iter().for_each(|(effect, _)| self.tell(*effect, StoreResult::Unknown));
                }
            }
        }
    }

    async fn transact(&mut self, batch: &[Order]) -> Result<Vec<StoreAnswer>, NoAnswer> {
        let mut conn = match self.conn.take() {
            Some(conn) => conn,
            None => self.options.connect().await.map_err(|error| self.failed(error))?,
        };
        if let Err(error) = run(&mut conn, statements::BEGIN).await {
            self.conn = Some(conn);
            return Err(self.failed(error));
        }
        match self.carry_out(&mut conn, batch).await {
            Ok(answers) => {
                if let Err(error) = run(&mut conn, statements::COMMIT).await {
                    // A new connection reads what truly stands in the file.
                    drop(conn);
                    self.failed(error);
                    return Err(NoAnswer::Unknown);
                }
                self.shown.commits.fetch_add(1, Ordering::Relaxed);
                self.conn = Some(conn);
                Ok(answers)
            }
            Err(error) => {
                if run(&mut conn, statements::ROLLBACK).await.is_ok() {
                    self.conn = Some(conn);
                }
                Err(self.failed(error))
            }
        }
    }

    async fn carry_out(
        &self,
        conn: &mut SqliteConnection,
        orders: &[Order],
    ) -> Result<Vec<StoreAnswer>, sqlx::Error> {
        let needs = Needs::of(orders.iter().map(|(_, order)| order));
        let mut batch = load(conn, needs, (self.clock)(), &self.names).await?;
        let answers = orders.iter().map(|(_, order)| batch.apply(order)).collect();
        save(conn, &batch, &self.names).await?;
        Ok(answers)
    }

    /// Shows the trouble to people, once for as long as it lasts.
    fn failed(&self, error: sqlx::Error) -> NoAnswer {
        let kind = trouble(&error);
        let text: Arc<str> = Arc::from(StoreError::of(&self.path, error).to_string());
        let mut shown = self.shown.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.as_ref() != Some(&text) {
            tracing::error!("the task store refuses writes: {text}");
        }
        *shown = Some(text);
        match kind {
            Trouble::Busy | Trouble::Disk | Trouble::Unusable => NoAnswer::Failed,
            Trouble::Data => NoAnswer::MaybeOneOrder,
        }
    }

    fn mend(&self) {
        let mut shown = self.shown.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.take().is_some() {
            tracing::info!("the task store takes writes again");
        }
    }

    fn tell(&self, effect: EffectId, result: StoreResult) {
        // Whoever asked may have ended; then nobody waits for the answer.
        let _ = self.answers.send((effect, result));
    }
}

/// How many of the first orders go into one transaction: at least one.
fn fitting(orders: &[Order]) -> usize {
    let mut bytes = 0_usize;
    let fits = orders.iter().take_while(|(_, order)| {
        bytes = bytes.saturating_add(weight(order));
        bytes <= BATCH_BYTES
    });
    fits.count().max(1)
}

fn weight(order: &StoreOp) -> usize {
    use tenure_core::store::Change;
    match order {
        StoreOp::Insert { submission, .. } => submission.payload.bytes().len(),
        StoreOp::Change { change: Change::Commit { outcome, .. }, .. } => {
            outcome.report.bytes().len()
        }
        _ => 0,
    }
}

async fn run(conn: &mut SqliteConnection, sql: &'static str) -> Result<(), sqlx::Error> {
    sqlx::query(sql).execute(conn).await.map(|_| ())
}
