//! What is still to come, earliest first; what was planned first comes first at the same time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A heap of small keys; the things themselves stay where they were put until their time.
#[derive(Debug)]
pub(crate) struct Heap<T> {
    keys: BinaryHeap<Reverse<(u64, u32)>>,
    things: Vec<Option<T>>,
    free: Vec<u32>,
    seq: u32,
}

impl<T> Heap<T> {
    pub(crate) fn new() -> Heap<T> {
        Heap { keys: BinaryHeap::new(), things: Vec::new(), free: Vec::new(), seq: 0 }
    }

    /// Forgets everything, and keeps the room.
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.things.clear();
        self.free.clear();
        self.seq = 0;
    }

    #[inline]
    pub(crate) fn push(&mut self, at: u64, thing: T) {
        let place = match self.free.pop() {
            Some(place) => {
                self.things[place as usize] = Some(thing);
                place
            }
            None => {
                self.things.push(Some(thing));
                (self.things.len() - 1) as u32
            }
        };
        // Time in 40 bits, order in 24: a history has fewer than 16 million events (livelock ends it long before).
        let key = (at << 24) | u64::from(self.seq);
        self.seq += 1;
        self.keys.push(Reverse((key, place)));
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(u64, T)> {
        let Reverse((key, place)) = self.keys.pop()?;
        let thing = self.things[place as usize].take().expect("each key has its thing");
        self.free.push(place);
        Some((key >> 24, thing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_by_time_then_in_the_order_of_planning() {
        let mut heap = Heap::new();
        for (at, name) in [(5, 'c'), (3, 'a'), (5, 'd'), (4, 'b')] {
            heap.push(at, name);
        }
        let mut seen = Vec::new();
        while let Some((at, name)) = heap.pop() {
            seen.push((at, name));
        }
        assert_eq!(seen, [(3, 'a'), (4, 'b'), (5, 'c'), (5, 'd')]);
    }
}
