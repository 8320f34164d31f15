//! Finding and signalling the descendants of a process.
//!
//! Only a subreaper may rely on this: whatever is orphaned while the tree is walked becomes its
//! child and is met by the next walk. So a walk may miss a process, but no process can get away
//! from walks that are repeated until there is no child left.

use std::fs;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The children of a process, dead ones that wait to be reaped included.
pub(super) fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let mut found = Vec::new();
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => found.extend(list.split_whitespace().filter_map(|p| p.parse::<i32>().ok())),
            // Kernels built without CONFIG_PROC_CHILDREN; also a thread that just ended.
            Err(_) if thread.path().exists() => return children_by_scan(pid),
            Err(_) => {}
        }
    }
    found
}

/// Sends a signal to every descendant, parents first.
pub(super) fn signal_below(root: i32, signal: Signal) {
    let mut queue = children(root);
    let mut next = 0;
    while next < queue.len() {
        let pid = queue[next];
        // Read first: a parent that dies of the signal hands its children over.
        queue.extend(children(pid));
        let _ = kill(Pid::from_raw(pid), signal);
        next += 1;
    }
}

/// What one walk of [`kill_below`] met.
#[derive(Default)]
pub(super) struct Killed {
    /// Everything that was sent a SIGKILL.
    pub(super) pids: Vec<i32>,
    /// Those that this user may not signal, with the cause.
    pub(super) refused: Vec<(i32, Errno)>,
}

/// Kills every descendant of `root` but the children that are to be spared.
///
/// Parents are stopped before their children are listed: a stopped process can neither fork more
/// of them nor reap one and so free its process id for a stranger.
pub(super) fn kill_below(root: i32, spare: impl Fn(i32) -> bool) -> Killed {
    let mut queue: Vec<i32> = children(root).into_iter().filter(|pid| !spare(*pid)).collect();
    let mut next = 0;
    while next < queue.len() {
        let pid = queue[next];
        let _ = kill(Pid::from_raw(pid), Signal::SIGSTOP);
        for child in children(pid) {
            // A pid may move up the tree while we look.
            if !queue.contains(&child) {
                queue.push(child);
            }
        }
        next += 1;
    }
    let mut killed = Killed::default();
    for pid in queue {
        match kill(Pid::from_raw(pid), Signal::SIGKILL) {
            Ok(()) => killed.pids.push(pid),
            Err(Errno::ESRCH) => {}
            Err(errno) => killed.refused.push((pid, errno)),
        }
    }
    killed
}

fn children_by_scan(parent: i32) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| parent_of(*pid) == Some(parent)).collect()
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may itself hold spaces and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn both_ways_of_listing_children_find_a_child() {
        let mut child = Command::new("sleep").arg("100").spawn().expect("sleep starts");
        let (pid, me) = (child.id() as i32, std::process::id() as i32);
        assert!(children(me).contains(&pid));
        assert!(children_by_scan(me).contains(&pid));
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        assert!(!children_by_scan(me).contains(&pid));
    }
}
