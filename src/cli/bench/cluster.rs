//! Masters and workers as real processes on free ports, in a directory that goes with them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use tenure_adapters::http::submission::random_text;

use super::super::Context;
use crate::client::Client;
use crate::exit::Failure;

/// A process of ours that takes longer to get ready is broken.
const READY_LIMIT: Duration = Duration::from_secs(30);
/// How often the state of a cluster is looked at where nothing tells of it.
const LOOK: Duration = Duration::from_millis(2);

/// A master and workers.
pub(super) struct Cluster {
    dir: PathBuf,
    timings: Vec<String>,
    slots: u32,
    master: Process,
    server: String,
    worker_address: String,
    workers: Vec<(String, Process)>,
}

#[derive(Debug, Deserialize)]
struct Ready {
    server: Option<String>,
    worker_address: Option<String>,
}

/// A process that ends with the value that holds it; by its stdin even if this process is killed.
struct Process(Child);

impl Process {
    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).expect("process ids are small");
        // It may be gone already.
        let _ = kill(Pid::from_raw(pid), signal);
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Workers first: a guardian clears away what its worker ran.
        for (_, process) in &mut self.workers {
            process.kill();
        }
        self.master.kill();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

impl Cluster {
    /// Starts a master and workers of these names.
    pub(super) fn start(context: &Context, names: &[&str], slots: u32) -> Result<Cluster, Failure> {
        let dir = std::env::temp_dir().join(format!("tenure-bench-{}", random_text()));
        std::fs::create_dir_all(&dir)
            .map_err(|error| Failure::unavailable(format!("{}: {error}", dir.display())))?;
        let timings = timings(context)?;
        let any = "127.0.0.1:0";
        let (master, ready) = start_master(&dir, &timings, any, any)?;
        let missing = || Failure::unavailable("the master did not say where it listens");
        let mut cluster = Cluster {
            server: ready.server.ok_or_else(missing)?,
            worker_address: ready.worker_address.ok_or_else(missing)?,
            dir,
            timings,
            slots,
            master,
            workers: Vec::new(),
        };
        for name in names {
            let process = cluster.start_worker(name)?;
            cluster.workers.push(((*name).to_owned(), process));
        }
        cluster.wait_until_ready()?;
        Ok(cluster)
    }

    /// Its own directory.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A client that holds out while the master is away.
    pub(super) fn client(&self) -> Result<Client, Failure> {
        Client::new(&self.server, READY_LIMIT)
    }

    /// Sends a signal to the worker of this name.
    pub(super) fn signal_worker(&self, name: &str, signal: Signal) -> Result<(), Failure> {
        let found = self.workers.iter().find(|(own, _)| own == name);
        let (_, process) = found.ok_or_else(|| {
            Failure::unavailable(format!("a task runs on `{name}`, which is none of ours"))
        })?;
        process.signal(signal);
        Ok(())
    }

    /// Starts every worker again that has ended.
    pub(super) fn revive_workers(&mut self) -> Result<(), Failure> {
        for at in 0..self.workers.len() {
            let (name, process) = &mut self.workers[at];
            if process.0.try_wait().is_ok_and(|ended| ended.is_none()) {
                continue;
            }
            let name = name.clone();
            let process = self.start_worker(&name)?;
            self.workers[at] = (name, process);
        }
        Ok(())
    }

    /// Kills the master with -9.
    pub(super) fn kill_master(&mut self) {
        self.master.kill();
    }

    /// Starts the master again, at the same addresses; returns when it leads.
    pub(super) fn start_master(&mut self) -> Result<(), Failure> {
        let http = self.server.trim_start_matches("http://").to_owned();
        let listen = self.worker_address.clone();
        (self.master, _) = start_master(&self.dir, &self.timings, &http, &listen)?;
        Ok(())
    }

    /// Starts the master again without waiting for it.
    pub(super) fn launch_master(&mut self) -> Result<(), Failure> {
        let http = self.server.trim_start_matches("http://").to_owned();
        let listen = self.worker_address.clone();
        self.master = launch_master(&self.dir, &self.timings, &http, &listen)?;
        Ok(())
    }

    /// Returns when every worker is connected and takes tasks.
    pub(super) fn wait_until_ready(&self) -> Result<(), Failure> {
        let client = self.client()?;
        let end = Instant::now() + READY_LIMIT;
        loop {
            let list = client.workers()?.workers;
            let is_ready = |name: &String| {
                list.iter().any(|worker| worker.name == *name && worker.state == "ready")
            };
            if self.workers.iter().all(|(name, _)| is_ready(name)) {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(Failure::unavailable(format!(
                    "the workers are not back within {READY_LIMIT:?}: {list:?}"
                )));
            }
            thread::sleep(LOOK);
        }
    }

    fn start_worker(&self, name: &str) -> Result<Process, Failure> {
        let mut command = tenure(&self.dir, &self.timings)?;
        command.args(["worker", "--end-with-stdin", "--name", name]);
        command.args(["--masters", &self.worker_address, "--slots", &self.slots.to_string()]);
        Ok(start(command)?.0)
    }
}

fn start_master(
    dir: &Path,
    timings: &[String],
    http: &str,
    listen: &str,
) -> Result<(Process, Ready), Failure> {
    start(master(dir, timings, http, listen)?)
}

fn launch_master(
    dir: &Path,
    timings: &[String],
    http: &str,
    listen: &str,
) -> Result<Process, Failure> {
    let mut command = master(dir, timings, http, listen)?;
    spawn(command.stdout(Stdio::null()))
}

fn master(dir: &Path, timings: &[String], http: &str, listen: &str) -> Result<Command, Failure> {
    let mut command = tenure(dir, timings)?;
    command.args(["master", "--end-with-stdin", "--http", http, "--listen", listen]);
    Ok(command)
}

/// This very program, untouched by the settings of whoever measures.
fn tenure(dir: &Path, timings: &[String]) -> Result<Command, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::unavailable(format!("this program cannot be found: {error}")))?;
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let ours = name.to_string_lossy().starts_with("TENURE_");
        if ours && name != "TENURE_LOG" {
            command.env_remove(name);
        }
    }
    let log = std::env::var("TENURE_LOG").unwrap_or_else(|_| "error".to_owned());
    command.env("XDG_CONFIG_HOME", dir).env("TENURE_LOG", log).current_dir(dir);
    command.args(["-o", "json", "--data-dir"]).arg(dir).args(timings);
    Ok(command)
}

fn spawn(command: &mut Command) -> Result<Process, Failure> {
    let child = command.stdin(Stdio::piped()).spawn();
    child.map(Process).map_err(|error| Failure::unavailable(format!("cannot start: {error}")))
}

/// Starts a process and waits for the line that says that it is ready.
fn start(mut command: Command) -> Result<(Process, Ready), Failure> {
    let mut process = spawn(command.stdout(Stdio::piped()))?;
    let stdout = process.0.stdout.take().expect("it was just piped");
    let mut line = String::new();
    let read = BufReader::new(stdout).read_line(&mut line);
    match (read, serde_json::from_str(&line)) {
        (Ok(_), Ok(ready)) => Ok((process, ready)),
        _ => {
            Err(Failure::unavailable("a process of the bench did not start; its message is above"))
        }
    }
}

/// The timings in force, as flags for other processes.
fn timings(context: &Context) -> Result<Vec<String>, Failure> {
    let all = context.settings.all()?.into_iter();
    let single = all.filter_map(|(name, value)| {
        let name = name.strip_prefix("timings.").filter(|name| *name != "preset")?;
        Some(format!("{name}={}", value.text))
    });
    Ok(single.flat_map(|pair| ["--timing".to_owned(), pair]).collect())
}
