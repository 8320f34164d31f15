//! From a fork to the command: what happens in the child before `execve`.

use std::ffi::{CString, OsStr, OsString};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::ptr;

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};
use nix::unistd::{ForkResult, fork};

use super::frame::{Program, Stage};

/// Where a program without a slash is looked for if the environment has no `PATH`.
pub(super) const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A command that has been forked. Its status pipe tells whether `execve` went well: end of file
/// if so, else what [`read_status`] gives.
pub(super) struct Spawned {
    pub(super) pid: i32,
    pub(super) status: OwnedFd,
}

/// Forks and executes. The output ends are closed here once the child has them.
///
/// All signals must be blocked: one that arrives before `execve` then waits for it, instead of
/// being lost to the ignoring handlers of this process.
pub(super) fn spawn(program: &Program, stdout: OwnedFd, stderr: OwnedFd) -> Result<Spawned, Errno> {
    let image = Image::new(program).map_err(|_| Errno::EINVAL)?;
    let null = OpenOptions::new().read(true).open("/dev/null").map_err(errno_of)?;
    let (status, report) = io::pipe().map_err(errno_of)?;
    // SAFETY: this process has one thread, so its child may allocate and run any code.
    match unsafe { fork() }? {
        ForkResult::Parent { child } => Ok(Spawned { pid: child.as_raw(), status: status.into() }),
        ForkResult::Child => {
            let fds = [null.as_raw_fd(), stdout.as_raw_fd(), stderr.as_raw_fd()];
            let (stage, errno) = image.exec(fds);
            let mut message = [0; 8];
            message[..4].copy_from_slice(&stage.code().to_le_bytes());
            message[4..].copy_from_slice(&(errno as i32).to_le_bytes());
            // SAFETY: the buffer is valid for its length; `_exit` runs none of the parent's code.
            unsafe {
                libc::write(report.as_raw_fd(), message.as_ptr().cast(), message.len());
                libc::_exit(127)
            }
        }
    }
}

/// Why the start failed; `None` if it did not. Blocks until the child has executed or died.
pub(super) fn read_status(status: &OwnedFd) -> Option<(Stage, i32)> {
    let mut message = [0; 8];
    let length = loop {
        match nix::unistd::read(status, &mut message) {
            Err(Errno::EINTR) => {}
            other => break other.unwrap_or(0),
        }
    };
    let (stage, errno) = message.split_at(4);
    let word = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().expect("half of 8 bytes"));
    (length == message.len()).then(|| (Stage::from_code(word(stage)), word(errno)))
}

/// The arguments of `execve`, made before the fork.
struct Image {
    candidates: Vec<CString>,
    args: Vec<CString>,
    env: Vec<CString>,
    cwd: CString,
}

impl Image {
    fn new(program: &Program) -> Result<Image, std::ffi::NulError> {
        let args = std::iter::once(&program.program).chain(&program.args);
        Ok(Image {
            candidates: candidates(&program.program, &program.env)
                .into_iter()
                .map(|path| CString::new(path.into_vec()))
                .collect::<Result<_, _>>()?,
            args: args.map(|arg| CString::new(arg.as_bytes())).collect::<Result<_, _>>()?,
            env: program.env.iter().map(env_entry).collect::<Result<_, _>>()?,
            cwd: CString::new(program.cwd.as_os_str().as_bytes())?,
        })
    }

    /// Returns only if something failed.
    fn exec(&self, fds: [RawFd; 3]) -> (Stage, Errno) {
        if let Err(errno) = take_over(fds) {
            return (Stage::Setup, errno);
        }
        // SAFETY: a valid C string.
        if unsafe { libc::chdir(self.cwd.as_ptr()) } != 0 {
            return (Stage::Cwd, Errno::last());
        }
        let (args, env) = (pointers(&self.args), pointers(&self.env));
        reset_signals();
        let mut worst = Errno::ENOENT;
        for path in &self.candidates {
            // SAFETY: valid C strings, and arrays of them that end with a null pointer.
            unsafe { libc::execve(path.as_ptr(), args.as_ptr(), env.as_ptr()) };
            match Errno::last() {
                Errno::ENOENT | Errno::ENOTDIR => {}
                // Like a shell: go on looking, but remember that there was one.
                Errno::EACCES => worst = Errno::EACCES,
                errno => return (Stage::Exec, errno),
            }
        }
        (Stage::Exec, worst)
    }
}

fn candidates(program: &OsStr, env: &[(OsString, OsString)]) -> Vec<OsString> {
    if program.as_bytes().contains(&b'/') {
        return vec![program.to_owned()];
    }
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH));
    std::env::split_paths(path).map(|dir| Path::new(&dir).join(program).into_os_string()).collect()
}

fn env_entry((name, value): &(OsString, OsString)) -> Result<CString, std::ffi::NulError> {
    CString::new([name.as_bytes(), b"=", value.as_bytes()].concat())
}

fn pointers(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect()
}

/// A session of its own, so that `kill 0` in the command meets nobody else, and three descriptors.
fn take_over(fds: [RawFd; 3]) -> Result<(), Errno> {
    // SAFETY: plain system calls on descriptors that are open; 0 to 2 are open since the start.
    unsafe {
        Errno::result(libc::setsid())?;
        for (target, fd) in (0..).zip(fds) {
            Errno::result(libc::dup2(fd, target))?;
        }
    }
    close_on_exec_from(3);
    Ok(())
}

/// Marks every descriptor from `first` on. All of ours are marked when they are made; this is for
/// those that the program that started the worker left open.
fn close_on_exec_from(first: RawFd) {
    // SAFETY: changes flags of descriptors of this process only.
    let done = unsafe {
        libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    if done == 0 {
        return;
    }
    // Linux before 5.11.
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    for fd in entries.flatten().filter_map(|e| e.file_name().to_str()?.parse::<RawFd>().ok()) {
        if fd >= first {
            // SAFETY: as above.
            unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// Default handlers for all signals, then none blocked: what waits is delivered here.
fn reset_signals() {
    // Zeros mean the default handler on every architecture. Past libc, which refuses signals 32
    // and 33: a program above the worker may have had them ignored.
    let default = [0_u64; 8];
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: the buffer is larger than the kernel's `sigaction`; 8 bytes is its mask. Fails
        // without effect on KILL and STOP.
        unsafe {
            let none = ptr::null_mut::<libc::c_void>();
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), none, 8_usize)
        };
    }
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
}

fn errno_of(error: io::Error) -> Errno {
    Errno::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_in_the_path_of_the_task_and_a_path_is_not() {
        let env = [("PATH".into(), "/a:/b".into())];
        assert_eq!(candidates(OsStr::new("x"), &env), ["/a/x", "/b/x"]);
        assert_eq!(candidates(OsStr::new("./x"), &env), ["./x"]);
        assert_eq!(candidates(OsStr::new("x"), &[])[0], "/usr/local/bin/x");
    }
}
