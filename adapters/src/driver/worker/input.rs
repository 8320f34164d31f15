//! What reaches the worker's loop.

use std::io;

use tenure_core::event::AgentEvent;
use tenure_core::ids::{AttemptRef, EffectId, SessionId};
use tenure_core::outcome::Verdict;
use tenure_core::spec::Payload;
use tokio::net::TcpStream;

use crate::tcp::connect::Heard;

/// One thing that happened.
#[derive(Debug)]
pub(super) enum Input {
    /// Something that core takes as it is.
    Event(AgentEvent),
    /// A dial came to this.
    Dialed(EffectId, io::Result<TcpStream>),
    /// A connection said something, or ended.
    Heard(SessionId, Heard),
    /// An attempt's process ended.
    Ended { at: AttemptRef, verdict: Verdict, report: Payload },
    /// The operator wants the worker to end.
    Drain,
}
