//! Every setting: its name in `tenure.toml`, its environment variable, default and meaning.

/// One setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    /// Its name in the file, with its table: `worker.slots`.
    pub(crate) name: &'static str,
    /// Its environment variable.
    pub(crate) env: &'static str,
    /// Its default as it would be written; empty: worked out from the machine, or nothing.
    pub(crate) default: &'static str,
    /// What it is, in one line.
    pub(crate) about: &'static str,
}

macro_rules! keys {
    ($($const:ident = $name:literal, $env:literal, $default:literal, $about:literal;)*) => {
        $(
            #[doc = $about]
            pub(crate) const $const: Key =
                Key { name: $name, env: $env, default: $default, about: $about };
        )*
        /// All of them but the timings.
        pub(crate) const ALL: &[Key] = &[$($const),*];
    };
}

keys! {
    SERVER = "server", "TENURE_SERVER", "http://127.0.0.1:9080", "URL of the master to talk to";
    RETRY_FOR = "retry_for", "TENURE_RETRY_FOR", "5s", "how long a command tries again while no master answers";
    DATA_DIR = "data_dir", "TENURE_DATA_DIR", "", "where everything is kept";
    INSECURE = "insecure_no_auth", "TENURE_INSECURE_NO_AUTH", "false", "allow listening on other addresses than 127.0.0.1 although nobody is asked who they are";
    HTTP = "master.http", "TENURE_HTTP", "127.0.0.1:9080", "address of the HTTP API";
    LISTEN = "master.listen", "TENURE_LISTEN", "127.0.0.1:9000", "address that workers connect to";
    FRAME_LIMIT = "master.frame_limit", "TENURE_FRAME_LIMIT", "16777216", "largest message, in bytes";
    NAME = "worker.name", "TENURE_WORKER_NAME", "", "name of this worker; one live process per name";
    MASTERS = "worker.masters", "TENURE_MASTERS", "127.0.0.1:9000", "masters to try, host:port, with commas between";
    SLOTS = "worker.slots", "TENURE_SLOTS", "", "tasks that it runs at a time; default: one per CPU";
    GPUS = "worker.gpus", "TENURE_GPUS", "0", "GPUs that it hands out";
    LABELS = "worker.labels", "TENURE_LABELS", "", "what it can do, with commas between";
    LINE_CAP = "worker.line_cap", "TENURE_LINE_CAP", "65536", "longest log line, in bytes; longer ones are split";
    CHECKPOINTS = "worker.checkpoint_dir", "TENURE_WORKER_CHECKPOINT_DIR", "", "where resumable tasks keep checkpoints; the same for all workers that may take over from each other";
    PRESET = "timings.preset", "TENURE_TIMINGS", "default", "default, or documented (the values of the source systems)";
}

/// Variables that tasks find in their environment, or that are read before any setting.
pub(super) const OTHER_VARIABLES: &[&str] = &[
    "TENURE_TASK_ID",
    "TENURE_ATTEMPT",
    "TENURE_EPOCH",
    "TENURE_TRACE_ID",
    "TENURE_RESULT",
    "TENURE_PROGRESS",
    "TENURE_CHECKPOINT_DIR",
    "TENURE_RESUMES",
    "TENURE_CONFIG",
    "TENURE_LOG",
    "TENURE_WORKER",
    "TENURE_WORKER_DIR",
    "TENURE_TEST_FAULT",
];
