//! What a task finds around it: environment, scratch directory, checkpoints, GPUs.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::result::{self, Findings, TaskResult};

/// What is known about an attempt before it starts.
#[derive(Clone, Debug)]
pub struct Attempt<'a> {
    /// Given as `TENURE_TASK_ID`.
    pub task_id: &'a str,
    /// Given as `TENURE_ATTEMPT`.
    pub attempt: u64,
    /// Given as `TENURE_EPOCH`.
    pub epoch: u64,
    /// Given as `TENURE_TRACE_ID`.
    pub trace_id: &'a str,
    /// Where attempts of this task leave checkpoints for later ones. Made if missing, never removed.
    pub checkpoint_dir: &'a Path,
    /// Whether there is something to resume from, which the checkpoint directory then holds.
    pub start: Start,
    /// The GPUs of this attempt.
    pub gpus: Gpus<'a>,
}

/// Whether an attempt begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// `TENURE_RESUMES=0`.
    Fresh,
    /// `TENURE_RESUMES=1`.
    Resumes,
}

/// Which GPUs an attempt may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gpus<'a> {
    /// The worker does not hand out GPUs: what the environment says stays.
    NotManaged,
    /// Exactly these, by index; none hides them all.
    Assigned(&'a [u32]),
}

/// The prepared surroundings of one attempt.
#[derive(Debug)]
pub struct Context {
    scratch: PathBuf,
    env: Vec<(OsString, OsString)>,
}

impl Context {
    /// Makes the directories of an attempt: a scratch directory of its own below `scratch_root`,
    /// empty even if an earlier worker left one there, and the checkpoint directory.
    ///
    /// # Errors
    /// Names the directory that cannot be made.
    pub fn prepare(scratch_root: &Path, attempt: &Attempt<'_>) -> io::Result<Context> {
        let name =
            format!("{}.e{}.a{}", file_name(attempt.task_id), attempt.epoch, attempt.attempt);
        let scratch = scratch_root.join(name);
        match fs::remove_dir_all(&scratch) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(named("empty", &scratch, error));
            }
            Ok(()) | Err(_) => {}
        }
        for dir in [scratch.as_path(), attempt.checkpoint_dir] {
            fs::create_dir_all(dir).map_err(|error| named("make", dir, error))?;
        }
        let env = environment(&scratch, attempt);
        Ok(Context { scratch, env })
    }

    /// The variables to add to the task's environment.
    pub fn env(&self) -> &[(OsString, OsString)] {
        &self.env
    }

    /// A whole environment: the base with ours laid over it.
    pub fn over(
        &self,
        base: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        let ours = |name: &OsString| self.env.iter().any(|(own, _)| own == name);
        let base = base.into_iter().filter(|(name, _)| !ours(name));
        base.chain(self.env.iter().cloned()).collect()
    }

    /// The file that the task may write its JSON result to.
    pub fn result_path(&self) -> PathBuf {
        self.scratch.join("result.json")
    }

    /// The file that the task may write its progress to; the last line counts.
    pub fn progress_path(&self) -> PathBuf {
        self.scratch.join("progress")
    }

    /// The progress written to the file so far.
    pub fn progress(&self) -> Option<String> {
        result::read_progress(&self.progress_path())
    }

    /// Puts together what the task left. For after its end.
    pub fn result(&self, findings: &Findings) -> TaskResult {
        let (result_json, result_error) = match result::read_json(&self.result_path()) {
            Ok(json) => (json, None),
            Err(error) => (None, Some(error)),
        };
        let progress = self.progress().or_else(|| findings.progress.clone());
        TaskResult { result_json, result_error, reward: findings.reward.clone(), progress }
    }

    /// Removes the scratch directory. Checkpoints stay.
    ///
    /// # Errors
    /// Names the directory that is left.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_dir_all(&self.scratch).map_err(|error| named("remove", &self.scratch, error))
    }
}

fn environment(scratch: &Path, attempt: &Attempt<'_>) -> Vec<(OsString, OsString)> {
    let resumes = match attempt.start {
        Start::Fresh => "0",
        Start::Resumes => "1",
    };
    let mut env: Vec<(OsString, OsString)> = vec![
        ("TENURE_TASK_ID".into(), attempt.task_id.into()),
        ("TENURE_ATTEMPT".into(), attempt.attempt.to_string().into()),
        ("TENURE_EPOCH".into(), attempt.epoch.to_string().into()),
        ("TENURE_TRACE_ID".into(), attempt.trace_id.into()),
        ("TENURE_RESULT".into(), scratch.join("result.json").into()),
        ("TENURE_PROGRESS".into(), scratch.join("progress").into()),
        ("TENURE_CHECKPOINT_DIR".into(), attempt.checkpoint_dir.into()),
        ("TENURE_RESUMES".into(), resumes.into()),
    ];
    if let Gpus::Assigned(gpus) = attempt.gpus {
        let list = gpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        env.push(("CUDA_VISIBLE_DEVICES".into(), list.into()));
        // CUDA's own order is by speed; the worker's indexes are those of nvidia-smi.
        env.push(("CUDA_DEVICE_ORDER".into(), "PCI_BUS_ID".into()));
    }
    env
}

/// A task id as one part of a path: a client chooses it, so it may hold `/` or be `..`.
fn file_name(id: &str) -> String {
    let mut name = String::new();
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(byte.into()),
            _ => name.push_str(&format!("%{byte:02x}")),
        }
    }
    // Names on Linux end at 255 bytes, and epoch and attempt come after. Long ids that begin
    // alike must stay apart, so the end is replaced by a hash (FNV-1a) of the whole.
    if name.len() > 160 {
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        name.truncate(140);
        name.push_str(&format!("-{hash:016x}"));
    }
    name
}

fn named(verb: &str, path: &Path, error: io::Error) -> io::Error {
    let path = path.display();
    io::Error::new(
        error.kind(),
        format!("cannot {verb} the directory {path}: {error}; check its owner and free space"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt<'a>(checkpoint_dir: &'a Path, gpus: Gpus<'a>) -> Attempt<'a> {
        Attempt {
            task_id: "t/../7",
            attempt: 2,
            epoch: 4,
            trace_id: "trace-1",
            checkpoint_dir,
            start: Start::Resumes,
            gpus,
        }
    }

    fn get<'a>(context: &'a Context, name: &str) -> Option<&'a str> {
        let found = context.env().iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.to_str().expect("text"))
    }

    #[test]
    fn the_environment_names_task_attempt_files_and_gpus() {
        let root = tempfile::tempdir().expect("a directory");
        let checkpoints = root.path().join("checkpoints");
        let attempt = attempt(&checkpoints, Gpus::Assigned(&[0, 3]));
        let context = Context::prepare(&root.path().join("scratch"), &attempt).expect("made");
        assert_eq!(get(&context, "TENURE_TASK_ID"), Some("t/../7"));
        assert_eq!(get(&context, "TENURE_ATTEMPT"), Some("2"));
        assert_eq!(get(&context, "TENURE_EPOCH"), Some("4"));
        assert_eq!(get(&context, "TENURE_TRACE_ID"), Some("trace-1"));
        assert_eq!(get(&context, "TENURE_RESUMES"), Some("1"));
        assert_eq!(get(&context, "CUDA_VISIBLE_DEVICES"), Some("0,3"));
        let result = context.result_path();
        assert_eq!(get(&context, "TENURE_RESULT"), result.to_str());
        assert!(result.starts_with(root.path().join("scratch")), "the id stays one path part");
        let base = vec![("TENURE_ATTEMPT".into(), "9".into()), ("HOME".into(), "/h".into())];
        let whole = context.over(base);
        assert_eq!(whole.iter().filter(|(name, _)| name == "TENURE_ATTEMPT").count(), 1);
        assert!(whole.contains(&("HOME".into(), "/h".into())));
    }

    #[test]
    fn gpus_are_hidden_if_none_is_assigned_and_left_alone_if_not_managed() {
        let root = tempfile::tempdir().expect("a directory");
        let none = attempt(root.path(), Gpus::Assigned(&[]));
        let context = Context::prepare(root.path(), &none).expect("made");
        assert_eq!(get(&context, "CUDA_VISIBLE_DEVICES"), Some(""));
        let free = attempt(root.path(), Gpus::NotManaged);
        let context = Context::prepare(root.path(), &free).expect("made");
        assert_eq!(get(&context, "CUDA_VISIBLE_DEVICES"), None);
    }

    #[test]
    fn the_result_is_read_and_scratch_goes_while_checkpoints_stay() {
        let root = tempfile::tempdir().expect("a directory");
        let checkpoints = root.path().join("checkpoints");
        let attempt = attempt(&checkpoints, Gpus::NotManaged);
        let context = Context::prepare(&root.path().join("scratch"), &attempt).expect("made");
        let findings = Findings { reward: Some("1.5".into()), progress: Some("line".into()) };
        assert_eq!(context.result(&findings).progress.as_deref(), Some("line"));
        fs::write(context.result_path(), r#"{"loss": 0.25}"#).expect("written");
        fs::write(context.progress_path(), "1/2\n2/2\n").expect("written");
        fs::write(checkpoints.join("model"), "x").expect("written");
        let result = context.result(&findings);
        assert_eq!(result.result_json, Some(serde_json::json!({"loss": 0.25})));
        assert_eq!(result.progress.as_deref(), Some("2/2"));
        assert_eq!(result.reward.as_deref(), Some("1.5"));
        // A second worker that takes over the same attempt sees nothing of it.
        let again = Context::prepare(&root.path().join("scratch"), &attempt).expect("made");
        assert_eq!(again.result(&Findings::default()), TaskResult::default());
        again.remove().expect("removed");
        assert!(checkpoints.join("model").exists());
        assert_eq!(fs::read_dir(root.path().join("scratch")).expect("there").count(), 0);
    }

    #[test]
    fn a_bad_result_file_is_reported_and_never_blocks() {
        let root = tempfile::tempdir().expect("a directory");
        let context =
            Context::prepare(root.path(), &attempt(root.path(), Gpus::NotManaged)).expect("made");
        let path = context.result_path();
        let error = || context.result(&Findings::default()).result_error;
        fs::write(&path, "{\"a\": ").expect("written");
        assert!(error().expect("cut off").contains("not one JSON document"));
        fs::write(&path, vec![b' '; (result::RESULT_LIMIT + 1) as usize]).expect("written");
        assert!(error().expect("too long").contains("over 1048576 bytes"));
        fs::remove_file(&path).expect("there");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("made");
        assert!(error().expect("a FIFO").contains("not a regular file"));
        fs::remove_file(&path).expect("there");
        std::os::unix::fs::symlink("/etc/hostname", &path).expect("made");
        assert!(error().is_some(), "a link is not followed");
    }

    #[test]
    fn ids_of_any_length_and_kind_give_different_short_names() {
        let (a, b) = (file_name(&"x/".repeat(200)), file_name(&("x/".repeat(199) + "y/")));
        assert!(a.len() < 200 && a != b);
        assert_eq!(file_name(".."), "%2e%2e");
    }
}
