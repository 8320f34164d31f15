//! Property 6: A worker never holds more than its slots.

use super::{Checked, Execution, Fate};

/// Checks one start against what already runs by the same incarnation.
pub fn check(start: &Execution, executions: &[Execution], capacity: u16) -> Checked {
    let running =
        executions.iter().filter(|run| run.holder == start.holder && run.fate == Fate::Runs);
    let taken: u32 = running.map(|run| u32::from(run.slots)).sum();
    if taken + u32::from(start.slots) > u32::from(capacity) {
        return Err("a worker runs more than its slots");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::samples::execution;
    use super::*;

    #[test]
    fn a_second_process_in_one_slot_is_seen() {
        let start = execution(Fate::Runs);
        assert_eq!(check(&start, &[], 1), Ok(()));
        assert_eq!(check(&start, &[execution(Fate::Killed)], 1), Ok(()));
        assert!(check(&start, &[execution(Fate::Runs)], 1).is_err());
    }
}
