//! What running attempts say of themselves, as their workers' sessions heard it last. Kept in memory only.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenure_core::ids::{AttemptRef, SessionId};
use tenure_core::message::ToMaster;

use crate::convert::Progress;

/// The latest progress by attempt, with the session that told it.
#[derive(Debug, Default)]
pub(super) struct Board {
    told: Mutex<HashMap<AttemptRef, (SessionId, Progress)>>,
}

impl Board {
    pub(super) fn of(&self, at: AttemptRef) -> Option<Progress> {
        self.told().get(&at).map(|(_, progress)| progress.clone())
    }

    fn told(&self) -> MutexGuard<'_, HashMap<AttemptRef, (SessionId, Progress)>> {
        // Each change is one call, so a panic elsewhere leaves nothing half done.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One session's part of the board. It holds no more than what the session's last heartbeat runs, and nothing
/// once the session is over.
#[derive(Debug)]
pub(super) struct Part {
    board: Arc<Board>,
    session: SessionId,
    told: BTreeSet<AttemptRef>,
}

impl Part {
    pub(super) fn new(board: Arc<Board>, session: SessionId) -> Part {
        Part { board, session, told: BTreeSet::new() }
    }

    /// Takes what came with this message, and drops what it says is over.
    pub(super) fn on_said(&mut self, said: &ToMaster, news: Vec<(AttemptRef, Progress)>) {
        match said {
            ToMaster::Heartbeat(inventory) if !(news.is_empty() && self.told.is_empty()) => {
                self.on_beat(&inventory.running, news);
            }
            ToMaster::Finished(outcome) if self.told.remove(&outcome.at) => {
                self.drop_all([outcome.at]);
            }
            _ => {}
        }
    }

    fn on_beat(&mut self, running: &[AttemptRef], news: Vec<(AttemptRef, Progress)>) {
        let running: BTreeSet<AttemptRef> = running.iter().copied().collect();
        let over: Vec<AttemptRef> = self.told.difference(&running).copied().collect();
        self.told.retain(|at| running.contains(at));
        self.drop_all(over);
        let mut told = self.board.told();
        for (at, progress) in news {
            if running.contains(&at) {
                self.told.insert(at);
                told.insert(at, (self.session, progress));
            }
        }
    }

    /// What a newer session of the worker has told stays.
    fn drop_all(&self, over: impl IntoIterator<Item = AttemptRef>) {
        let mut told = self.board.told();
        for at in over {
            if told.get(&at).is_some_and(|(session, _)| *session == self.session) {
                told.remove(&at);
            }
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let told = std::mem::take(&mut self.told);
        self.drop_all(told);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::ids::{Attempt, TaskId};
    use tenure_core::message::Inventory;

    fn attempt(task: u64) -> AttemptRef {
        AttemptRef::new(TaskId(task), Attempt::FIRST)
    }

    fn beat(part: &mut Part, running: &[u64], news: &[(u64, &str)]) {
        let running = running.iter().copied().map(attempt).collect();
        let news = news
            .iter()
            .map(|(task, text)| (attempt(*task), Progress { text: (*text).into(), at_ms: 1 }));
        let said = ToMaster::Heartbeat(Inventory { running, finished: Vec::new() });
        part.on_said(&said, news.collect());
    }

    fn shown(board: &Board, task: u64) -> Option<String> {
        board.of(attempt(task)).map(|progress| progress.text.to_string())
    }

    #[test]
    fn it_stays_while_its_attempt_runs_and_is_bounded_by_what_runs() {
        let board = Arc::new(Board::default());
        let mut part = Part::new(Arc::clone(&board), SessionId(1));
        beat(&mut part, &[1, 2], &[(1, "a"), (2, "b"), (3, "not running")]);
        assert_eq!((shown(&board, 1), shown(&board, 3)), (Some("a".into()), None));
        beat(&mut part, &[1], &[]);
        assert_eq!((shown(&board, 1), shown(&board, 2)), (Some("a".into()), None));
        drop(part);
        assert_eq!(shown(&board, 1), None);
        assert!(board.told().is_empty());
    }

    #[test]
    fn an_older_session_does_not_take_a_newer_ones_along() {
        let board = Arc::new(Board::default());
        let mut older = Part::new(Arc::clone(&board), SessionId(1));
        let mut newer = Part::new(Arc::clone(&board), SessionId(2));
        beat(&mut older, &[1], &[(1, "old")]);
        beat(&mut newer, &[1], &[(1, "new")]);
        drop(older);
        assert_eq!(shown(&board, 1), Some("new".into()));
    }
}
