//! The directory that an embedded run keeps its task in, until the task has completed.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::exit::Failure;
use crate::output;

/// A run's own directory.
#[derive(Debug)]
pub(super) struct PrivateDir {
    path: PathBuf,
}

impl PrivateDir {
    /// Makes one that no other run has.
    pub(super) fn create(data_dir: &Path) -> Result<PrivateDir, Failure> {
        let now = Timestamp::now().strftime("%Y%m%dT%H%M%S");
        let path = data_dir.join("runs").join(format!("{now}-{}", std::process::id()));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(|error| {
            Failure::unavailable(format!(
                "{}: cannot be made: {error}; choose another place with --data-dir",
                path.display()
            ))
        })?;
        Ok(PrivateDir { path })
    }

    /// The one of an earlier run.
    pub(super) fn of(path: &Path) -> Result<PrivateDir, Failure> {
        if !path.join("master").is_dir() {
            return Err(Failure::usage(format!(
                "{}: not the directory of a run; an interrupted run leaves it below the data directory, \
                 in runs/",
                path.display()
            )));
        }
        Ok(PrivateDir { path: path.to_owned() })
    }

    /// The newest run below the data directory that was interrupted: nobody is at it.
    pub(super) fn interrupted(data_dir: &Path) -> Option<PathBuf> {
        let entries = fs::read_dir(data_dir.join("runs")).ok()?;
        let runs = entries.flatten().map(|entry| entry.path());
        // Their names begin with the time.
        runs.filter(|run| is_abandoned(run)).max()
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where its master keeps the task.
    pub(super) fn master(&self) -> PathBuf {
        self.path.join("master")
    }

    /// Where its worker keeps its records.
    pub(super) fn worker(&self) -> PathBuf {
        self.path.join("worker")
    }

    /// Where the task leaves checkpoints.
    pub(super) fn checkpoints(&self) -> PathBuf {
        self.path.join("checkpoints")
    }

    /// Removes it with all it holds.
    pub(super) fn remove(self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            output::note(&format!("tenure: {}: cannot be removed: {error}", self.path.display()));
        }
    }

    /// Removes it, unless the task left checkpoints, which may be worth hours.
    pub(super) fn remove_unless_checkpoints(self) {
        if holds_a_file(&self.checkpoints()) {
            // The task is over: there is nothing to go on with.
            let _ = fs::remove_dir_all(self.master());
            let _ = fs::remove_dir_all(self.worker());
            output::note(&format!(
                "tenure: checkpoints are kept in {}",
                self.checkpoints().display()
            ));
        } else {
            self.remove();
        }
    }
}

/// Whether the process that had the run is gone. Only looked at: a lock taken to find out could be in
/// the way of a run that is just starting.
fn is_abandoned(run: &Path) -> bool {
    let owner = fs::read_to_string(run.join("master/tenure.lock")).unwrap_or_default();
    let owner = owner.trim().parse::<u32>();
    owner.is_ok_and(|pid| !Path::new("/proc").join(pid.to_string()).exists())
}

fn holds_a_file(dir: &Path) -> bool {
    let Ok(entries) = fs::read_dir(dir) else { return false };
    entries.flatten().any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => holds_a_file(&entry.path()),
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use tenure_adapters::data_dir::DataDir;

    use super::*;

    #[test]
    fn a_failed_run_is_kept_only_for_its_checkpoints() {
        let data = tempfile::tempdir().expect("a directory");
        let dir = PrivateDir::create(data.path()).expect("made");
        let path = dir.path().to_owned();
        fs::create_dir_all(dir.checkpoints().join("1")).expect("made");
        fs::write(dir.checkpoints().join("1/model"), "x").expect("written");
        dir.remove_unless_checkpoints();
        assert!(path.exists());
        fs::remove_file(path.join("checkpoints/1/model")).expect("there");
        PrivateDir { path: path.clone() }.remove_unless_checkpoints();
        assert!(!path.exists());
    }

    #[test]
    fn a_run_that_nobody_is_at_was_interrupted() {
        let data = tempfile::tempdir().expect("a directory");
        assert_eq!(PrivateDir::interrupted(data.path()), None);
        let dir = PrivateDir::create(data.path()).expect("made");
        assert_eq!(PrivateDir::interrupted(data.path()), None, "it has not begun");
        let lock = DataDir::lock(&dir.master()).expect("free");
        assert_eq!(PrivateDir::interrupted(data.path()), None, "somebody is at it");
        drop(lock);
        let mut gone = std::process::Command::new("true").spawn().expect("a process");
        gone.wait().expect("it ends");
        fs::write(dir.master().join("tenure.lock"), gone.id().to_string()).expect("written");
        assert_eq!(PrivateDir::interrupted(data.path()).as_deref(), Some(dir.path()));
    }

    #[test]
    fn what_is_no_run_is_refused() {
        let data = tempfile::tempdir().expect("a directory");
        assert!(PrivateDir::of(data.path()).is_err());
    }
}
