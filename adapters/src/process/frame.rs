//! Frames of a task's control socket: `u32` length (little-endian, of what follows), one tag byte,
//! fields. Both ends are the same build, which the guardian's greeting checks.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use super::event::Exit;

/// What the guardian says first. Change the digit with any change of the frames.
pub(super) const GREETING: &[u8] = b"tenure-guardian 1";

/// Above what `execve` takes (6 MiB on Linux), so a launch that is too long fails there, by name.
const LIMIT: usize = 64 << 20;

/// From the worker to a task init.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// Always the first frame.
    Run(Program),
    /// TERM to everything, KILL after the grace.
    Stop { grace_ms: u64 },
}

/// What to execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) cwd: PathBuf,
}

/// From a task init (or from the guardian in its stead) to the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tell {
    Started { pid: i32 },
    Failed { stage: Stage, errno: i32 },
    Ended { exit: Exit, killed: u32, survivors: u32 },
}

/// The step of a start that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Fork,
    Setup,
    Cwd,
    Exec,
}

impl Stage {
    pub(super) fn code(self) -> i32 {
        match self {
            Stage::Fork => 0,
            Stage::Setup => 1,
            Stage::Cwd => 2,
            Stage::Exec => 3,
        }
    }

    pub(super) fn from_code(code: i32) -> Stage {
        match code {
            0 => Stage::Fork,
            2 => Stage::Cwd,
            3 => Stage::Exec,
            _ => Stage::Setup,
        }
    }
}

impl Ask {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        match self {
            Ask::Run(run) => {
                out.byte(1);
                out.bytes(&run.program);
                out.bytes(run.cwd.as_os_str());
                out.u32(run.args.len() as u32);
                run.args.iter().for_each(|arg| out.bytes(arg));
                out.u32(run.env.len() as u32);
                for (name, value) in &run.env {
                    out.bytes(name);
                    out.bytes(value);
                }
            }
            Ask::Stop { grace_ms } => {
                out.byte(2);
                out.0.extend_from_slice(&grace_ms.to_le_bytes());
            }
        }
        out.finish()
    }

    pub(super) fn decode(frame: &[u8]) -> io::Result<Ask> {
        let mut input = Reader(frame);
        match input.byte()? {
            1 => {
                let program = input.bytes()?;
                let cwd = PathBuf::from(input.bytes()?);
                let args = (0..input.u32()?).map(|_| input.bytes()).collect::<io::Result<_>>()?;
                let env = (0..input.u32()?)
                    .map(|_| Ok((input.bytes()?, input.bytes()?)))
                    .collect::<io::Result<_>>()?;
                Ok(Ask::Run(Program { program, args, env, cwd }))
            }
            2 => Ok(Ask::Stop { grace_ms: u64::from_le_bytes(input.array()?) }),
            other => Err(unknown_tag(other)),
        }
    }
}

impl Tell {
    pub(super) fn encode(self) -> Vec<u8> {
        let mut out = Writer::new();
        match self {
            Tell::Started { pid } => {
                out.byte(1);
                out.i32(pid);
            }
            Tell::Failed { stage, errno } => {
                out.byte(2);
                out.i32(stage.code());
                out.i32(errno);
            }
            Tell::Ended { exit, killed, survivors } => {
                let (kind, value) = match exit {
                    Exit::Code(code) => (0, code),
                    Exit::Signal(signal) => (1, signal),
                    Exit::Lost => (2, 0),
                };
                out.byte(3);
                out.byte(kind);
                out.i32(value);
                out.u32(killed);
                out.u32(survivors);
            }
        }
        out.finish()
    }

    pub(super) fn decode(frame: &[u8]) -> io::Result<Tell> {
        let mut input = Reader(frame);
        match input.byte()? {
            1 => Ok(Tell::Started { pid: input.i32()? }),
            2 => Ok(Tell::Failed { stage: Stage::from_code(input.i32()?), errno: input.i32()? }),
            3 => {
                let exit = match (input.byte()?, input.i32()?) {
                    (0, code) => Exit::Code(code),
                    (1, signal) => Exit::Signal(signal),
                    (2, _) => Exit::Lost,
                    (other, _) => return Err(unknown_tag(other)),
                };
                Ok(Tell::Ended { exit, killed: input.u32()?, survivors: input.u32()? })
            }
            other => Err(unknown_tag(other)),
        }
    }
}

/// Collects bytes and gives whole frames back.
#[derive(Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
}

impl Frames {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole frame, if it is there.
    pub(super) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(head) = self.bytes.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if length > LIMIT {
            return Err(broken(format!("a control frame of {length} bytes is over {LIMIT}")));
        }
        if self.bytes.len() < 4 + length {
            return Ok(None);
        }
        let frame = self.bytes[4..4 + length].to_vec();
        self.bytes.drain(..4 + length);
        Ok(Some(frame))
    }
}

struct Writer(Vec<u8>);

impl Writer {
    fn new() -> Writer {
        Writer(vec![0; 4])
    }

    fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn i32(&mut self, value: i32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, value: &OsStr) {
        self.u32(value.len() as u32);
        self.0.extend_from_slice(value.as_bytes());
    }

    fn finish(mut self) -> Vec<u8> {
        let length = (self.0.len() - 4) as u32;
        self.0[..4].copy_from_slice(&length.to_le_bytes());
        self.0
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (head, rest) =
            self.0.split_first_chunk::<N>().ok_or_else(|| broken("a control frame is short"))?;
        self.0 = rest;
        Ok(*head)
    }

    fn byte(&mut self) -> io::Result<u8> {
        Ok(self.array::<1>()?[0])
    }

    fn u32(&mut self) -> io::Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn i32(&mut self) -> io::Result<i32> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    fn bytes(&mut self) -> io::Result<OsString> {
        let length = self.u32()? as usize;
        if length > self.0.len() {
            return Err(broken("a control frame is short"));
        }
        let (head, rest) = self.0.split_at(length);
        self.0 = rest;
        Ok(OsString::from_vec(head.to_vec()))
    }
}

fn unknown_tag(tag: u8) -> io::Error {
    broken(format!("a control frame has the unknown tag {tag}"))
}

fn broken(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_they_went_in_however_they_are_cut() {
        let run = Ask::Run(Program {
            program: "sh".into(),
            args: vec!["-c".into(), OsString::from_vec(vec![0xff, 0xfe])],
            env: vec![("A".into(), "".into())],
            cwd: "/tmp".into(),
        });
        let stop = Ask::Stop { grace_ms: 1500 };
        let mut frames = Frames::default();
        let mut got = Vec::new();
        for byte in [run.encode(), stop.encode()].concat() {
            frames.push(&[byte]);
            if let Some(frame) = frames.next().expect("valid") {
                got.push(Ask::decode(&frame).expect("valid"));
            }
        }
        assert_eq!(got, [run, stop]);
    }

    #[test]
    fn answers_come_back_as_they_went_in() {
        for tell in [
            Tell::Started { pid: 7 },
            Tell::Failed { stage: Stage::Exec, errno: 2 },
            Tell::Ended { exit: Exit::Code(255), killed: 0, survivors: 0 },
            Tell::Ended { exit: Exit::Signal(9), killed: 3, survivors: 1 },
            Tell::Ended { exit: Exit::Lost, killed: 0, survivors: 0 },
        ] {
            assert_eq!(Tell::decode(&tell.encode()[4..]).expect("valid"), tell);
        }
    }

    #[test]
    fn short_and_oversized_frames_are_errors() {
        assert!(Ask::decode(&[1, 200, 0, 0, 0, b'x']).is_err());
        assert!(Tell::decode(&[9]).is_err());
        let mut frames = Frames::default();
        frames.push(&u32::MAX.to_le_bytes());
        assert!(frames.next().is_err());
    }
}
