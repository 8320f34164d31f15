//! What running attempts say of themselves: it rides on heartbeats and passes by core.

use std::sync::Arc;

use tenure_core::ids::AttemptRef;
use tenure_proto::messages as pb;

use super::parts::{at, attempt_ref, of_attempt_ref};
use crate::process::result::shorten;

/// How far an attempt is, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The words, at most 256 bytes.
    pub text: Arc<str>,
    /// When its worker found them, milliseconds since 1970 by the worker's clock.
    pub at_ms: u64,
}

/// Takes the progress out of a heartbeat. It is for people, so what cannot be read is left out rather than
/// held against its sender.
#[must_use]
pub fn progress_in(beat: &mut pb::HeartbeatRequest) -> Vec<(AttemptRef, Progress)> {
    let read = |said: pb::Progress| {
        let of = attempt_ref(at("HeartbeatRequest", "progress.at"), said.at).ok()?;
        let at_ms = u64::try_from(said.at_ms).unwrap_or_default();
        Some((of, Progress { text: Arc::from(shorten(&said.text)), at_ms }))
    };
    std::mem::take(&mut beat.progress).into_iter().filter_map(read).collect()
}

/// Writes it for a heartbeat.
#[must_use]
pub fn write_progress(of: AttemptRef, progress: &Progress) -> pb::Progress {
    pb::Progress {
        at: Some(of_attempt_ref(of)),
        text: progress.text.to_string(),
        at_ms: i64::try_from(progress.at_ms).unwrap_or(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::ids::{Attempt, TaskId};

    #[test]
    fn progress_survives_a_heartbeat_and_what_cannot_be_is_left_out() {
        let of = AttemptRef::new(TaskId(7), Attempt::FIRST);
        let progress = Progress { text: "1/2".into(), at_ms: 5 };
        let nobody = pb::Progress { at: None, ..write_progress(of, &progress) };
        let long = pb::Progress { text: "é".repeat(300), ..write_progress(of, &progress) };
        let mut beat = pb::HeartbeatRequest {
            progress: vec![write_progress(of, &progress), nobody, long],
            ..Default::default()
        };
        let read = progress_in(&mut beat);
        assert_eq!(read.len(), 2);
        assert_eq!(read[0], (of, progress));
        assert_eq!(read[1].1.text.len(), 256);
        assert!(beat.progress.is_empty());
    }
}
