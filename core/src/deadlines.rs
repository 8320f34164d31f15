//! Deadlines with their reasons, earliest first.
//!
//! They are lazy: nothing is moved when a deadline is extended. An entry only says when to look
//! again; whoever looks finds the true deadline in its own record and arms it anew if it is later.
//! So a heartbeat costs nothing here, and a worker is looked at once per TTL.

use alloc::collections::BinaryHeap;
use core::cmp::Reverse;

use crate::time::Time;

/// When to look again, and at what.
#[derive(Debug, Clone)]
pub struct Deadlines<R> {
    heap: BinaryHeap<Reverse<(Time, R)>>,
}

impl<R: Ord + Copy> Deadlines<R> {
    /// None.
    #[must_use]
    pub fn new() -> Deadlines<R> {
        Deadlines { heap: BinaryHeap::new() }
    }

    /// Look at this at that time.
    pub fn arm(&mut self, at: Time, reason: R) {
        self.heap.push(Reverse((at, reason)));
    }

    /// The earliest time to look.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// The next that is due, if one is.
    pub fn due(&mut self, now: Time) -> Option<(Time, R)> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry)
    }

    /// Forget all.
    pub fn clear(&mut self) {
        self.heap.clear();
    }
}

impl<R: Ord + Copy> Default for Deadlines<R> {
    fn default() -> Deadlines<R> {
        Deadlines::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_gives_what_has_come_earliest_first() {
        let mut deadlines = Deadlines::new();
        deadlines.arm(Time(30), 'c');
        deadlines.arm(Time(10), 'a');
        deadlines.arm(Time(20), 'b');
        assert_eq!(deadlines.next(), Some(Time(10)));
        assert_eq!(deadlines.due(Time(20)), Some((Time(10), 'a')));
        assert_eq!(deadlines.due(Time(20)), Some((Time(20), 'b')));
        assert_eq!(deadlines.due(Time(20)), None);
    }
}
