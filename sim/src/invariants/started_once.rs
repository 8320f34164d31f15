//! 13. No attempt is started twice; and a start is on the disk before it happens.

use super::{Checked, Execution};

/// Checks one start against every start before it; `given` tells whether the worker's disk knows it.
pub fn check(start: &Execution, executions: &[Execution], given: bool) -> Checked {
    if executions.iter().any(|run| run.at == start.at) {
        return Err("an attempt was started a second time");
    }
    if !given {
        return Err("an attempt was started that the worker's disk does not know");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Fate;
    use super::super::samples::execution;
    use super::*;

    #[test]
    fn a_second_start_and_an_unrecorded_one_are_seen() {
        let start = execution(Fate::Runs);
        assert_eq!(check(&start, &[], true), Ok(()));
        assert!(check(&start, &[execution(Fate::Killed)], true).is_err());
        assert!(check(&start, &[], false).is_err());
    }
}
