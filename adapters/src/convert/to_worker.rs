//! What masters say.

use bytes::Bytes;
use tenure_core::ids::{AttemptRef, Epoch, Incarnation, Term};
use tenure_core::message::{Execute, ToWorker};
use tenure_core::spec::{Labels, Shape};
use tenure_core::time::Millis;
use tenure_proto::{Message, messages as pb};

use super::parts::{
    ack_verdict, at, attempt_ref, of_ack_verdict, of_attempt_ref, of_refusal, of_stop_reason,
    refusal, signed_attempt, stop_reason, task, to_signed,
};
use super::to_master::payload;
use super::{ConvertError, Dialect};

/// Reads what a master said. `None`: nothing that core decides from (acknowledged log lines, for one).
///
/// A hello-ack's heartbeat interval, log positions and the detail of its refusal are for the caller to take.
///
/// # Errors
/// [`ConvertError`] if the master broke the protocol.
pub fn read_to_worker(message: Message) -> Result<Option<ToWorker>, ConvertError> {
    Ok(Some(match message {
        Message::HelloAck(ack) => read_hello_ack(&ack)?,
        Message::HeartbeatAck(ack) => ToWorker::HeartbeatAck(Epoch(ack.epoch)),
        Message::Execute(order) => ToWorker::Execute(read_execute(&order)?),
        Message::ResultAck(ack) => return read_result_ack(&ack),
        Message::Cancel(order) => ToWorker::Stop {
            at: attempt_ref(at("Cancel", "at"), order.at)?,
            epoch: Epoch(order.epoch),
            reason: stop_reason(at("Cancel", "reason"), order.reason)?,
        },
        Message::NotLeader(said) => ToWorker::NotLeader(Epoch(said.epoch)),
        Message::Drain(_) => ToWorker::Drain,
        Message::Ping(_) => ToWorker::Ping,
        Message::LogAck(_) => return Ok(None),
        other => return Err(ConvertError::WrongSide { name: other.name() }),
    }))
}

fn read_hello_ack(ack: &pb::HelloAck) -> Result<ToWorker, ConvertError> {
    if let Some(why) = refusal(at("HelloAck", "refused"), ack.refused)? {
        return Ok(ToWorker::HelloRefused(why));
    }
    if ack.epoch == 0 {
        return Err(at("HelloAck", "epoch").missing());
    }
    let leader = Incarnation(ack.leader);
    Ok(ToWorker::HelloAck(Term { epoch: Epoch(ack.epoch), leader }))
}

fn read_execute(order: &pb::ExecuteTaskRequest) -> Result<Execute, ConvertError> {
    const MESSAGE: &str = "ExecuteTaskRequest";
    let task = task(at(MESSAGE, "task"), order.task)?;
    let attempt = signed_attempt(at(MESSAGE, "attempt"), order.attempt)?;
    let slots =
        u16::try_from(order.slots).map_err(|_| at(MESSAGE, "slots").cannot_be(order.slots))?;
    let gpus = u16::try_from(order.gpus).map_err(|_| at(MESSAGE, "gpus").cannot_be(order.gpus))?;
    Ok(Execute {
        at: AttemptRef::new(task, attempt),
        term: Term { epoch: Epoch(order.epoch), leader: Incarnation(order.leader) },
        shape: Shape { slots, gpus, labels: Labels::NONE },
        timeout: (order.timeout_ms > 0).then_some(Millis(order.timeout_ms)),
        resumes: order.resumes,
        payload: payload(&order.body),
    })
}

fn read_result_ack(ack: &pb::ResultAck) -> Result<Option<ToWorker>, ConvertError> {
    let verdict = ack_verdict(at("ResultAck", "verdict"), ack.verdict)?;
    let acknowledged = attempt_ref(at("ResultAck", "at"), ack.at)?;
    Ok(verdict.map(|verdict| ToWorker::ResultAck {
        at: acknowledged,
        ran_by: Incarnation(ack.ran_by),
        epoch: Epoch(ack.epoch),
        verdict,
    }))
}

/// Writes what a master says. `None`: a worker of this dialect does not take it.
///
/// What core does not know (a hello-ack's heartbeat interval, log positions and detail, another leader's
/// address) is empty, for the caller to fill.
#[must_use]
pub fn write_to_worker(said: &ToWorker, dialect: Dialect) -> Option<Message> {
    match (dialect, said) {
        (Dialect::Native, said) => Some(write_native(said)),
        (Dialect::Documented, ToWorker::Execute(order)) => Some(write_documented(order).into()),
        (Dialect::Documented, _) => None,
    }
}

fn write_native(said: &ToWorker) -> Message {
    match said {
        ToWorker::HelloAck(term) => pb::HelloAck {
            epoch: term.epoch.0,
            leader: term.leader.0,
            understands: Message::understands(),
            ..Default::default()
        }
        .into(),
        ToWorker::HelloRefused(why) => pb::HelloAck {
            refused: of_refusal(*why).into(),
            understands: Message::understands(),
            ..Default::default()
        }
        .into(),
        ToWorker::HeartbeatAck(epoch) => pb::HeartbeatAck { epoch: epoch.0 }.into(),
        ToWorker::Execute(order) => write_execute(order).into(),
        ToWorker::ResultAck { at, ran_by, epoch, verdict } => pb::ResultAck {
            at: Some(of_attempt_ref(*at)),
            ran_by: ran_by.0,
            epoch: epoch.0,
            verdict: of_ack_verdict(*verdict).into(),
        }
        .into(),
        ToWorker::Stop { at, epoch, reason } => pb::Cancel {
            at: Some(of_attempt_ref(*at)),
            epoch: epoch.0,
            reason: of_stop_reason(*reason).into(),
            grace_ms: 0,
        }
        .into(),
        ToWorker::NotLeader(epoch) => {
            pb::NotLeader { epoch: epoch.0, leader: String::new() }.into()
        }
        ToWorker::Drain => pb::Drain {}.into(),
        ToWorker::Ping => pb::Ping {}.into(),
    }
}

fn write_execute(order: &Execute) -> pb::ExecuteTaskRequest {
    pb::ExecuteTaskRequest {
        task_id: order.at.task.0.to_string(),
        attempt: to_signed(order.at.attempt),
        task: order.at.task.0,
        epoch: order.term.epoch.0,
        leader: order.term.leader.0,
        body: Bytes::copy_from_slice(order.payload.bytes()),
        timeout_ms: order.timeout.map_or(0, |timeout| timeout.0.max(1)),
        resumes: order.resumes,
        slots: order.shape.slots.into(),
        gpus: order.shape.gpus.into(),
        ..Default::default()
    }
}

/// Only the fields that a documented worker knows, taken from what the task is to run.
fn write_documented(order: &Execute) -> pb::ExecuteTaskRequest {
    // A body that this version cannot read has no fields for such a worker; it gets the task all the same.
    let body = pb::TaskBody::from_bytes(order.payload.bytes()).unwrap_or_default();
    pb::ExecuteTaskRequest {
        task_id: order.at.task.0.to_string(),
        algorithm: body.algorithm,
        episodes: body.episodes,
        learning_rate: body.learning_rate,
        trace_id: body.trace_id,
        attempt: to_signed(order.at.attempt),
        ..Default::default()
    }
}
