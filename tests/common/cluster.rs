//! A master and workers as processes.

use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::events::Lines;
use super::{LIMIT, Process, code, json, output, stderr, tenure};

/// A master and its workers. Dropping it ends them, and removes their directory.
pub(crate) struct Cluster {
    pub(crate) workers: Vec<(String, Process)>,
    master: Process,
    pub(crate) server: String,
    worker_address: String,
    timings: Vec<String>,
    // Last: removed when all processes are gone.
    pub(crate) dir: TempDir,
}

impl Cluster {
    /// A master with these timings (`name=value`).
    pub(crate) fn start(timings: &[&str]) -> Cluster {
        let dir = tempfile::tempdir().expect("a directory");
        let timings: Vec<String> =
            timings.iter().flat_map(|pair| ["--timing".to_owned(), (*pair).to_owned()]).collect();
        let (master, ready) = start_master(dir.path(), &timings, "127.0.0.1:0", "127.0.0.1:0");
        let text = |name: &str| ready[name].as_str().expect("an address").to_owned();
        let (server, worker_address) = (text("server"), text("worker_address"));
        Cluster { workers: Vec::new(), master, server, worker_address, timings, dir }
    }

    /// A master with one worker.
    pub(crate) fn with_worker(timings: &[&str]) -> Cluster {
        let mut cluster = Cluster::start(timings);
        cluster.add_worker("one", &[]);
        cluster
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A file in its directory, for a script.
    pub(crate) fn file(&self, name: &str) -> String {
        self.path().join(name).display().to_string()
    }

    /// Starts a worker with one slot, with these variables, and waits until it is connected.
    pub(crate) fn add_worker(&mut self, name: &str, env: &[(&str, &str)]) {
        let mut command = tenure(self.path());
        command.args(["-o", "json", "worker", "--end-with-stdin", "--name", name, "--slots", "1"]);
        command.args(["--masters", &self.worker_address]).args(&self.timings);
        command.envs(env.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process::start(&mut command);
        Lines::of_child(&mut process.0).next();
        self.workers.retain(|(own, _)| own != name);
        self.workers.push((name.to_owned(), process));
        self.until_connected(name);
    }

    fn until_connected(&self, name: &str) {
        let end = std::time::Instant::now() + LIMIT;
        while std::time::Instant::now() < end {
            let list = self.json(&["workers"]);
            let list = list["workers"].as_array().expect("a list");
            if list.iter().any(|worker| worker["name"] == name && worker["state"] == "ready") {
                return;
            }
            // The API has no event for this.
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        panic!("{name} does not connect");
    }

    pub(crate) fn worker(&mut self, name: &str) -> &mut Process {
        let found = self.workers.iter_mut().find(|(own, _)| own == name);
        &mut found.expect("one of ours").1
    }

    /// What the worker says.
    pub(crate) fn stderr_of(&mut self, name: &str) -> Lines {
        Lines::of(self.worker(name).0.stderr.take().expect("its stderr is piped, and taken once"))
    }

    pub(crate) fn signal_worker(&mut self, name: &str, signal: Signal) {
        self.worker(name).signal(signal);
    }

    pub(crate) fn kill_master(&mut self) {
        self.master.kill();
    }

    /// Starts the master again, at its old addresses.
    pub(crate) fn restart_master(&mut self) {
        let http = self.server.trim_start_matches("http://").to_owned();
        let (master, _) = start_master(self.dir.path(), &self.timings, &http, &self.worker_address);
        self.master = master;
    }

    /// A client command for this master.
    pub(crate) fn tenure(&self, args: &[&str]) -> Command {
        let mut command = tenure(self.path());
        command.env("TENURE_SERVER", &self.server).args(args);
        command
    }

    /// Runs a client command that must succeed, and gives its document.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let done = output(self.tenure(&["-o", "json"]).args(args));
        assert_eq!(code(&done), 0, "{args:?}: {}", stderr(&done));
        json(&done)
    }

    /// Submits a shell script and gives the task's id.
    pub(crate) fn submit(&self, options: &[&str], script: &str) -> String {
        let done = output(self.tenure(&["submit"]).args(options).args(["--", "sh", "-c", script]));
        assert_eq!(code(&done), 0, "{}", stderr(&done));
        String::from_utf8(done.stdout).expect("text").trim().to_owned()
    }

    /// Waits for the task's end, and gives it with its story.
    pub(crate) fn end_of(&self, id: &str) -> Value {
        let done = output(&mut self.tenure(&["wait", id, "--timeout", "60s"]));
        assert_ne!(code(&done), 124, "task {id} does not end: {:#}", self.json(&["show", id]));
        self.json(&["show", id])
    }

    /// The task's log, followed to its end.
    pub(crate) fn log(&self, id: &str) -> Vec<String> {
        let done = output(&mut self.tenure(&["logs", "-f", id]));
        assert_eq!(code(&done), 0, "{}", stderr(&done));
        String::from_utf8(done.stdout).expect("text").lines().map(str::to_owned).collect()
    }

    /// Follows a task's log in a process of its own.
    pub(crate) fn follow(&self, id: &str) -> (Process, Lines) {
        let mut command = self.tenure(&["logs", "-f", id]);
        let mut process = Process::start(command.stdout(Stdio::piped()));
        let lines = Lines::of_child(&mut process.0);
        (process, lines)
    }
}

fn start_master(dir: &Path, timings: &[String], http: &str, listen: &str) -> (Process, Value) {
    let mut command = tenure(dir);
    command.args(["-o", "json", "master", "--end-with-stdin", "--http", http, "--listen", listen]);
    let mut process = Process::start(command.args(timings).stdout(Stdio::piped()));
    let ready = Lines::of_child(&mut process.0).next();
    (process, serde_json::from_str(&ready).expect("a document"))
}
