//! One command, from its launch to its last event.

use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

use super::event::{Fault, Launch, ProcessEvent, Stream};
use super::executor::Settings;
use super::failure;
use super::frame::{Ask, Frames, Program, Tell};
use super::link::Link;
use super::output::{Budget, Output};
use super::sweep::{self, Tag};

/// What it takes to run one command.
pub(super) struct Job {
    pub(super) launch: Launch,
    pub(super) link: Arc<Link>,
    pub(super) stops: mpsc::UnboundedReceiver<Duration>,
    pub(super) settings: Settings,
    pub(super) events: mpsc::UnboundedSender<ProcessEvent>,
}

/// Runs the command and gives its last event. Dropping the future kills the command.
pub(super) async fn supervise(job: Job) -> ProcessEvent {
    let key = job.launch.key;
    if let Err(error) = failure::check(&job.launch) {
        return ProcessEvent::FailedToStart { key, fault: Fault::Command, error };
    }
    let (wires, ends) = match Wires::new(&job) {
        Ok(made) => made,
        Err(error) => {
            let error = failure::no_wires(&job.launch, &error);
            return ProcessEvent::FailedToStart { key, fault: Fault::Worker, error };
        }
    };
    if let Err(error) = job.link.send(ends).await {
        let error = failure::no_guardian(&job.launch, &error);
        return ProcessEvent::FailedToStart { key, fault: Fault::Worker, error };
    }
    wires.run(job).await
}

/// Our ends of what connects us to the task.
struct Wires {
    asks: OwnedWriteHalf,
    tells: Tells,
    stdout: Output,
    stderr: Output,
    budget: Budget,
}

impl Wires {
    fn new(job: &Job) -> io::Result<(Wires, [OwnedFd; 3])> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (reader, asks) = UnixStream::from_std(ours)?.into_split();
        let (out, their_out) = io::pipe()?;
        let (err, their_err) = io::pipe()?;
        let budget = Budget::new(job.settings.output_budget);
        let output = |stream, pipe: io::PipeReader| {
            let name = (job.launch.key, stream);
            let cap = job.settings.line_cap;
            Output::new(name, pipe.into(), cap, budget.clone(), job.events.clone())
        };
        let (stdout, stderr) = (output(Stream::Stdout, out)?, output(Stream::Stderr, err)?);
        let tells = Tells { reader, frames: Frames::default() };
        let wires = Wires { asks, tells, stdout, stderr, budget };
        Ok((wires, [theirs.into(), their_out.into(), their_err.into()]))
    }

    async fn run(mut self, job: Job) -> ProcessEvent {
        let Job { launch, stops, settings, events, .. } = job;
        let tag = Tag::new();
        let told = self.follow(&launch, &tag, stops, &events).await;
        self.budget.open();
        let rest = async { tokio::join!(self.stdout.pump(), self.stderr.pump()) };
        let _ = tokio::time::timeout(settings.drain_limit, rest).await;
        self.stdout.finish();
        self.stderr.finish();
        last_event(&launch, told)
    }

    /// Passes everything on until the task is over; gives how it ended.
    async fn follow(
        &mut self,
        launch: &Launch,
        tag: &Tag,
        mut stops: mpsc::UnboundedReceiver<Duration>,
        events: &mpsc::UnboundedSender<ProcessEvent>,
    ) -> Tell {
        let Wires { asks, tells, stdout, stderr, .. } = self;
        let mut asking = pin!(ask(asks, program(launch, tag), &mut stops));
        let mut pumping = pin!(async { tokio::join!(stdout.pump(), stderr.pump()) });
        let (mut started, mut silent) = (false, false);
        loop {
            tokio::select! {
                tell = tells.next() => match tell {
                    Some(Tell::Started { pid }) => {
                        started = true;
                        let _ = events.send(ProcessEvent::Started { key: launch.key, pid });
                    }
                    Some(tell) => return tell,
                    // Init and guardian are both dead, so nobody looks after what is left.
                    None => return sweep::kill_tagged(tag).await,
                },
                never = &mut asking => match never {},
                // Not before the start is told, which comes before the first line.
                _ = &mut pumping, if started && !silent => silent = true,
            }
        }
    }
}

/// Sends the program, then the stop requests, for ever.
async fn ask(
    asks: &mut OwnedWriteHalf,
    program: Program,
    stops: &mut mpsc::UnboundedReceiver<Duration>,
) -> Infallible {
    // Failed writes are ignored: an init that is gone is noticed by the end of its answers.
    let _ = asks.write_all(&Ask::Run(program).encode()).await;
    while let Some(grace) = stops.recv().await {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let _ = asks.write_all(&Ask::Stop { grace_ms }.encode()).await;
    }
    std::future::pending().await
}

fn program(launch: &Launch, tag: &Tag) -> Program {
    let mut env = launch.env.clone();
    env.push(tag.env());
    let (program, args) = (launch.program.clone(), launch.args.clone());
    Program { program, args, env, cwd: launch.cwd.clone() }
}

fn last_event(launch: &Launch, told: Tell) -> ProcessEvent {
    let key = launch.key;
    match told {
        Tell::Ended { exit, killed, survivors } => {
            ProcessEvent::Ended { key, exit, killed, survivors }
        }
        Tell::Failed { stage, errno } => {
            let (fault, error) = failure::explain(launch, stage, errno);
            ProcessEvent::FailedToStart { key, fault, error }
        }
        Tell::Started { .. } => unreachable!("a start is passed on, not returned"),
    }
}

/// What the task says.
struct Tells {
    reader: OwnedReadHalf,
    frames: Frames,
}

impl Tells {
    /// `None` at the end, and for bytes that make no sense. May be dropped at any point.
    async fn next(&mut self) -> Option<Tell> {
        let mut buffer = [0; 256];
        loop {
            if let Some(frame) = self.frames.next().ok()? {
                return Tell::decode(&frame).ok();
            }
            match self.reader.read(&mut buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(length) => self.frames.push(&buffer[..length]),
            }
        }
    }
}
