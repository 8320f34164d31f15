//! What workers say.

use bytes::Bytes;
use tenure_core::ids::{AttemptRef, Epoch, Incarnation, Term};
use tenure_core::message::{Hello, ToMaster};
use tenure_core::outcome::{Outcome, Verdict};
use tenure_core::spec::{Labels, Payload, Shape};
use tenure_proto::{Message, messages as pb};

use super::parts::{
    at, attempt, attempt_ref, decline, inventory, of_decline, of_inventory, of_verdict,
    signed_attempt, task, to_signed, verdict,
};
use super::{ConvertError, documented};
use crate::names::Names;

/// What a worker says of itself beside what core knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerIdentity {
    /// Its name.
    pub name: String,
    /// Which start of it.
    pub incarnation: Incarnation,
    /// The host it runs on.
    pub hostname: String,
    /// Its process there.
    pub pid: u32,
    /// The version of its program, for people.
    pub version: String,
}

/// Reads what a worker said that said hello. `None`: nothing that core decides from (log lines).
///
/// # Errors
/// [`ConvertError`] if the worker broke the protocol.
pub fn read_to_master(message: Message, names: &Names) -> Result<Option<ToMaster>, ConvertError> {
    Ok(Some(match message {
        Message::Hello(hello) => ToMaster::Hello(read_hello(hello, names)?),
        Message::Heartbeat(beat) => {
            ToMaster::Heartbeat(inventory("HeartbeatRequest", beat.inventory)?)
        }
        Message::ExecuteAnswer(answer) => read_answer(&answer)?,
        Message::Report(report) => ToMaster::Finished(read_outcome(&report)?),
        Message::Log(_) => return Ok(None),
        other => return Err(ConvertError::WrongSide { name: other.name() }),
    }))
}

fn read_hello(hello: pb::Hello, names: &Names) -> Result<Hello, ConvertError> {
    if hello.worker.is_empty() {
        return Err(at("Hello", "worker").missing());
    }
    if hello.incarnation == 0 {
        return Err(at("Hello", "incarnation").missing());
    }
    let labels: Vec<_> = hello.labels.iter().map(|label| names.label(label)).collect();
    let slots =
        u16::try_from(hello.slots).map_err(|_| at("Hello", "slots").cannot_be(hello.slots))?;
    let gpus = u16::try_from(hello.gpus).map_err(|_| at("Hello", "gpus").cannot_be(hello.gpus))?;
    Ok(Hello {
        worker: names.worker(&hello.worker),
        incarnation: Incarnation(hello.incarnation),
        capacity: Shape { slots, gpus, labels: Labels::of(&labels) },
        highest: Term {
            epoch: Epoch(hello.highest_epoch),
            leader: Incarnation(hello.highest_leader),
        },
        inventory: inventory("Hello", hello.inventory)?,
        draining: hello.draining,
    })
}

fn read_answer(answer: &pb::ExecuteTaskResponse) -> Result<ToMaster, ConvertError> {
    const MESSAGE: &str = "ExecuteTaskResponse";
    let task = task(at(MESSAGE, "task"), answer.task)?;
    let at_attempt = AttemptRef::new(task, attempt(at(MESSAGE, "attempt"), answer.attempt)?);
    if answer.accepted {
        return Ok(ToMaster::Accepted(at_attempt));
    }
    Ok(ToMaster::Declined(at_attempt, decline(at(MESSAGE, "decline"), answer.decline)?))
}

fn read_outcome(report: &pb::TaskStatusReport) -> Result<Outcome, ConvertError> {
    const MESSAGE: &str = "TaskStatusReport";
    let task = task(at(MESSAGE, "task"), report.task)?;
    Ok(Outcome {
        at: AttemptRef::new(task, signed_attempt(at(MESSAGE, "attempt"), report.attempt)?),
        ran_by: Incarnation(report.ran_by),
        verdict: verdict(at(MESSAGE, "verdict"), report.verdict)?,
        report: payload(&report.report),
    })
}

/// Bytes that core carries. A copy, so that a small part does not keep its whole frame in memory.
pub(super) fn payload(bytes: &Bytes) -> Payload {
    if bytes.is_empty() { Payload::NONE } else { Payload::of(bytes) }
}

/// Writes what a worker says, with the documented fields filled for old readers.
#[must_use]
pub fn write_to_master(said: &ToMaster, me: &WorkerIdentity, names: &Names) -> Message {
    match said {
        ToMaster::Hello(hello) => write_hello(hello, me, names).into(),
        ToMaster::Heartbeat(inventory) => {
            let current = inventory.running.first().map(|at| at.task.0.to_string());
            pb::HeartbeatRequest {
                worker_id: me.name.clone(),
                hostname: me.hostname.clone(),
                current_task_id: current.unwrap_or_default(),
                inventory: Some(of_inventory(inventory)),
                incarnation: me.incarnation.0,
                ..Default::default()
            }
            .into()
        }
        ToMaster::Accepted(at) => write_answer(*at, pb::Decline::Unspecified).into(),
        ToMaster::Declined(at, why) => write_answer(*at, of_decline(*why)).into(),
        ToMaster::Finished(outcome) => write_outcome(outcome).into(),
        ToMaster::DocumentedHeartbeat { worker, busy } => {
            documented::write_heartbeat(&names.worker_name(*worker), &me.hostname, *busy).into()
        }
        ToMaster::DocumentedAnswer { task, accepted } => {
            documented::write_answer(*task, *accepted).into()
        }
        ToMaster::DocumentedReport { task, attempt, verdict, report } => {
            documented::write_report(*task, *attempt, *verdict, report).into()
        }
    }
}

fn write_hello(hello: &Hello, me: &WorkerIdentity, names: &Names) -> pb::Hello {
    let labels = hello.capacity.labels.as_slice().iter();
    pb::Hello {
        worker: names.worker_name(hello.worker).to_string(),
        incarnation: hello.incarnation.0,
        hostname: me.hostname.clone(),
        pid: me.pid,
        slots: hello.capacity.slots.into(),
        gpus: hello.capacity.gpus.into(),
        labels: labels.map(|label| names.label_text(*label).to_string()).collect(),
        highest_epoch: hello.highest.epoch.0,
        inventory: Some(of_inventory(&hello.inventory)),
        understands: Message::understands(),
        version: me.version.clone(),
        draining: hello.draining,
        highest_leader: hello.highest.leader.0,
    }
}

fn write_answer(at: AttemptRef, decline: pb::Decline) -> pb::ExecuteTaskResponse {
    pb::ExecuteTaskResponse {
        task_id: at.task.0.to_string(),
        accepted: decline == pb::Decline::Unspecified,
        message: String::new(),
        task: at.task.0,
        attempt: at.attempt.number(),
        decline: decline.into(),
    }
}

fn write_outcome(outcome: &Outcome) -> pb::TaskStatusReport {
    // A report that this version cannot read goes on unread; only the fields for old readers stay empty.
    let details = pb::OutcomeReport::from_bytes(outcome.report.bytes()).unwrap_or_default();
    let succeeded = outcome.verdict == Verdict::Succeeded;
    pb::TaskStatusReport {
        task_id: outcome.at.task.0.to_string(),
        status: documented::status(outcome.verdict).to_owned(),
        final_reward: details.reward.parse().unwrap_or_default(),
        error_message: if succeeded { String::new() } else { details.message },
        attempt: to_signed(outcome.at.attempt),
        task: outcome.at.task.0,
        ran_by: outcome.ran_by.0,
        verdict: of_verdict(outcome.verdict).into(),
        report: Bytes::copy_from_slice(outcome.report.bytes()),
    }
}

/// The attempts that a hello lists, for where their logs go on. What cannot be read is left out:
/// [`read_to_master`] says what is wrong with it.
#[must_use]
pub fn attempts_in(hello: &pb::Hello) -> Vec<AttemptRef> {
    let Some(inventory) = &hello.inventory else {
        return Vec::new();
    };
    let finished = inventory.finished.iter().filter_map(|finished| finished.at);
    let all = inventory.running.iter().copied().chain(finished);
    all.filter_map(|listed| attempt_ref(at("Hello", "inventory"), Some(listed)).ok()).collect()
}
