//! DESIGN.md section 4, "One write per task": while a write for a task is under way, nothing else is written
//! for it by the same leader.

use tenure_core::ids::{EffectId, Incarnation, TaskId};

use super::Checked;

/// The writes under way.
#[derive(Debug, Default)]
pub struct OneWrite {
    under_way: Vec<(Incarnation, EffectId, TaskId)>,
}

impl OneWrite {
    /// Forgets the history.
    pub fn reset(&mut self) {
        self.under_way.clear();
    }

    /// A leader orders a write of a task.
    pub fn on_order(&mut self, master: Incarnation, effect: EffectId, task: TaskId) -> Checked {
        let another = self.under_way.iter().any(|(by, _, of)| *by == master && *of == task);
        self.under_way.push((master, effect, task));
        if another { Err("two writes of one task are under way") } else { Ok(()) }
    }

    /// A master was answered.
    pub fn on_answer(&mut self, master: Incarnation, effect: EffectId) {
        self.under_way.retain(|(by, under_way, _)| (*by, *under_way) != (master, effect));
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
        one_write.on_answer(me, EffectId(1));
        assert_eq!(one_write.on_order(me, EffectId(3), TaskId(1)), Ok(()));
        assert!(one_write.on_order(me, EffectId(4), TaskId(1)).is_err());
    }
}
