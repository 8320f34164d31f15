//! The last resort: finding processes of a task by a mark in their environment.
//!
//! Needed only when a task's init and the guardian were both killed. A process that has wiped its
//! environment is not found, which is why this is not the first resort.

use std::ffi::OsString;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::event::Exit;
use super::frame::Tell;

const NAME: &str = "TENURE_PROCESS_TAG";

/// Time for SIGKILL to work.
const KILL_LIMIT: Duration = Duration::from_secs(10);

/// A mark that no other command has, of this worker or another.
#[derive(Clone)]
pub(super) struct Tag(String);

impl Tag {
    pub(super) fn new() -> Tag {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the kernel gives random bytes");
        Tag(format!("{:032x}", u128::from_le_bytes(bytes)))
    }

    pub(super) fn env(&self) -> (OsString, OsString) {
        (NAME.into(), self.0.clone().into())
    }

    fn marks(&self, pid: i32) -> bool {
        // Unreadable: of another user, or gone.
        let Ok(environ) = fs::read(format!("/proc/{pid}/environ")) else { return false };
        let entry = format!("{NAME}={}", self.0);
        environ.split(|byte| *byte == 0).any(|found| found == entry.as_bytes())
    }
}

/// Kills everything that carries the tag.
pub(super) async fn kill_tagged(tag: &Tag) -> Tell {
    let tag = tag.clone();
    let survivors = tokio::task::spawn_blocking(move || kill_until_none(&tag)).await;
    Tell::Ended { exit: Exit::Lost, killed: 0, survivors: survivors.unwrap_or(0) }
}

fn kill_until_none(tag: &Tag) -> u32 {
    let start = Instant::now();
    loop {
        let found: Vec<i32> = pids().filter(|pid| tag.marks(*pid)).collect();
        if found.is_empty() || start.elapsed() > KILL_LIMIT {
            return found.len() as u32;
        }
        // All are stopped before the first is killed, so that none forks meanwhile.
        for signal in [Signal::SIGSTOP, Signal::SIGKILL] {
            for pid in &found {
                let _ = kill(Pid::from_raw(*pid), signal);
            }
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
