//! Where bench tasks say that they have started, and wait to be let go. Nobody looks twice: both
//! sides block until the other speaks.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::task::Start;
use crate::exit::Failure;

/// The place.
pub(super) struct Meeting {
    path: PathBuf,
    arrivals: Receiver<Guest>,
    early: VecDeque<Guest>,
}

/// A task that has started and waits.
pub(super) struct Guest {
    /// What it said.
    pub(super) start: Start,
    stream: BufReader<UnixStream>,
}

impl Guest {
    /// Lets it end.
    pub(super) fn let_go(&mut self) {
        // It may have been killed; that is what a bench does.
        let _ = self.stream.get_mut().write_all(b"\n");
    }

    /// Waits until its process is gone.
    pub(super) fn wait_until_gone(&mut self, limit: Duration) -> bool {
        let _ = self.stream.get_ref().set_read_timeout(Some(limit));
        // The end of the stream, or a reset: both come only when the process is gone.
        !matches!(self.stream.read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl Meeting {
    /// Opens it below `dir`.
    pub(super) fn open(dir: &Path) -> Result<Meeting, Failure> {
        let path = dir.join("meet");
        let listener = UnixListener::bind(&path)
            .map_err(|error| Failure::unavailable(format!("{}: {error}", path.display())))?;
        let (sender, arrivals) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                let read = stream.read_line(&mut line);
                if let (Ok(_), Ok(start)) = (read, serde_json::from_str(&line))
                    && sender.send(Guest { start, stream }).is_err()
                {
                    return;
                }
            }
        });
        Ok(Meeting { path, arrivals, early: VecDeque::new() })
    }

    /// Where tasks come to.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The next start of this task with at least this attempt.
    pub(super) fn wait_for(
        &mut self,
        task: &str,
        attempt: u32,
        limit: Duration,
    ) -> Result<Guest, Failure> {
        let fits = |start: &Start| start.task == task && start.attempt >= attempt;
        if let Some(at) = self.early.iter().position(|guest| fits(&guest.start)) {
            return Ok(self.early.remove(at).expect("it was just found there"));
        }
        let end = Instant::now() + limit;
        loop {
            match self.arrivals.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(guest) if fits(&guest.start) => return Ok(guest),
                Ok(guest) => self.early.push_back(guest),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Err(Failure::unavailable(format!(
                        "attempt {attempt} of task {task} did not start within {limit:?}"
                    )));
                }
            }
        }
    }
}
