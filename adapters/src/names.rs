//! Names of workers and labels as text outside, as numbers inside core.
//!
//! Numbers are given in the order of first sight and mean something only within one process; what is
//! stored or sent is always the text.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use tenure_core::ids::{LabelId, WorkerId};

/// The numbers of all names that this process has seen.
#[derive(Debug, Default)]
pub struct Names {
    workers: RwLock<Interned>,
    labels: RwLock<Interned>,
}

#[derive(Debug, Default)]
struct Interned {
    numbers: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
}

impl Names {
    /// No names yet.
    #[must_use]
    pub fn new() -> Names {
        Names::default()
    }

    /// The number of this worker name.
    pub fn worker(&self, name: &str) -> WorkerId {
        WorkerId(number(&self.workers, name))
    }

    /// The number of this worker name, if it has been seen.
    #[must_use]
    pub fn known_worker(&self, name: &str) -> Option<WorkerId> {
        read(&self.workers).numbers.get(name).copied().map(WorkerId)
    }

    /// The number of this label.
    pub fn label(&self, text: &str) -> LabelId {
        LabelId(number(&self.labels, text))
    }

    /// The worker's name. A number that was never given here reads as core prints it (`w7`).
    #[must_use]
    pub fn worker_name(&self, worker: WorkerId) -> Arc<str> {
        text(&self.workers, worker.0).unwrap_or_else(|| Arc::from(worker.to_string()))
    }

    /// The label's text. A number that was never given here reads as core prints it (`l7`).
    #[must_use]
    pub fn label_text(&self, label: LabelId) -> Arc<str> {
        text(&self.labels, label.0).unwrap_or_else(|| Arc::from(label.to_string()))
    }
}

fn number(table: &RwLock<Interned>, name: &str) -> u32 {
    if let Some(number) = read(table).numbers.get(name) {
        return *number;
    }
    let mut table = table.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(number) = table.numbers.get(name) {
        return *number;
    }
    let number = u32::try_from(table.texts.len()).expect("a process sees under 2^32 names");
    let name: Arc<str> = Arc::from(name);
    table.texts.push(Arc::clone(&name));
    table.numbers.insert(name, number);
    number
}

fn text(table: &RwLock<Interned>, number: u32) -> Option<Arc<str>> {
    read(table).texts.get(usize::try_from(number).ok()?).cloned()
}

fn read(table: &RwLock<Interned>) -> std::sync::RwLockReadGuard<'_, Interned> {
    // A panic of another thread leaves at most a text without a number, which is never looked up.
    table.read().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_name_gives_the_same_number_and_reads_back() {
        let names = Names::new();
        let (one, two) = (names.worker("gpu-1"), names.worker("gpu-2"));
        assert_eq!((one, two), (WorkerId(0), WorkerId(1)));
        assert_eq!(names.worker("gpu-1"), one);
        assert_eq!(&*names.worker_name(two), "gpu-2");
        assert_eq!(names.known_worker("gpu-3"), None);
    }

    #[test]
    fn workers_and_labels_are_counted_apart() {
        let names = Names::new();
        names.worker("a");
        assert_eq!(names.label("big"), LabelId(0));
        assert_eq!(&*names.label_text(LabelId(0)), "big");
    }

    #[test]
    fn threads_that_meet_a_name_at_once_agree_on_its_number() {
        let names = Names::new();
        let numbers: Vec<Vec<WorkerId>> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| (0..100).map(|n| names.worker(&format!("w-{n}"))).collect())
                })
                .collect();
            all.into_iter().map(|thread| thread.join().expect("no thread panics")).collect()
        });
        assert!(numbers.iter().all(|seen| seen == &numbers[0]));
    }
}
