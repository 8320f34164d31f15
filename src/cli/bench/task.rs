//! What `bench` runs as its tasks: says when it started, prints numbered lines, waits to be let go.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use clap::Args;
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::exit::{Exit, Failure};

/// Options of a bench task.
#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    /// File that all tasks append their starts to
    #[arg(long)]
    starts: PathBuf,
    /// Socket to say the start to, and to be let go by
    #[arg(long)]
    meet: Option<PathBuf>,
    /// Numbered lines to print
    #[arg(long, default_value_t = 0)]
    lines: u32,
    /// Milliseconds between them
    #[arg(long, default_value_t = 0)]
    pace_ms: u64,
}

/// A start, as a line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Start {
    /// Which task.
    pub(crate) task: String,
    /// Which attempt.
    pub(crate) attempt: u32,
    /// When, by the machine's monotonic clock, in nanoseconds.
    pub(crate) at_ns: u64,
}

/// The machine's monotonic clock: the same for all its processes.
pub(crate) fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    part(time.tv_sec()) * 1_000_000_000 + part(time.tv_nsec())
}

/// Does what a bench task does.
pub(crate) fn run(args: &TaskArgs) -> Result<Exit, Failure> {
    let at_ns = monotonic_ns();
    let variable = |name| std::env::var(name).unwrap_or_default();
    let attempt = variable("TENURE_ATTEMPT").parse().unwrap_or(0);
    let start = Start { task: variable("TENURE_TASK_ID"), attempt, at_ns };
    let mut line = serde_json::to_string(&start).expect("a text and numbers are JSON");
    line.push('\n');
    append(&args.starts, &line).map_err(|error| trouble(&args.starts, &error))?;
    let met = match &args.meet {
        Some(path) => Some(meet(path, &line).map_err(|error| trouble(path, &error))?),
        None => None,
    };
    let mut out = io::stdout().lock();
    for number in 1..=args.lines {
        let printed = writeln!(out, "{number}").and_then(|()| out.flush());
        printed.map_err(|error| trouble(Path::new("stdout"), &error))?;
        thread::sleep(Duration::from_millis(args.pace_ms));
    }
    if let Some(mut stream) = met {
        // Let go by a byte, or by the end of the bench.
        let _ = stream.read(&mut [0]);
    }
    Ok(Exit::Done)
}

/// One write, so that lines of several tasks never mix.
fn append(path: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(path)?.write_all(line.as_bytes())
}

fn meet(path: &Path, line: &str) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect(path)?;
    stream.write_all(line.as_bytes())?;
    Ok(stream)
}

fn trouble(path: &Path, error: &io::Error) -> Failure {
    Failure::unavailable(format!("{}: {error}", path.display()))
}
