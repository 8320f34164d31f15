//! Questions of people, on read-only connections.

use std::cmp::Reverse;
use std::sync::Arc;

use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;
use tenure_core::ids::{Epoch, Incarnation, TaskId};
use tenure_core::spec::Payload;
use tenure_core::store::Status;
use tenure_core::time::Time;

use super::load::payload;
use super::row::{attempt, decode, undecodable};
use super::statements::row_columns;
use super::view::{AttemptView, Counts, EventView, ListFilter, TaskView, WorkerView};
use super::{SqliteStore, StoreError, code};

const TASK: &str = concat!("SELECT ", row_columns!(), " FROM tasks AS t WHERE t.id = ?1");

/// NULL filters nothing.
const LIST: &str = concat!(
    "SELECT ",
    row_columns!(),
    " FROM tasks AS t WHERE t.id < ?1 AND (?2 IS NULL OR t.worker = ?2) ORDER BY t.id DESC LIMIT ?3"
);

/// One status at a time: so the index gives the order, however many tasks there are.
const LIST_OF_STATUS: &str = concat!(
    "SELECT ",
    row_columns!(),
    " FROM tasks AS t WHERE t.id < ?1 AND (?2 IS NULL OR t.worker = ?2) AND t.status = ?4",
    " ORDER BY t.id DESC LIMIT ?3"
);

const ATTEMPTS: &str = "SELECT attempt, incarnation, worker, epoch, claimed_at, started_at, ended_at, \
     ended_as, reason, verdict, superseded, reported_at, report FROM attempts WHERE task = ?1 \
     ORDER BY attempt, claimed_at IS NULL, claimed_at";

const EVENTS: &str = "SELECT at, epoch, what, status, attempt, worker, detail FROM task_events \
     WHERE task = ?1 ORDER BY id";

const COUNTS: &str = "SELECT status, count(*) FROM tasks GROUP BY status";

const WORKERS: &str = "SELECT name, incarnation, since FROM workers ORDER BY name";

const REPLACED: &str =
    "SELECT name, incarnation, replaced_at FROM replaced_workers ORDER BY name, replaced_at";

impl SqliteStore {
    /// One task.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be read.
    pub async fn task(&self, task: TaskId) -> Result<Option<TaskView>, StoreError> {
        let query = sqlx::query(TASK).bind(code::of_count(task.0));
        let found = query.fetch_optional(&self.pool).await.map_err(|error| self.error(error))?;
        found.map(|found| self.task_view(&found)).transpose().map_err(|error| self.error(error))
    }

    /// Tasks that the filter lets through, newest first.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be read.
    pub async fn list(&self, filter: &ListFilter) -> Result<Vec<TaskView>, StoreError> {
        self.read_list(filter).await.map_err(|error| self.error(error))
    }

    /// Every attempt of a task, oldest first.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be read.
    pub async fn attempts(&self, task: TaskId) -> Result<Vec<AttemptView>, StoreError> {
        let query = sqlx::query(ATTEMPTS).bind(code::of_count(task.0));
        let found = query.fetch_all(&self.pool).await.map_err(|error| self.error(error))?;
        let views: Result<_, _> = found.iter().map(|found| self.attempt_view(found)).collect();
        views.map_err(|error| self.error(error))
    }

    /// The story of a task from its submission on; empty if there is no such task.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be read.
    pub async fn events(&self, task: TaskId) -> Result<Vec<EventView>, StoreError> {
        let Some(view) = self.task(task).await? else {
            return Ok(Vec::new());
        };
        let query = sqlx::query(EVENTS).bind(code::of_count(task.0));
        let found = query.fetch_all(&self.pool).await.map_err(|error| self.error(error))?;
        let told = found.iter().map(|found| self.event_view(found));
        let submitted = std::iter::once(Ok(submitted(view.row.submitted_at)));
        let story: Result<_, _> = submitted.chain(told).collect();
        story.map_err(|error| self.error(error))
    }

    /// How many tasks there are of each status. Counts the index, so its cost grows with the tasks kept.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be read.
    pub async fn counts(&self) -> Result<Counts, StoreError> {
        self.read_counts().await.map_err(|error| self.error(error))
    }

    /// Every worker that ever registered, by name.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be read.
    pub async fn workers(&self) -> Result<Vec<WorkerView>, StoreError> {
        self.read_workers().await.map_err(|error| self.error(error))
    }

    /// What a task runs; none if there is no such task.
    ///
    /// # Errors
    /// [`StoreError`] if the file cannot be read.
    pub async fn payload(&self, task: TaskId) -> Result<Option<Payload>, StoreError> {
        let query =
            sqlx::query("SELECT body FROM payloads WHERE task = ?1").bind(code::of_count(task.0));
        let found = query.fetch_optional(&self.pool).await.map_err(|error| self.error(error))?;
        let body = found.map(|found| found.try_get(0).map(payload)).transpose();
        body.map_err(|error| self.error(error))
    }

    async fn read_list(&self, filter: &ListFilter) -> Result<Vec<TaskView>, sqlx::Error> {
        let before = filter.after.map_or(i64::MAX, |task| code::of_count(task.0));
        let mut found = Vec::new();
        if filter.statuses.is_empty() {
            let query = sqlx::query(LIST).bind(before).bind(&filter.worker).bind(filter.limit);
            found.extend(query.fetch_all(&self.pool).await?);
        }
        for status in &filter.statuses {
            let query = sqlx::query(LIST_OF_STATUS)
                .bind(before)
                .bind(&filter.worker)
                .bind(filter.limit)
                .bind(code::of_status(*status));
            found.extend(query.fetch_all(&self.pool).await?);
        }
        let views: Result<Vec<TaskView>, _> =
            found.iter().map(|found| self.task_view(found)).collect();
        let mut views = views?;
        views.sort_by_key(|view| Reverse(view.row.task));
        // A task may change its status between two of the reads above.
        views.dedup_by_key(|view| view.row.task);
        views.truncate(usize::try_from(filter.limit).unwrap_or(usize::MAX));
        Ok(views)
    }

    async fn read_counts(&self) -> Result<Counts, sqlx::Error> {
        let mut counts = Counts::default();
        for found in sqlx::query(COUNTS).fetch_all(&self.pool).await? {
            let status = code::status(found.try_get(0)?).map_err(undecodable)?;
            let place = match status {
                Status::Pending => &mut counts.pending,
                Status::Running => &mut counts.running,
                Status::Completed => &mut counts.completed,
                Status::Failed => &mut counts.failed,
                Status::Cancelled => &mut counts.cancelled,
            };
            *place = code::count(found.try_get(1)?);
        }
        Ok(counts)
    }

    async fn read_workers(&self) -> Result<Vec<WorkerView>, sqlx::Error> {
        let mut views: Vec<WorkerView> = Vec::new();
        for found in sqlx::query(WORKERS).fetch_all(&self.pool).await? {
            views.push(WorkerView {
                name: Arc::from(found.try_get::<&str, _>(0)?),
                incarnation: Incarnation(code::bits(found.try_get(1)?)),
                since: Time(code::count(found.try_get(2)?)),
                replaced: Vec::new(),
            });
        }
        for found in sqlx::query(REPLACED).fetch_all(&self.pool).await? {
            let name: &str = found.try_get(0)?;
            let replaced = Incarnation(code::bits(found.try_get(1)?));
            let at = Time(code::count(found.try_get(2)?));
            if let Ok(place) = views.binary_search_by(|view| (*view.name).cmp(name)) {
                views[place].replaced.push((replaced, at));
            }
        }
        Ok(views)
    }

    fn task_view(&self, found: &SqliteRow) -> Result<TaskView, sqlx::Error> {
        let (row, changed_at) = decode(found, &self.names)?;
        let worker = row.holder.map(|holder| self.names.worker_name(holder.worker));
        let labels = row.shape.labels.as_slice().iter();
        let labels = labels.map(|label| self.names.label_text(*label)).collect();
        Ok(TaskView { row, worker, labels, changed_at })
    }

    fn attempt_view(&self, found: &SqliteRow) -> Result<AttemptView, sqlx::Error> {
        let end = code::end(found.try_get(7)?).map_err(undecodable)?;
        let reason: Option<&str> = found.try_get(8)?;
        let verdict: Option<&str> = found.try_get(9)?;
        Ok(AttemptView {
            attempt: attempt(found.try_get(0)?)?,
            incarnation: Incarnation(code::bits(found.try_get(1)?)),
            worker: found.try_get::<Option<&str>, _>(2)?.map(Arc::from),
            epoch: found.try_get::<Option<i64>, _>(3)?.map(|epoch| Epoch(code::count(epoch))),
            claimed_at: time(found, 4)?,
            started_at: time(found, 5)?,
            // An attempt that was given up and then kept has not ended.
            ended_at: time(found, 6)?.filter(|_| end.is_some()),
            end,
            reason: reason.map(code::reason).transpose().map_err(undecodable)?,
            verdict: verdict.map(code::verdict).transpose().map_err(undecodable)?,
            superseded: found.try_get::<Option<bool>, _>(10)?.unwrap_or(false),
            reported_at: time(found, 11)?,
            report: payload(found.try_get(12)?),
        })
    }

    fn event_view(&self, found: &SqliteRow) -> Result<EventView, sqlx::Error> {
        Ok(EventView {
            at: Time(code::count(found.try_get(0)?)),
            epoch: Epoch(code::count(found.try_get(1)?)),
            what: found.try_get(2)?,
            status: code::status(found.try_get(3)?).map_err(undecodable)?,
            attempt: found.try_get::<Option<i64>, _>(4)?.map(attempt).transpose()?,
            worker: found.try_get::<Option<&str>, _>(5)?.map(Arc::from),
            detail: found.try_get(6)?,
        })
    }

    fn error(&self, error: sqlx::Error) -> StoreError {
        StoreError::of(&self.path, error)
    }
}

fn submitted(at: Time) -> EventView {
    EventView {
        at,
        epoch: Epoch::default(),
        what: "submitted".to_owned(),
        status: Status::Pending,
        attempt: None,
        worker: None,
        detail: None,
    }
}

fn time(found: &SqliteRow, at: usize) -> Result<Option<Time>, sqlx::Error> {
    Ok(found.try_get::<Option<i64>, _>(at)?.map(|time| Time(code::count(time))))
}
