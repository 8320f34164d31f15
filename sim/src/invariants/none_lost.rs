//! Property 1: An acknowledged submission is never lost; the same idempotency key gives the same task.

use tenure_core::ids::TaskId;
use tenure_core::model::task_table::TaskTable;

use super::Checked;

/// What each key's client was told.
#[derive(Debug, Default)]
pub struct NoneLost {
    told: Vec<(u8, TaskId)>,
    stored: Vec<(u8, TaskId)>,
}

impl NoneLost {
    /// Forgets the history.
    pub fn reset(&mut self) {
        self.told.clear();
        self.stored.clear();
    }

    /// The store took a submission of this key as a new task.
    pub fn on_stored(&mut self, key: u8, task: TaskId) -> Checked {
        let before = self.stored.iter().any(|(stored, _)| *stored == key);
        self.stored.push((key, task));
        if before { Err("one idempotency key was stored as two tasks") } else { Ok(()) }
    }

    /// A client was told that its submission is this task.
    pub fn on_told(&mut self, key: u8, task: TaskId) -> Checked {
        if !self.stored.contains(&(key, task)) {
            return Err("a client was told of a task that is not its own");
        }
        match self.told.iter().find(|(told, _)| *told == key) {
            Some((_, before)) if *before != task => Err("one key was answered with two tasks"),
            Some(_) => Ok(()),
            None => {
                self.told.push((key, task));
                Ok(())
            }
        }
    }

    /// At rest: what was acknowledged is there.
    pub fn at_rest(&self, table: &TaskTable) -> Checked {
        let lost = self.told.iter().any(|(_, task)| table.entry(*task).is_none());
        if lost { Err("an acknowledged submission is gone") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_stored_twice_is_seen() {
        let mut none_lost = NoneLost::default();
        assert_eq!(none_lost.on_stored(1, TaskId(1)), Ok(()));
        assert!(none_lost.on_stored(1, TaskId(2)).is_err());
    }

    #[test]
    fn an_answer_that_names_another_task_is_seen() {
        let mut none_lost = NoneLost::default();
        none_lost.on_stored(1, TaskId(1)).expect("the first of its key");
        none_lost.on_stored(2, TaskId(2)).expect("the first of its key");
        assert_eq!(none_lost.on_told(1, TaskId(1)), Ok(()));
        assert_eq!(none_lost.on_told(1, TaskId(1)), Ok(()));
        assert!(none_lost.on_told(1, TaskId(2)).is_err());
    }

    #[test]
    fn an_acknowledged_task_that_is_gone_is_seen() {
        let mut none_lost = NoneLost::default();
        none_lost.on_stored(1, TaskId(1)).expect("the first of its key");
        none_lost.on_told(1, TaskId(1)).expect("its own");
        assert!(none_lost.at_rest(&TaskTable::new()).is_err());
    }
}
