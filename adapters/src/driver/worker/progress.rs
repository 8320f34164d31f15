//! What running attempts say of themselves, until a heartbeat takes it along.
//!
//! Nobody is woken by it: the news wait here, and who beats more rarely tells them more rarely.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tenure_core::ids::AttemptRef;
use tenure_proto::Limits;
use tenure_proto::messages as pb;

use super::wall_ms;
use crate::convert::{Progress, write_progress};
use crate::process::result::read_progress;

/// A progress file is looked at this often.
const LOOK: Duration = Duration::from_secs(1);

/// Progress in one heartbeat, in bytes, so that it delays none. The rest goes with the next.
const MOST: usize = 32 << 10;

/// What one entry costs beside its text: numbers, tags and lengths.
const ENTRY_COST: usize = 40;

/// The newest progress of each running attempt.
#[derive(Debug, Clone)]
pub(super) struct Board {
    state: Arc<Mutex<State>>,
    most: usize,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<AttemptRef, Entry>,
    /// Not told in this session, longest waiting first. Each once; some may have ended meanwhile.
    news: VecDeque<AttemptRef>,
}

#[derive(Debug, Default)]
struct Entry {
    line: Option<String>,
    file: Option<String>,
    shown: Option<Progress>,
    is_news: bool,
}

impl Board {
    pub(super) fn new(limits: Limits) -> Board {
        Board { state: Arc::default(), most: MOST.min(limits.max_frame() as usize / 2) }
    }

    /// The output said this.
    pub(super) fn line(&self, of: AttemptRef, text: String) {
        self.state().change(of, |entry| entry.line = Some(text));
    }

    /// The file says this; it goes before the output.
    fn file(&self, of: AttemptRef, text: Option<String>) {
        self.state().change(of, |entry| entry.file = text);
    }

    /// The attempt is over.
    pub(super) fn remove(&self, of: AttemptRef) {
        self.state().entries.remove(&of);
    }

    /// Another session has begun, which knows nothing yet.
    pub(super) fn tell_all_again(&self) {
        let state = &mut *self.state();
        state.news.clear();
        for (of, entry) in &mut state.entries {
            entry.is_news = entry.shown.is_some();
            if entry.is_news {
                state.news.push_back(*of);
            }
        }
    }

    /// What changed since it was last told, as much as one heartbeat may carry.
    pub(super) fn take_news(&self) -> Vec<pb::Progress> {
        let state = &mut *self.state();
        let (mut taken, mut cost) = (Vec::new(), 0);
        while let Some(of) = state.news.front().copied() {
            if let Some(entry) = state.entries.get_mut(&of).filter(|entry| entry.is_news)
                && let Some(shown) = &entry.shown
            {
                cost += shown.text.len() + ENTRY_COST;
                if cost > self.most {
                    break;
                }
                entry.is_news = false;
                taken.push(write_progress(of, shown));
            }
            state.news.pop_front();
        }
        taken
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves at worst a text untold.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn change(&mut self, of: AttemptRef, change: impl FnOnce(&mut Entry)) {
        let entry = self.entries.entry(of).or_default();
        change(entry);
        let Some(text) = entry.file.as_deref().or(entry.line.as_deref()) else { return };
        if entry.shown.as_ref().is_some_and(|shown| &*shown.text == text) {
            return;
        }
        entry.shown = Some(Progress { text: text.into(), at_ms: wall_ms() });
        if !std::mem::replace(&mut entry.is_news, true) {
            self.news.push_back(of);
        }
    }
}

/// Puts what the file says on the board, for as long as it is polled.
pub(super) async fn watch(path: PathBuf, of: AttemptRef, board: &Board) -> Infallible {
    let mut seen = None;
    loop {
        tokio::time::sleep(LOOK).await;
        let (path, last) = (path.clone(), seen);
        // On a thread that may wait for the disk.
        let looked = tokio::task::spawn_blocking(move || look(&path, last)).await;
        if let Ok(Some((mark, text))) = looked {
            seen = Some(mark);
            board.file(of, text);
        }
    }
}

/// What tells that a file has changed, in place or by another in its place.
type Mark = (SystemTime, u64, u64);

/// What the file says, if it has changed.
fn look(path: &Path, last: Option<Mark>) -> Option<(Mark, Option<String>)> {
    let found = std::fs::symlink_metadata(path).ok()?;
    let mark = (found.modified().ok()?, found.len(), found.ino());
    (last != Some(mark)).then(|| (mark, read_progress(path)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenure_core::ids::{Attempt, TaskId};

    fn attempt(task: u64) -> AttemptRef {
        AttemptRef::new(TaskId(task), Attempt::FIRST)
    }

    fn texts(board: &Board) -> Vec<String> {
        board.take_news().into_iter().map(|said| said.text).collect()
    }

    #[test]
    fn only_the_latest_text_is_told_and_only_once_in_a_session() {
        let board = Board::new(Limits::default());
        board.line(attempt(1), "1/3".into());
        board.line(attempt(1), "2/3".into());
        assert_eq!(texts(&board), ["2/3"]);
        board.line(attempt(1), "2/3".into());
        assert!(texts(&board).is_empty(), "it has not changed");
        board.tell_all_again();
        assert_eq!(texts(&board), ["2/3"], "another session");
        board.line(attempt(1), "3/3".into());
        board.remove(attempt(1));
        assert!(texts(&board).is_empty(), "it is over");
    }

    #[test]
    fn the_file_goes_before_lines() {
        let board = Board::new(Limits::default());
        board.file(attempt(1), Some("file".into()));
        board.line(attempt(1), "line".into());
        assert_eq!(texts(&board), ["file"]);
        board.file(attempt(1), None);
        assert_eq!(texts(&board), ["line"], "the file is empty");
    }

    #[test]
    fn more_than_a_heartbeat_may_carry_goes_with_the_next_in_turn() {
        let board = Board::new(Limits::default());
        let say = |task: u64| board.line(attempt(task), format!("{task:0256}"));
        (1..=200).for_each(say);
        let first = board.take_news();
        assert!((100..150).contains(&first.len()), "{}", first.len());
        board.line(attempt(1), "again".into());
        let second = texts(&board);
        assert_eq!(first.len() + second.len(), 201);
        assert_eq!(second.last().map(String::as_str), Some("again"));
    }

    #[test]
    fn a_file_is_read_when_it_is_new_and_when_another_takes_its_place() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("progress");
        assert_eq!(look(&path, None), None);
        std::fs::write(&path, "1/2").expect("written");
        let (mark, text) = look(&path, None).expect("it is there");
        assert_eq!(text.as_deref(), Some("1/2"));
        assert_eq!(look(&path, Some(mark)), None, "it has not changed");
        let other = dir.path().join("other");
        std::fs::write(&other, "2/2").expect("written");
        std::fs::rename(&other, &path).expect("renamed");
        let (_, text) = look(&path, Some(mark)).expect("it has changed");
        assert_eq!(text.as_deref(), Some("2/2"));
    }
}
