//! Directories that one process owns at a time: a master's data, a worker's records.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A directory that is this process's own until the value is dropped. The lock is the kernel's
/// (`flock`): it ends with the process, however that ends.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

/// Why a directory cannot be used.
#[derive(Debug, Error)]
pub enum DirError {
    /// Another process has it.
    #[error(
        "{}: in use by another tenure process{}; stop that one, or give this one a directory of its own",
        path.display(),
        owner.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
    )]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The process that has it, where it said so.
        owner: Option<u32>,
    },
    /// It cannot be made, read or written.
    #[error("{}: {error}; check that the directory exists and that this user may write there", path.display())]
    Io {
        /// The directory or file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

impl DirError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> DirError {
        let path = path.to_owned();
        move |error| DirError::Io { path, error }
    }
}

impl DataDir {
    /// Makes the directory if need be and takes it for this process: `<path>/tenure.lock`.
    ///
    /// # Errors
    /// [`DirError`] if another process has it or it cannot be written.
    pub fn lock(path: &Path) -> Result<DataDir, DirError> {
        std::fs::create_dir_all(path).map_err(DirError::io(path))?;
        let file = path.join("tenure.lock");
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&file)
            .map_err(DirError::io(&file))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(DirError::InUse { path: path.to_owned(), owner: owner(&mut lock) });
            }
            Err(TryLockError::Error(error)) => return Err(DirError::Io { path: file, error }),
        }
        sign(&mut lock).map_err(DirError::io(&file))?;
        Ok(DataDir { path: path.to_owned(), _lock: lock })
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where a master's database is.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.path.join("tenure.db")
    }

    /// Where a master's logs are.
    #[must_use]
    pub fn logs(&self) -> PathBuf {
        self.path.join("logs")
    }

    /// Where a worker keeps log lines that no master has taken.
    #[must_use]
    pub fn spool(&self) -> PathBuf {
        self.path.join("spool")
    }
}

/// Makes a new name in this directory survive a power cut.
pub(crate) fn sync_dir(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn sign(lock: &mut File) -> io::Result<()> {
    lock.set_len(0)?;
    write!(lock, "{}", std::process::id())
}

fn owner(lock: &mut File) -> Option<u32> {
    let mut text = String::new();
    lock.rewind().ok()?;
    lock.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_owner_is_refused_with_the_path_and_the_first_ones_pid() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let held = DataDir::lock(dir.path()).expect("nobody else has it");
        let refused = DataDir::lock(dir.path()).expect_err("it is taken").to_string();
        assert!(refused.contains(&dir.path().display().to_string()), "{refused}");
        assert!(refused.contains(&std::process::id().to_string()), "{refused}");
        drop(held);
        DataDir::lock(dir.path()).expect("it is free again");
    }

    #[test]
    fn a_file_in_the_way_is_named() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("plain");
        std::fs::write(&file, "x").expect("a plain file");
        let refused = DataDir::lock(&file).expect_err("not a directory").to_string();
        assert!(refused.contains("plain"), "{refused}");
    }
}
