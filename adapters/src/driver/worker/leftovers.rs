//! Processes that an earlier start of this worker left: they must be gone before it says hello, since a
//! hello tells the master that nothing else of this worker runs.
//!
//! Each task's init sees the worker's end and kills its task within moments, so there is mostly nothing
//! to do but to look. Where init and guardian died with the worker, this kills in their place.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::options::StartError;

/// Names the worker's directory in the environment of everything that it runs.
pub(super) const MARK: &str = "TENURE_WORKER_DIR";

/// How long inits may take before their work is done for them.
const INIT_TIME: Duration = Duration::from_secs(1);

/// How long dying may take in all: a process can be held up in the kernel.
const LIMIT: Duration = Duration::from_secs(20);

/// Ends with no process left that carries this directory's mark.
///
/// # Errors
/// [`StartError::Leftovers`] names those that do not die.
pub(super) async fn end(dir: &Path) -> Result<(), StartError> {
    let entry = [MARK.as_bytes(), b"=", dir.as_os_str().as_bytes()].concat();
    let start = Instant::now();
    let mut pause = Duration::from_millis(2);
    loop {
        let pids = marked(&entry);
        if pids.is_empty() {
            return Ok(());
        }
        if start.elapsed() > LIMIT {
            return Err(StartError::Leftovers { pids });
        }
        if start.elapsed() > INIT_TIME {
            kill_all(&pids);
        }
        // The kernel tells nobody but parents of an end, and these are not our children.
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// All are stopped before the first is killed, so that none forks meanwhile.
fn kill_all(pids: &[i32]) {
    for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
        for pid in pids {
            let _ = kill(Pid::from_raw(*pid), signal);
        }
    }
}

fn marked(entry: &[u8]) -> Vec<i32> {
    let own = std::process::id();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| pid(&entry.file_name()));
    pids.filter(|pid| pid.cast_unsigned() != own && carries(*pid, entry)).collect()
}

fn pid(name: &OsStr) -> Option<i32> {
    name.to_str()?.parse().ok()
}

fn carries(pid: i32, entry: &[u8]) -> bool {
    // Unreadable: of another user, or gone.
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environ.split(|byte| *byte == 0).any(|found| found == entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[tokio::test]
    async fn a_process_that_nobody_else_ends_is_killed() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut child =
            Command::new("sleep").arg("1000").env(MARK, dir.path()).spawn().expect("sleep starts");
        let entry = [MARK.as_bytes(), b"=", dir.path().as_os_str().as_bytes()].concat();
        let other = tempfile::tempdir().expect("a directory");
        end(other.path()).await.expect("nothing of another directory");
        let reaper = tokio::task::spawn_blocking(move || child.wait().expect("it is ours"));
        end(dir.path()).await.expect("it is killed");
        assert!(!reaper.await.expect("no panic").success());
        assert!(marked(&entry).is_empty());
    }
}
