//! Why a command could not be started, in words that say what to do.

use std::io;
use std::os::unix::ffi::OsStrExt;

use nix::libc;

use super::event::{Fault, Launch};
use super::frame::Stage;
use super::spawn::DEFAULT_PATH;

/// Finds what `execve` cannot be given.
pub(super) fn check(launch: &Launch) -> Result<(), String> {
    let program = launch.program.display();
    if launch.program.is_empty() {
        return Err("the command is empty; name a program to run".to_owned());
    }
    let zero = |bytes: &[u8]| bytes.contains(&0);
    if zero(launch.program.as_bytes()) || zero(launch.cwd.as_os_str().as_bytes()) {
        return Err(format!("cannot run `{program}`: its path or directory holds a zero byte"));
    }
    if let Some(at) = launch.args.iter().position(|arg| zero(arg.as_bytes())) {
        let at = at + 1;
        return Err(format!("cannot run `{program}`: argument {at} holds a zero byte; remove it"));
    }
    for (name, value) in &launch.env {
        let bytes = name.as_bytes();
        if bytes.is_empty() || bytes.contains(&b'=') || zero(bytes) || zero(value.as_bytes()) {
            return Err(format!(
                "cannot run `{program}`: the environment variable `{}` has an empty name, a `=` \
                 in its name or a zero byte; correct or remove it",
                name.display()
            ));
        }
    }
    Ok(())
}

/// The worker itself has no descriptors left for a task.
pub(super) fn no_wires(launch: &Launch, error: &io::Error) -> String {
    format!(
        "cannot run `{}`: no pipes for it: {error}; raise the worker's `ulimit -n` or give it \
         fewer slots",
        launch.program.display()
    )
}

/// The guardian cannot be handed a task, so nothing of it has run.
pub(super) fn no_guardian(launch: &Launch, error: &io::Error) -> String {
    format!(
        "cannot run `{}`: the guardian process cannot be reached: {error}; the next launch starts \
         another one",
        launch.program.display()
    )
}

/// Whose fault it is, and the whole sentence.
pub(super) fn explain(launch: &Launch, stage: Stage, errno: i32) -> (Fault, String) {
    let program = launch.program.display();
    let os = io::Error::from_raw_os_error(errno);
    match stage {
        Stage::Cwd => {
            let cwd = launch.cwd.display();
            let remedy = cwd_remedy(errno);
            let text = format!(
                "cannot run `{program}`: working directory `{cwd}` cannot be used: {os}; {remedy}"
            );
            (fault(errno), text)
        }
        Stage::Exec => {
            let remedy = exec_remedy(launch, errno);
            (fault(errno), format!("cannot run `{program}`: {os}; {remedy}"))
        }
        Stage::Fork | Stage::Setup => {
            let remedy = "the worker is short of processes, memory or descriptors: see its \
                          `ulimit -u -n` and the memory and pids limits of its cgroup";
            (Fault::Worker, format!("cannot run `{program}`: no process for it: {os}; {remedy}"))
        }
    }
}

fn fault(errno: i32) -> Fault {
    match errno {
        libc::EAGAIN | libc::ENOMEM | libc::EMFILE | libc::ENFILE | libc::EIO | libc::ETXTBSY => {
            Fault::Worker
        }
        _ => Fault::Command,
    }
}

fn cwd_remedy(errno: i32) -> &'static str {
    match errno {
        libc::ENOENT => "create it on this worker or give the task another one",
        libc::EACCES => {
            "let the worker's user enter it (the x permission on each part of the path)"
        }
        libc::ENOTDIR => "give the task a directory, this is a file",
        _ => "give the task another one",
    }
}

fn exec_remedy(launch: &Launch, errno: i32) -> String {
    let program = launch.program.display();
    match errno {
        libc::ENOENT if launch.program.as_bytes().contains(&b'/') => {
            "install it on this worker, or correct the path (a script also needs the interpreter \
             that its first line names)"
                .to_owned()
        }
        libc::ENOENT => {
            format!(
                "it is in no directory of PATH={}; install it or give its full path",
                path(launch)
            )
        }
        libc::EACCES => format!("make it executable with `chmod +x {program}`"),
        libc::ENOEXEC => {
            "it is neither a program for this machine nor a script with a first line like \
             `#!/bin/sh`"
                .to_owned()
        }
        libc::E2BIG => "arguments and environment are too long: pass them in a file".to_owned(),
        _ => "see `man execve` for what this error means".to_owned(),
    }
}

fn path(launch: &Launch) -> String {
    let found = launch.env.iter().find(|(name, _)| name == "PATH");
    found.map_or(DEFAULT_PATH.to_owned(), |(_, value)| value.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch() -> Launch {
        let env = vec![("PATH".into(), "/a:/b".into())];
        Launch { key: 1, program: "trian".into(), args: vec![], env, cwd: "/nowhere".into() }
    }

    #[test]
    fn a_missing_program_is_named_with_where_it_was_looked_for() {
        let (fault, text) = explain(&launch(), Stage::Exec, libc::ENOENT);
        assert_eq!(fault, Fault::Command);
        assert!(text.contains("`trian`") && text.contains("PATH=/a:/b"), "{text}");
    }

    #[test]
    fn shortage_is_the_workers_fault() {
        assert_eq!(explain(&launch(), Stage::Fork, libc::EAGAIN).0, Fault::Worker);
        assert_eq!(explain(&launch(), Stage::Exec, libc::ENOMEM).0, Fault::Worker);
    }

    #[test]
    fn what_execve_cannot_take_is_refused_by_name() {
        assert!(check(&launch()).is_ok());
        let bad = Launch { args: vec!["a".into(), "b\0".into()], ..launch() };
        assert!(check(&bad).expect_err("zero byte").contains("argument 2"));
        let bad = Launch { env: vec![("A=B".into(), "".into())], ..launch() };
        assert!(check(&bad).expect_err("= in a name").contains("`A=B`"));
        assert!(check(&Launch { program: "".into(), ..launch() }).is_err());
    }
}
