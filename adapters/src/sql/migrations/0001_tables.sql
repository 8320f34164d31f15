-- Times are milliseconds since 1970 UTC. Incarnations and fingerprints are unsigned 64-bit numbers kept
-- as the signed number of the same bits. Codes of statuses and ends are in sql/code.rs.

-- AUTOINCREMENT: an id is never given twice, not even after the newest row was deleted.
CREATE TABLE tasks (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    status           INTEGER NOT NULL,
    attempt          INTEGER,
    worker           TEXT,
    incarnation      INTEGER,
    epoch            INTEGER NOT NULL,
    ended_as         INTEGER,
    started          INTEGER NOT NULL,
    cancel_requested INTEGER NOT NULL,
    failures         INTEGER NOT NULL,
    lost             INTEGER NOT NULL,
    not_before       INTEGER NOT NULL,
    slots            INTEGER NOT NULL,
    gpus             INTEGER NOT NULL,
    labels           TEXT,
    priority         INTEGER NOT NULL,
    max_attempts     INTEGER NOT NULL,
    max_lost         INTEGER NOT NULL,
    patience         INTEGER,
    timeout          INTEGER,
    submitted_at     INTEGER NOT NULL,
    changed_at       INTEGER NOT NULL
);
CREATE INDEX tasks_by_status ON tasks (status);

-- A table of its own, so that a change of a task does not copy what it runs.
CREATE TABLE payloads (
    task INTEGER PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    body BLOB
);

-- Outlives the task's row, so no foreign key.
CREATE TABLE keys (
    key         TEXT PRIMARY KEY,
    task        INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL
) WITHOUT ROWID;

-- Every attempt, and every outcome that came for one, superseded ones included.
CREATE TABLE attempts (
    task        INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    attempt     INTEGER NOT NULL,
    incarnation INTEGER NOT NULL,
    worker      TEXT,
    epoch       INTEGER,
    claimed_at  INTEGER,
    started_at  INTEGER,
    ended_at    INTEGER,
    ended_as    INTEGER,
    reason      TEXT,
    verdict     TEXT,
    superseded  INTEGER,
    reported_at INTEGER,
    report      BLOB,
    PRIMARY KEY (task, attempt, incarnation)
) WITHOUT ROWID;

-- The story of each task. Its submission is in tasks.
CREATE TABLE task_events (
    id      INTEGER PRIMARY KEY,
    task    INTEGER NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    at      INTEGER NOT NULL,
    epoch   INTEGER NOT NULL,
    what    TEXT NOT NULL,
    status  INTEGER NOT NULL,
    attempt INTEGER,
    worker  TEXT,
    detail  TEXT
);
CREATE INDEX task_events_by_task ON task_events (task);

CREATE TABLE workers (
    name        TEXT PRIMARY KEY,
    incarnation INTEGER NOT NULL,
    since       INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE replaced_workers (
    name        TEXT NOT NULL,
    incarnation INTEGER NOT NULL,
    replaced_at INTEGER NOT NULL,
    PRIMARY KEY (name, incarnation)
) WITHOUT ROWID;

-- One row: who leads, and until when by this database's clock.
CREATE TABLE term (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    epoch    INTEGER NOT NULL,
    leader   INTEGER NOT NULL,
    until    INTEGER NOT NULL
);
INSERT INTO term (only_row, epoch, leader, until) VALUES (1, 0, 0, 0);

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
