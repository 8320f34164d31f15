//! Property 4: After epoch e+1 exists, no write of epoch e takes effect; an epoch has one leader; and a worker
//! starts nothing of a term below the highest that its disk knows.

use tenure_core::ids::{Epoch, Term};

use super::Checked;

/// Every term that was taken.
#[derive(Debug, Default)]
pub struct EpochFences {
    newest: Term,
    taken: Vec<Term>,
}

impl EpochFences {
    /// Forgets the history.
    pub fn reset(&mut self) {
        self.newest = Term::default();
        self.taken.clear();
    }

    /// The store gave a term.
    pub fn on_taken(&mut self, term: Term) -> Checked {
        let twice = self.taken.iter().any(|taken| taken.epoch == term.epoch);
        self.taken.push(term);
        if twice {
            return Err("two leaders took one epoch");
        }
        if term.epoch <= self.newest.epoch {
            return Err("an epoch went down");
        }
        self.newest = term;
        Ok(())
    }

    /// A leader write took effect.
    pub fn on_write(&self, term: Term) -> Checked {
        if term.epoch < self.newest.epoch {
            return Err("a write of an old epoch took effect");
        }
        if term != self.newest {
            return Err("a write of a leader took effect that does not hold the epoch");
        }
        Ok(())
    }

    /// A worker starts what this term ordered.
    pub fn on_start(&self, ordered: Epoch, highest: Epoch) -> Checked {
        if ordered < highest {
            return Err("a worker started what an older term ordered than it had seen");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::ids::Incarnation;

    use super::*;

    fn term(epoch: u64, leader: u64) -> Term {
        Term { epoch: Epoch(epoch), leader: Incarnation(leader) }
    }

    #[test]
    fn a_write_of_an_old_epoch_or_of_a_stranger_is_seen() {
        let mut fences = EpochFences::default();
        fences.on_taken(term(1, 7)).expect("the first");
        fences.on_taken(term(2, 8)).expect("the next");
        assert_eq!(fences.on_write(term(2, 8)), Ok(()));
        assert!(fences.on_write(term(1, 7)).is_err());
        assert!(fences.on_write(term(2, 7)).is_err());
    }

    #[test]
    fn an_epoch_taken_twice_is_seen() {
        let mut fences = EpochFences::default();
        fences.on_taken(term(1, 7)).expect("the first");
        assert!(fences.on_taken(term(1, 8)).is_err());
    }

    #[test]
    fn a_start_under_an_old_term_is_seen() {
        assert!(EpochFences::default().on_start(Epoch(1), Epoch(2)).is_err());
    }
}
