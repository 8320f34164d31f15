//! The options that describe a task, for `run` and `submit`.

use std::collections::BTreeMap;

use clap::Args;
use tenure_adapters::http::shapes::NewTask;
use tenure_adapters::http::submission::random_text;
use tenure_core::time::Millis;

use crate::duration;
use crate::exit::Failure;

/// Options that describe a task.
#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    /// A name for people
    #[arg(long)]
    name: Option<String>,
    /// Environment variable for the command: NAME=VALUE, or NAME to pass this shell's value on
    #[arg(short, long, value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Working directory on the worker [default: this one, if the server is on this machine]
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,
    /// End an attempt that runs longer: 30s, 10m, 24h
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Millis>,
    /// Try again so many times after a failure (max-attempts less one)
    #[arg(long, value_name = "N", conflicts_with = "max_attempts")]
    retries: Option<u16>,
    /// Tries in all, when they fail
    #[arg(long, value_name = "N")]
    max_attempts: Option<u16>,
    /// How many workers may be lost while they run it
    #[arg(long, value_name = "N")]
    max_lost: Option<u16>,
    /// Higher goes first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i16>,
    /// Slots that it takes of its worker
    #[arg(long, value_name = "N")]
    slots: Option<u16>,
    /// GPUs that it takes of its worker
    #[arg(long, value_name = "N")]
    gpus: Option<u16>,
    /// Label that its worker must have; may be repeated
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// How long its worker may be unreachable before the task moves, or none
    #[arg(long, value_name = "TIME|none", value_parser = patience)]
    patience: Option<Millis>,
    /// Keep a checkpoint directory from attempt to attempt ($TENURE_CHECKPOINT_DIR)
    #[arg(long)]
    resumable: bool,
    /// Time between TERM and KILL when it is stopped [default: the worker's, 5s]
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    stop_grace: Option<Millis>,
    /// The same key gives the same task [default: a fresh one]
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

fn patience(text: &str) -> Result<Millis, String> {
    if text == "none" { Ok(Millis::ZERO) } else { duration::parse(text) }
}

/// What is not said, depends on who submits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Defaults {
    /// Tries in all.
    pub(crate) max_attempts: Option<u16>,
    /// Whether the command is meant to run in this directory.
    pub(crate) here: bool,
    /// Whether attempts share a checkpoint directory.
    pub(crate) resumable: bool,
}

impl TaskArgs {
    /// The submission, with a key of its own, which all tries of this invocation share.
    ///
    /// # Errors
    /// A variable to be passed on is not set, or this directory has no name.
    pub(crate) fn new_task(
        &self,
        command: &[String],
        defaults: Defaults,
    ) -> Result<NewTask, Failure> {
        let tries = self.retries.map(|retries| retries.saturating_add(1)).or(self.max_attempts);
        let key = self.idempotency_key.clone().unwrap_or_else(random_text);
        Ok(NewTask {
            name: self.name.clone().unwrap_or_default(),
            command: command.to_vec(),
            env: self
                .env
                .iter()
                .map(|pair| variable(pair))
                .collect::<Result<BTreeMap<_, _>, _>>()?,
            cwd: self.cwd(defaults)?,
            timeout_ms: self.timeout.map(|time| time.0),
            max_attempts: tries.or(defaults.max_attempts),
            max_lost: self.max_lost,
            priority: self.priority,
            slots: self.slots,
            gpus: self.gpus,
            labels: self.labels.clone(),
            patience_ms: self.patience.map(|time| time.0),
            resumable: self.resumable || defaults.resumable,
            stop_grace_ms: self.stop_grace.map(|time| time.0),
            idempotency_key: Some(key),
        })
    }

    /// GPUs that it asks for.
    pub(crate) fn gpus(&self) -> u16 {
        self.gpus.unwrap_or(0)
    }

    /// Slots that it asks for.
    pub(crate) fn slots(&self) -> u16 {
        self.slots.unwrap_or(1)
    }

    /// Labels that it asks for.
    pub(crate) fn labels(&self) -> &[String] {
        &self.labels
    }

    fn cwd(&self, defaults: Defaults) -> Result<Option<String>, Failure> {
        if self.cwd.is_none() && !defaults.here {
            return Ok(None);
        }
        let here = std::env::current_dir().map_err(|error| {
            Failure::usage(format!("this directory cannot be used: {error}; use --cwd"))
        })?;
        let path = match &self.cwd {
            Some(path) if defaults.here => here.join(path),
            Some(path) => path.into(),
            None => here,
        };
        path.into_os_string().into_string().map(Some).map_err(|path| {
            Failure::usage(format!("directory {}: its name is no text; use --cwd", path.display()))
        })
    }
}

fn variable(pair: &str) -> Result<(String, String), Failure> {
    if let Some((name, value)) = pair.split_once('=') {
        return Ok((name.to_owned(), value.to_owned()));
    }
    match std::env::var(pair) {
        Ok(value) => Ok((pair.to_owned(), value)),
        Err(_) => Err(Failure::usage(format!(
            "--env {pair}: this variable is not set here; write --env {pair}=VALUE"
        ))),
    }
}
