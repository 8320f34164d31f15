//! Every statement of the writer, each for a whole batch: its rows come as one JSON array (`?1`), byte strings
//! as one blob (`?2`) out of which each row names its piece by place and length.
//!
//! Rows of several columns go through `jsonb_each` (SQLite 3.51): `json_each` would make text of each row
//! again, only for it to be parsed for each column.

/// The columns that make a `Row` of core, in the order in which `row::decode` takes them.
macro_rules! row_columns {
    () => {
        "t.id, t.status, t.attempt, t.worker, t.incarnation, t.epoch, t.ended_as, t.started, \
         t.cancel_requested, t.failures, t.lost, t.not_before, t.slots, t.gpus, t.labels, t.priority, \
         t.max_attempts, t.max_lost, t.patience, t.timeout, t.submitted_at, t.changed_at"
    };
}
pub(super) use row_columns;

pub(super) const BEGIN: &str = "BEGIN IMMEDIATE";
pub(super) const COMMIT: &str = "COMMIT";
pub(super) const ROLLBACK: &str = "ROLLBACK";

/// The term, and the highest task id ever given.
pub(super) const LOAD_TERM: &str = "SELECT epoch, leader, until, \
     COALESCE((SELECT seq FROM sqlite_sequence WHERE name = 'tasks'), 0) FROM term";

pub(super) const LOAD_KEYS: &str = "SELECT k.key, k.task, k.fingerprint \
     FROM json_each(?1) AS j JOIN keys AS k ON k.key = j.value";

pub(super) const LOAD_ROWS: &str = concat!(
    "SELECT ",
    row_columns!(),
    " FROM json_each(?1) AS j JOIN tasks AS t ON t.id = j.value"
);

pub(super) const LOAD_OPEN_ROWS: &str =
    concat!("SELECT ", row_columns!(), " FROM tasks AS t WHERE t.status IN (0, 1)");

pub(super) const LOAD_STRETCH: &str = concat!(
    "SELECT ",
    row_columns!(),
    " FROM tasks AS t WHERE t.status IN (0, 1) AND t.id > ?1 ORDER BY t.id LIMIT ?2"
);

pub(super) const LOAD_PAYLOADS: &str = "SELECT p.task, p.body \
     FROM json_each(?1) AS j JOIN payloads AS p ON p.task = j.value";

pub(super) const LOAD_WORKERS: &str = "SELECT w.name, w.incarnation \
     FROM json_each(?1) AS j JOIN workers AS w ON w.name = j.value";

pub(super) const LOAD_ALL_WORKERS: &str = "SELECT name, incarnation FROM workers";

pub(super) const LOAD_REPLACED: &str = "SELECT r.name, r.incarnation \
     FROM json_each(?1) AS j JOIN replaced_workers AS r ON r.name = j.value";

pub(super) const INSERT_TASKS: &str = "INSERT INTO tasks (id, status, attempt, worker, incarnation, epoch, \
         ended_as, started, cancel_requested, failures, lost, not_before, slots, gpus, labels, priority, \
         max_attempts, max_lost, patience, timeout, submitted_at, changed_at) \
     SELECT j.value ->> 'id', j.value ->> 'status', j.value ->> 'attempt', j.value ->> 'worker', \
         j.value ->> 'incarnation', j.value ->> 'epoch', j.value ->> 'ended_as', j.value ->> 'started', \
         j.value ->> 'cancel_requested', j.value ->> 'failures', j.value ->> 'lost', \
         j.value ->> 'not_before', j.value ->> 'slots', j.value ->> 'gpus', j.value ->> 'labels', \
         j.value ->> 'priority', j.value ->> 'max_attempts', j.value ->> 'max_lost', \
         j.value ->> 'patience', j.value ->> 'timeout', j.value ->> 'submitted_at', \
         j.value ->> 'changed_at' \
     FROM jsonb_each(?1) AS j";

/// Shape, limits and submission never change.
pub(super) const UPDATE_TASKS: &str = "UPDATE tasks SET \
         status = j.value ->> 'status', attempt = j.value ->> 'attempt', worker = j.value ->> 'worker', \
         incarnation = j.value ->> 'incarnation', epoch = j.value ->> 'epoch', \
         ended_as = j.value ->> 'ended_as', started = j.value ->> 'started', \
         cancel_requested = j.value ->> 'cancel_requested', failures = j.value ->> 'failures', \
         lost = j.value ->> 'lost', not_before = j.value ->> 'not_before', \
         changed_at = j.value ->> 'changed_at' \
     FROM jsonb_each(?1) AS j WHERE tasks.id = j.value ->> 'id'";

pub(super) const INSERT_PAYLOADS: &str = "INSERT INTO payloads (task, body) \
     SELECT j.value ->> 'task', substr(?2, (j.value ->> 'start') + 1, j.value ->> 'length') \
     FROM jsonb_each(?1) AS j";

pub(super) const INSERT_KEYS: &str = "INSERT INTO keys (key, task, fingerprint) \
     SELECT j.value ->> 'key', j.value ->> 'task', j.value ->> 'fingerprint' FROM jsonb_each(?1) AS j";

/// NULL leaves a column as it is. The first outcome that came for an attempt stays.
pub(super) const UPSERT_ATTEMPTS: &str = "INSERT INTO attempts AS a (task, attempt, incarnation, worker, epoch, \
         claimed_at, started_at, ended_at, ended_as, reason, verdict, superseded, reported_at, report) \
     SELECT j.value ->> 'task', j.value ->> 'attempt', j.value ->> 'incarnation', j.value ->> 'worker', \
         j.value ->> 'epoch', j.value ->> 'claimed_at', j.value ->> 'started_at', \
         j.value ->> 'ended_at', j.value ->> 'ended_as', j.value ->> 'reason', j.value ->> 'verdict', \
         j.value ->> 'superseded', j.value ->> 'reported_at', \
         substr(?2, (j.value ->> 'start') + 1, j.value ->> 'length') \
     FROM jsonb_each(?1) AS j WHERE true \
     ON CONFLICT (task, attempt, incarnation) DO UPDATE SET \
         worker = COALESCE(a.worker, excluded.worker), epoch = COALESCE(a.epoch, excluded.epoch), \
         claimed_at = COALESCE(a.claimed_at, excluded.claimed_at), \
         started_at = COALESCE(a.started_at, excluded.started_at), \
         ended_at = COALESCE(excluded.ended_at, a.ended_at), \
         ended_as = COALESCE(excluded.ended_as, a.ended_as), \
         reason = COALESCE(excluded.reason, a.reason), \
         superseded = CASE WHEN a.verdict IS NULL THEN excluded.superseded ELSE a.superseded END, \
         reported_at = CASE WHEN a.verdict IS NULL THEN excluded.reported_at ELSE a.reported_at END, \
         report = CASE WHEN a.verdict IS NULL THEN excluded.report ELSE a.report END, \
         verdict = COALESCE(a.verdict, excluded.verdict)";

pub(super) const INSERT_EVENTS: &str = "INSERT INTO task_events (task, at, epoch, what, status, attempt, worker, detail) \
     SELECT j.value ->> 'task', j.value ->> 'at', j.value ->> 'epoch', j.value ->> 'what', \
         j.value ->> 'status', j.value ->> 'attempt', j.value ->> 'worker', j.value ->> 'detail' \
     FROM jsonb_each(?1) AS j";

pub(super) const UPSERT_WORKERS: &str = "INSERT INTO workers (name, incarnation, since) \
     SELECT j.value ->> 'name', j.value ->> 'incarnation', j.value ->> 'at' FROM jsonb_each(?1) AS j WHERE true \
     ON CONFLICT (name) DO UPDATE SET incarnation = excluded.incarnation, since = excluded.since";

pub(super) const INSERT_REPLACED: &str = "INSERT INTO replaced_workers (name, incarnation, replaced_at) \
     SELECT j.value ->> 'name', j.value ->> 'incarnation', j.value ->> 'at' FROM jsonb_each(?1) AS j WHERE true \
     ON CONFLICT (name, incarnation) DO NOTHING";

pub(super) const UPDATE_TERM: &str = "UPDATE term SET epoch = ?1, leader = ?2, until = ?3";
