//! The one-line form of events and commands: for logs, scenario files and timelines.
//!
//! Written for people: what happens, to what, under which fence. Payloads are left out.

use core::fmt::{self, Display, Formatter};

use crate::command::{AgentCommand, MasterCommand, Record, Reply};
use crate::event::{AgentEvent, Ask, MasterEvent};
use crate::ids::{Attempt, AttemptRef};
use crate::lease::{LeaseAnswer, LeaseOp};
use crate::message::{Hello, Inventory, ToMaster, ToWorker};
use crate::outcome::{Outcome, Verdict};
use crate::store::{
    AttemptEnd, Change, Row, Status, StoreAnswer, StoreOp, StoreResult, TermRow, Wrote,
};

/// Writes its parts with a separator between them.
struct Joined<'a, T>(&'a [T], &'static str);

impl<T: Display> Display for Joined<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (place, part) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(self.1)?;
            }
            write!(f, "{part}")?;
        }
        Ok(())
    }
}

/// The newest attempt, or `a0` before the first.
struct Newest(Option<Attempt>);

impl Display for Newest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(attempt) => write!(f, "{attempt}"),
            None => f.write_str("a0"),
        }
    }
}

impl Display for Status {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Pending => "PENDING",
            Status::Running => "RUNNING",
            Status::Completed => "COMPLETED",
            Status::Failed => "FAILED",
            Status::Cancelled => "CANCELLED",
        })
    }
}

impl Display for Verdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Succeeded => "succeeded",
            Verdict::Failed => "failed",
            Verdict::FailedForGood => "failed-for-good",
            Verdict::TimedOut => "timed-out",
            Verdict::Stopped => "stopped",
            Verdict::HandedBack => "handed-back",
        })
    }
}

impl Display for Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {} {}", self.at, self.ran_by, self.verdict)
    }
}

impl Display for Inventory {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "runs [{}] finished [", Joined(&self.running, " "))?;
        for (place, finished) in self.finished.iter().enumerate() {
            let gap = if place > 0 { " " } else { "" };
            write!(f, "{gap}{}/{}", finished.at, finished.ran_by)?;
        }
        f.write_str("]")
    }
}

impl Display for Row {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.task, self.status, Newest(self.attempt))?;
        if let Some(holder) = self.holder {
            write!(f, " {holder}")?;
        }
        match self.end {
            Some(AttemptEnd::Undone) => f.write_str(" undone")?,
            Some(AttemptEnd::Lost { counted: true }) => f.write_str(" lost(counted)")?,
            Some(AttemptEnd::Lost { counted: false }) => f.write_str(" lost")?,
            Some(AttemptEnd::Outcome) => f.write_str(" ended")?,
            None => {}
        }
        if self.cancel_requested {
            f.write_str(" cancel-requested")?;
        }
        if self.failures > 0 {
            write!(f, " failures={}", self.failures)?;
        }
        if self.lost > 0 {
            write!(f, " lost={}", self.lost)?;
        }
        Ok(())
    }
}

impl Display for TermRow {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} left {}", self.term, self.left)
    }
}

impl Display for Change {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Change::Claim { newest, holder } => {
                write!(f, "claim {} for {holder}", Attempt::after(*newest))
            }
            Change::Undo { attempt, incarnation } => write!(f, "undo {attempt} of {incarnation}"),
            Change::Lose { attempt, incarnation, counted, reason } => {
                let counted = if *counted { "counted" } else { "uncounted" };
                write!(f, "lose {attempt} of {incarnation} {counted} {reason:?}")
            }
            Change::Keep { attempt, holder } => write!(f, "keep {attempt} on {holder}"),
            Change::Commit { outcome, .. } => write!(f, "commit {outcome}"),
            Change::Cancel { force: true } => f.write_str("cancel by force"),
            Change::Cancel { force: false } => f.write_str("cancel"),
            Change::MarkStarted { attempt, incarnation } => {
                write!(f, "mark {attempt} of {incarnation} started")
            }
            Change::Lift { attempt, holder } => write!(f, "lift to {attempt} of {holder}"),
        }
    }
}

impl Display for StoreOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            StoreOp::Insert { submission, claim: None, .. } => {
                write!(f, "insert {:?}", &*submission.key.0)
            }
            StoreOp::Insert { submission, claim: Some((holder, term)), .. } => {
                write!(
                    f,
                    "insert {:?} and claim for {holder} as {}",
                    &*submission.key.0, term.epoch
                )
            }
            StoreOp::Change { task, term, change, .. } => {
                write!(f, "{task} {change} as {}", term.epoch)
            }
            StoreOp::Register { holder, term, .. } => {
                write!(f, "register {holder} as {}", term.epoch)
            }
            StoreOp::Read(task) => write!(f, "read {task}"),
            StoreOp::ReadAll(term) => write!(f, "read all as {}", term.epoch),
            StoreOp::Scan { term, after, .. } => write!(f, "scan after {after} as {}", term.epoch),
            StoreOp::ReadTerm => f.write_str("read term"),
            StoreOp::TakeTerm { after, leader, .. } => {
                write!(f, "take term after {after} for {leader}")
            }
            StoreOp::RenewTerm { term, .. } => write!(f, "renew term {term}"),
            StoreOp::ReleaseTerm(term) => write!(f, "release term {term}"),
        }
    }
}

impl Display for Wrote {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wrote::Applied => "applied",
            Wrote::Repeat => "repeat",
            Wrote::Refused => "refused",
            Wrote::Superseded => "superseded",
            Wrote::Ahead => "ahead",
        })
    }
}

impl Display for StoreAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            StoreAnswer::Inserted { row, existed: false } => write!(f, "inserted {row}"),
            StoreAnswer::Inserted { row, existed: true } => write!(f, "existed {row}"),
            StoreAnswer::KeyTaken(task) => write!(f, "key taken by {task}"),
            StoreAnswer::Changed { wrote, row, .. } => write!(f, "{wrote}: {row}"),
            StoreAnswer::NoTask(task) => write!(f, "no task {task}"),
            StoreAnswer::Read(row) => write!(f, "{row}"),
            StoreAnswer::Registered { replaced: None } => f.write_str("registered"),
            StoreAnswer::Registered { replaced: Some(old) } => {
                write!(f, "registered in place of {old}")
            }
            StoreAnswer::WasReplaced => f.write_str("was replaced"),
            StoreAnswer::All { rows, workers } => {
                write!(f, "all [{}] workers [{}]", Joined(rows, "; "), Joined(workers, " "))
            }
            StoreAnswer::Page { rows, until: None } => {
                write!(f, "last page [{}]", Joined(rows, "; "))
            }
            StoreAnswer::Page { rows, until: Some(task) } => {
                write!(f, "page [{}] to {task}", Joined(rows, "; "))
            }
            StoreAnswer::TermIs(row) => write!(f, "term is {row}"),
            StoreAnswer::Taken(term) => write!(f, "taken {term}"),
            StoreAnswer::NotTaken(row) => write!(f, "not taken, term is {row}"),
            StoreAnswer::Renewed => f.write_str("renewed"),
            StoreAnswer::Released => f.write_str("released"),
            StoreAnswer::Deposed(row) => write!(f, "deposed, term is {row}"),
        }
    }
}

impl Display for StoreResult {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            StoreResult::Answer(answer) => write!(f, "{answer}"),
            StoreResult::Failed => f.write_str("failed"),
            StoreResult::Unknown => f.write_str("unknown"),
        }
    }
}

impl Display for LeaseOp {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            LeaseOp::Grant { holder, task, fence, .. } => {
                write!(f, "lease {task} to {holder} as {fence}")
            }
            LeaseOp::Renew { holder, tasks, .. } => {
                write!(f, "renew {holder} [{}]", Joined(tasks, " "))
            }
            LeaseOp::Release { holder, task, fence } => {
                write!(f, "release {task} of {holder} as {fence}")
            }
            LeaseOp::IsAlive(worker) => write!(f, "look at {worker}"),
        }
    }
}

impl Display for LeaseAnswer {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            LeaseAnswer::Higher(fence) => write!(f, "held as {fence}"),
            other => write!(f, "{other:?}"),
        }
    }
}

impl Display for Hello {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "hello {}/{} {}", self.worker, self.incarnation, self.inventory)
    }
}

impl Display for ToMaster {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ToMaster::Hello(hello) => write!(f, "{hello}"),
            ToMaster::Heartbeat(inventory) => write!(f, "heartbeat {inventory}"),
            ToMaster::Accepted(at) => write!(f, "accepted {at}"),
            ToMaster::Declined(at, why) => write!(f, "declined {at} {why:?}"),
            ToMaster::Finished(outcome) => write!(f, "finished {outcome}"),
            ToMaster::DocumentedHeartbeat { worker, busy: None } => {
                write!(f, "documented heartbeat {worker} idle")
            }
            ToMaster::DocumentedHeartbeat { worker, busy: Some(task) } => {
                write!(f, "documented heartbeat {worker} runs {task}")
            }
            ToMaster::DocumentedAnswer { task, accepted: true } => {
                write!(f, "documented accepted {task}")
            }
            ToMaster::DocumentedAnswer { task, accepted: false } => {
                write!(f, "documented declined {task}")
            }
            ToMaster::DocumentedReport { task, attempt, verdict, .. } => {
                write!(f, "documented report {task} {} {verdict}", Newest(*attempt))
            }
        }
    }
}

impl Display for ToWorker {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            ToWorker::HelloAck(term) => write!(f, "hello-ack {term}"),
            ToWorker::HelloRefused(why) => write!(f, "hello-refused {why:?}"),
            ToWorker::HeartbeatAck(epoch) => write!(f, "heartbeat-ack {epoch}"),
            ToWorker::Execute(execute) => {
                write!(f, "execute {} as {}", execute.at, execute.term.epoch)
            }
            ToWorker::ResultAck { at, ran_by, epoch, verdict } => {
                write!(f, "result-ack {at} by {ran_by} as {epoch} {verdict:?}")
            }
            ToWorker::Stop { at, epoch, reason } => write!(f, "stop {at} as {epoch} {reason:?}"),
            ToWorker::NotLeader(epoch) => write!(f, "not-leader {epoch}"),
            ToWorker::Drain => f.write_str("drain"),
            ToWorker::Ping => f.write_str("ping"),
        }
    }
}

impl Display for Reply {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Submitted { task, existed: false } => write!(f, "submitted {task}"),
            Reply::Submitted { task, existed: true } => write!(f, "submitted {task} before"),
            Reply::KeyTaken(task) => write!(f, "key taken by {task}"),
            Reply::Cancelled(row) => write!(f, "cancelled {}", row.task),
            Reply::Cancelling(row) => write!(f, "cancelling {}", row.task),
            Reply::AlreadyOver(task, status) => write!(f, "{task} is over: {status}"),
            Reply::NoTask(task) => write!(f, "no task {task}"),
            Reply::NotLeader(epoch) => write!(f, "not leader, seen {epoch}"),
            Reply::StoreFailed => f.write_str("store failed"),
            Reply::Unknown => f.write_str("unknown"),
        }
    }
}

impl Display for MasterCommand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            MasterCommand::Store(_, op) => write!(f, "store: {op}"),
            MasterCommand::Lease(_, op) => write!(f, "lease: {op}"),
            MasterCommand::Send(session, message) => write!(f, "send {session}: {message}"),
            MasterCommand::Close(session, why) => write!(f, "close {session} {why:?}"),
            MasterCommand::Reply(request, reply) => write!(f, "reply {request}: {reply}"),
            MasterCommand::Lead(term) => write!(f, "lead {term}"),
            MasterCommand::StepDown(term) => write!(f, "step down {term}"),
            MasterCommand::Stopped => f.write_str("stopped"),
        }
    }
}

impl Display for Ask {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Ask::Submit(submission) => write!(f, "submit {:?}", &*submission.key.0),
            Ask::Cancel { task, force: false } => write!(f, "cancel {task}"),
            Ask::Cancel { task, force: true } => write!(f, "cancel {task} by force"),
        }
    }
}

impl Display for MasterEvent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            MasterEvent::Woke => f.write_str("woke"),
            MasterEvent::Stored(effect, result) => write!(f, "stored {effect}: {result}"),
            MasterEvent::Leased(effect, answer) => write!(f, "leased {effect}: {answer}"),
            MasterEvent::Opened(session) => write!(f, "opened {session}"),
            MasterEvent::Closed(session) => write!(f, "closed {session}"),
            MasterEvent::Received(session, message) => write!(f, "received {session}: {message}"),
            MasterEvent::Asked(request, ask) => write!(f, "asked {request}: {ask}"),
            MasterEvent::StopAsked => f.write_str("stop asked"),
        }
    }
}

impl Display for Record {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Record::Given { at, ran_by, term } => {
                write!(f, "given {at} to {ran_by} as {}", term.epoch)
            }
            Record::Outcome(outcome) => write!(f, "outcome {outcome}"),
            Record::Highest(term) => write!(f, "highest {term}"),
            Record::Acknowledged(at, ran_by) => write!(f, "acknowledged {at} by {ran_by}"),
        }
    }
}

impl Display for AgentCommand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            AgentCommand::Dial(_, index) => write!(f, "dial master {index}"),
            AgentCommand::Hangup(session) => write!(f, "hang up {session}"),
            AgentCommand::Send(session, message) => write!(f, "send {session}: {message}"),
            AgentCommand::Persist(_, record) => write!(f, "persist {record}"),
            AgentCommand::Start(execute) => write!(f, "start {}", execute.at),
            AgentCommand::Stop(at, why) => write!(f, "stop {at} {why:?}"),
            AgentCommand::Drained => f.write_str("drained"),
            AgentCommand::Quit(why) => write!(f, "quit {why:?}"),
        }
    }
}

impl Display for AgentEvent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            AgentEvent::Woke => f.write_str("woke"),
            AgentEvent::Booted(remembered) => write!(
                f,
                "booted highest {} given [{}] outcomes [{}]",
                remembered.highest,
                Joined(&remembered.given, " "),
                Joined(&remembered.outcomes, "; ")
            ),
            AgentEvent::Dialed(_, session) => write!(f, "dialed {session}"),
            AgentEvent::DialFailed(_) => f.write_str("dial failed"),
            AgentEvent::Closed(session) => write!(f, "closed {session}"),
            AgentEvent::Received(session, message) => write!(f, "received {session}: {message}"),
            AgentEvent::Persisted(effect) => write!(f, "persisted {effect}"),
            AgentEvent::PersistFailed(effect) => write!(f, "persist failed {effect}"),
            AgentEvent::Ended { at, verdict, .. } => write!(f, "ended {at} {verdict}"),
            AgentEvent::DrainAsked { hand_back: false } => f.write_str("drain asked"),
            AgentEvent::DrainAsked { hand_back: true } => f.write_str("drain asked, hand back"),
        }
    }
}

/// Reads `t7.a2`.
///
/// # Errors
/// The text that is no attempt's name.
pub fn attempt(text: &str) -> Result<AttemptRef, &str> {
    let (task, attempt) = text.split_once('.').ok_or(text)?;
    let task = task.strip_prefix('t').and_then(|digits| digits.parse().ok()).ok_or(text)?;
    let attempt = attempt.strip_prefix('a').and_then(|digits| digits.parse().ok()).ok_or(text)?;
    let attempt = Attempt::new(attempt).ok_or(text)?;
    Ok(AttemptRef::new(crate::ids::TaskId(task), attempt))
}
