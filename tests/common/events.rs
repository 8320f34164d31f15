//! Events that tests wait for instead of sleeping.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::LIMIT;

/// Lines of something, as they come.
pub(crate) struct Lines(Receiver<String>);

impl Lines {
    /// Of a reader that ends.
    pub(crate) fn of(reader: impl Read + Send + 'static) -> Lines {
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Lines(lines)
    }

    /// Of a child's piped stdout.
    pub(crate) fn of_child(child: &mut Child) -> Lines {
        let stdout: ChildStdout = child.stdout.take().expect("its stdout is piped");
        Lines::of(stdout)
    }

    /// The next line.
    pub(crate) fn next(&self) -> String {
        self.0.recv_timeout(LIMIT).expect("a line comes")
    }

    /// The next line that holds this.
    pub(crate) fn wait_for(&self, part: &str) -> String {
        loop {
            let line = self.next();
            if line.contains(part) {
                return line;
            }
        }
    }

    /// Whether the end comes within the limit; other lines do not matter.
    pub(crate) fn ends_within(&self, limit: Duration) -> bool {
        let end = std::time::Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(std::time::Instant::now());
            match self.0.recv_timeout(left) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }
}

/// A named pipe. Tasks write to it; it ends when the last process that holds it is gone.
pub(crate) struct Pipe {
    path: PathBuf,
}

impl Pipe {
    /// A new one.
    pub(crate) fn new(dir: &Path, name: &str) -> Pipe {
        let path = dir.join(name);
        mkfifo(&path, Mode::S_IRWXU).expect("a named pipe");
        Pipe { path }
    }

    /// Its path, for a script.
    pub(crate) fn path(&self) -> String {
        self.path.display().to_string()
    }

    /// What is written to it from the first writer to the last.
    pub(crate) fn lines(&self) -> Lines {
        let path = self.path.clone();
        let (sender, lines) = channel();
        thread::spawn(move || {
            let Ok(file) = File::open(path) else { return };
            for line in BufReader::new(file).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Lines(lines)
    }
}
