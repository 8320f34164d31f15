//! docs/fencing.md, "One write per task": while a write for a task is under way, nothing else is written
//! for it by the same leader; and after one whose answer is unknown the row is read before the next.

use tenure_core::ids::{EffectId, Incarnation, TaskId};

use super::Checked;

/// The writes under way.
#[derive(Debug, Default)]
pub struct OneWrite {
    under_way: Vec<(Incarnation, EffectId, TaskId)>,
    /// Written with an unknown answer, and not read since.
    unknown: Vec<(Incarnation, TaskId)>,
}

impl OneWrite {
    /// Forgets the history.
    pub fn reset(&mut self) {
        self.under_way.clear();
        self.unknown.clear();
    }

    /// A leader orders a write of a task.
    pub fn on_order(&mut self, master: Incarnation, effect: EffectId, task: TaskId) -> Checked {
        let another = self.under_way.iter().any(|(by, _, of)| *by == master && *of == task);
        self.under_way.push((master, effect, task));
        if another {
            return Err("two writes of one task are under way");
        }
        if self.unknown.contains(&(master, task)) {
            return Err("a task was written again after an unknown answer, without reading it");
        }
        Ok(())
    }

    /// A master reads one row; or all of them, at the beginning of a term: what it ordered in the one before
    /// is fenced off by it.
    pub fn on_read(&mut self, master: Incarnation, task: Option<TaskId>) {
        if task.is_none() {
            self.under_way.retain(|(by, _, _)| *by != master);
        }
        self.unknown.retain(|(by, of)| *by != master || task.is_some_and(|task| task != *of));
    }

    /// A master was answered.
    pub fn on_answer(&mut self, master: Incarnation, effect: EffectId, unknown: bool) {
        let known = self.under_way.iter().position(|(by, of, _)| (*by, *of) == (master, effect));
        if let Some(place) = known {
            let (_, _, task) = self.under_way.swap_remove(place);
            if unknown {
                self.unknown.push((master, task));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_write_before_the_answer_is_seen() {
        let mut one_write = OneWrite::default();
        let me = Incarnation(1);
        assert_eq!(one_write.on_order(me, EffectId(1), TaskId(1)), Ok(()));
        assert_eq!(one_write.on_order(me, EffectId(2), TaskId(2)), Ok(()));
        one_write.on_answer(me, EffectId(1), false);
        assert_eq!(one_write.on_order(me, EffectId(3), TaskId(1)), Ok(()));
        assert!(one_write.on_order(me, EffectId(4), TaskId(1)).is_err());
    }
    #[test]
    fn a_write_after_an_unknown_one_without_a_look_is_seen() {
        let mut one_write = OneWrite::default();
        let (me, task) = (Incarnation(1), TaskId(1));
        one_write.on_order(me, EffectId(1), task).expect("the first");
        one_write.on_answer(me, EffectId(1), true);
        assert!(one_write.on_order(me, EffectId(2), task).is_err());
        one_write.on_answer(me, EffectId(2), true);
        one_write.on_read(me, Some(task));
        assert_eq!(one_write.on_order(me, EffectId(3), task), Ok(()));
    }
}
