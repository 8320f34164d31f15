//! Attempts, inventories and enums.

use tenure_core::ids::{Attempt, AttemptRef, Incarnation, TaskId};
use tenure_core::message::{AckVerdict, Decline, Finished, HelloRefusal, Inventory, StopReason};
use tenure_core::outcome::Verdict;
use tenure_proto::messages as pb;

use super::ConvertError;

/// So much of a value that cannot be is told.
const SHOWN_CHARS: usize = 64;

/// Where a value stands, for errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) message: &'static str,
    pub(super) field: &'static str,
}

impl Place {
    pub(super) fn missing(self) -> ConvertError {
        ConvertError::Missing { message: self.message, field: self.field }
    }

    pub(super) fn cannot_be(self, value: impl ToString) -> ConvertError {
        let value = value.to_string().chars().take(SHOWN_CHARS).collect();
        ConvertError::Impossible { message: self.message, field: self.field, value }
    }
}

/// A place by its name in `messages.proto`.
pub(super) fn at(message: &'static str, field: &'static str) -> Place {
    Place { message, field }
}

pub(super) fn task(place: Place, number: u64) -> Result<TaskId, ConvertError> {
    if number == 0 { Err(place.missing()) } else { Ok(TaskId(number)) }
}

pub(super) fn attempt(place: Place, number: u32) -> Result<Attempt, ConvertError> {
    Attempt::new(number).ok_or_else(|| place.cannot_be(number))
}

/// The documented fields for attempts are signed.
pub(super) fn signed_attempt(place: Place, number: i32) -> Result<Attempt, ConvertError> {
    let positive = u32::try_from(number).ok().and_then(Attempt::new);
    positive.ok_or_else(|| place.cannot_be(number))
}

pub(super) fn to_signed(attempt: Attempt) -> i32 {
    i32::try_from(attempt.number()).unwrap_or(i32::MAX)
}

pub(super) fn attempt_ref(
    place: Place,
    read: Option<pb::AttemptRef>,
) -> Result<AttemptRef, ConvertError> {
    let read = read.ok_or_else(|| place.missing())?;
    Ok(AttemptRef::new(task(place, read.task)?, attempt(place, read.attempt)?))
}

pub(super) fn of_attempt_ref(at: AttemptRef) -> pb::AttemptRef {
    pb::AttemptRef { task: at.task.0, attempt: at.attempt.number() }
}

pub(super) fn inventory(
    message: &'static str,
    read: Option<pb::Inventory>,
) -> Result<Inventory, ConvertError> {
    // Without one every task of the worker would count as lost, so none is not taken for an empty one.
    let read = read.ok_or_else(|| at(message, "inventory").missing())?;
    let running = at(message, "inventory.running");
    let finished = at(message, "inventory.finished");
    Ok(Inventory {
        running: read
            .running
            .into_iter()
            .map(|listed| attempt_ref(running, Some(listed)))
            .collect::<Result<_, _>>()?,
        finished: read
            .finished
            .into_iter()
            .map(|listed| {
                let ran_by = Incarnation(listed.ran_by);
                Ok(Finished { at: attempt_ref(finished, listed.at)?, ran_by })
            })
            .collect::<Result<_, _>>()?,
    })
}

pub(super) fn of_inventory(inventory: &Inventory) -> pb::Inventory {
    pb::Inventory {
        running: inventory.running.iter().copied().map(of_attempt_ref).collect(),
        finished: inventory
            .finished
            .iter()
            .map(|listed| pb::Finished {
                at: Some(of_attempt_ref(listed.at)),
                ran_by: listed.ran_by.0,
            })
            .collect(),
    }
}

pub(super) fn verdict(place: Place, read: i32) -> Result<Verdict, ConvertError> {
    match pb::Verdict::try_from(read) {
        Ok(pb::Verdict::Succeeded) => Ok(Verdict::Succeeded),
        Ok(pb::Verdict::Failed) => Ok(Verdict::Failed),
        Ok(pb::Verdict::FailedForGood) => Ok(Verdict::FailedForGood),
        Ok(pb::Verdict::TimedOut) => Ok(Verdict::TimedOut),
        Ok(pb::Verdict::Stopped) => Ok(Verdict::Stopped),
        Ok(pb::Verdict::HandedBack) => Ok(Verdict::HandedBack),
        Ok(pb::Verdict::Unspecified) | Err(_) => Err(place.cannot_be(read)),
    }
}

pub(super) fn of_verdict(verdict: Verdict) -> pb::Verdict {
    match verdict {
        Verdict::Succeeded => pb::Verdict::Succeeded,
        Verdict::Failed => pb::Verdict::Failed,
        Verdict::FailedForGood => pb::Verdict::FailedForGood,
        Verdict::TimedOut => pb::Verdict::TimedOut,
        Verdict::Stopped => pb::Verdict::Stopped,
        Verdict::HandedBack => pb::Verdict::HandedBack,
    }
}

pub(super) fn decline(place: Place, read: i32) -> Result<Decline, ConvertError> {
    match pb::Decline::try_from(read) {
        Ok(pb::Decline::Busy) => Ok(Decline::Busy),
        // To the master both mean: not this one, and asking again at once does not help.
        Ok(pb::Decline::Cannot | pb::Decline::StaleEpoch | pb::Decline::Unspecified) => {
            Ok(Decline::Cannot)
        }
        Ok(pb::Decline::OldAttempt) => Ok(Decline::OldAttempt),
        Err(_) => Err(place.cannot_be(read)),
    }
}

pub(super) fn of_decline(decline: Decline) -> pb::Decline {
    match decline {
        Decline::Busy => pb::Decline::Busy,
        Decline::Cannot => pb::Decline::Cannot,
        Decline::OldAttempt => pb::Decline::OldAttempt,
    }
}

/// `None`: there is no refusal.
pub(super) fn refusal(place: Place, read: i32) -> Result<Option<HelloRefusal>, ConvertError> {
    match pb::Refusal::try_from(read) {
        Ok(pb::Refusal::Unspecified) => Ok(None),
        Ok(pb::Refusal::NameInUse) => Ok(Some(HelloRefusal::NameInUse)),
        Ok(pb::Refusal::Replaced) => Ok(Some(HelloRefusal::Replaced)),
        Err(_) => Err(place.cannot_be(read)),
    }
}

pub(super) fn of_refusal(refusal: HelloRefusal) -> pb::Refusal {
    match refusal {
        HelloRefusal::NameInUse => pb::Refusal::NameInUse,
        HelloRefusal::Replaced => pb::Refusal::Replaced,
    }
}

/// `None`: nothing that lets an outcome be dropped.
pub(super) fn ack_verdict(place: Place, read: i32) -> Result<Option<AckVerdict>, ConvertError> {
    match pb::AckVerdict::try_from(read) {
        Ok(pb::AckVerdict::Unspecified) => Ok(None),
        Ok(pb::AckVerdict::Committed) => Ok(Some(AckVerdict::Committed)),
        Ok(pb::AckVerdict::Superseded) => Ok(Some(AckVerdict::Superseded)),
        Err(_) => Err(place.cannot_be(read)),
    }
}

pub(super) fn of_ack_verdict(verdict: AckVerdict) -> pb::AckVerdict {
    match verdict {
        AckVerdict::Committed => pb::AckVerdict::Committed,
        AckVerdict::Superseded => pb::AckVerdict::Superseded,
    }
}

pub(super) fn stop_reason(place: Place, read: i32) -> Result<StopReason, ConvertError> {
    match pb::StopReason::try_from(read) {
        Ok(pb::StopReason::Cancelled) => Ok(StopReason::Cancelled),
        Ok(pb::StopReason::Superseded | pb::StopReason::Unspecified) => Ok(StopReason::Superseded),
        Err(_) => Err(place.cannot_be(read)),
    }
}

pub(super) fn of_stop_reason(reason: StopReason) -> pb::StopReason {
    match reason {
        StopReason::Cancelled => pb::StopReason::Cancelled,
        StopReason::Superseded => pb::StopReason::Superseded,
    }
}
