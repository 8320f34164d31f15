//! Starts the real program on free ports in a directory of its own, waits for events, and ends
//! everything that it started, even when a test panics.

#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod cluster;
pub(crate) mod events;

use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Longer than anything takes on a busy machine; only a failure waits for it.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// The program, without the settings of whoever runs the tests.
pub(crate) fn tenure(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TENURE_") && name != "TENURE_LOG" {
            command.env_remove(name);
        }
    }
    if std::env::var_os("TENURE_LOG").is_none() {
        command.env("TENURE_LOG", "error");
    }
    command.env("XDG_CONFIG_HOME", dir).env("TENURE_DATA_DIR", dir).current_dir(dir);
    command.stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) fn output(command: &mut Command) -> Output {
    command.output().expect("the program starts")
}

/// What a command printed.
pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// What a command said.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The exit code; a failure shows what was said.
pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("ended by a signal: {}", stderr(output)))
}

/// The document that a command printed.
pub(crate) fn json(output: &Output) -> Value {
    let text = stdout(output);
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: stdout {text:?}, stderr {:?}", stderr(output)))
}

/// A process that ends with the value that holds it: by signal, and by its stdin if the test is killed.
pub(crate) struct Process(pub(crate) Child, Option<ChildStdin>);

impl Process {
    /// Starts it.
    pub(crate) fn start(command: &mut Command) -> Process {
        let mut child = command.stdin(Stdio::piped()).spawn().expect("the program starts");
        // Held here, since waiting for a child closes what it holds.
        let stdin = child.stdin.take();
        Process(child, stdin)
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id()).expect("process ids are small");
        kill(Pid::from_raw(pid), signal).expect("it is there");
    }

    /// `kill -9`, and waits for the end.
    pub(crate) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
