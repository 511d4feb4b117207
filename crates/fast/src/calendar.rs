// SPDX-License-Identifier: Apache-2.0

//! The calendar queue: events in the order of their clock edges, and of one edge in the order in
//! which they were scheduled.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Edges of the near part, a power of two. They cover nearly all events, and the lists fit into the
/// first-level cache.
const NEAR_CYCLES: u64 = 256;

/// An entry of the far part. Its order is reversed, since `BinaryHeap` pops the largest first.
struct FarEvent<E> {
    cycle: u64,
    number: u64,
    event: E,
}

impl<E> Ord for FarEvent<E> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.cycle, other.number).cmp(&(self.cycle, self.number))
    }
}
impl<E> PartialOrd for FarEvent<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> PartialEq for FarEvent<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl<E> Eq for FarEvent<E> {}

/// Lists of events for the next edges, and a heap for all later ones.
pub(crate) struct Calendar<E> {
    /// No event is earlier than this edge.
    begin: u64,
    /// The events of an edge, by edge modulo `NEAR_CYCLES`.
    near: Box<[Vec<E>; NEAR_CYCLES as usize]>,
    /// A bit for each list that is not empty.
    filled: [u64; NEAR_CYCLES as usize / 64],
    count: usize,
    /// Events of the present edge that were returned already.
    consumed: usize,
    far: BinaryHeap<FarEvent<E>>,
    number: u64,
}

impl<E: Copy> Calendar<E> {
    pub(crate) fn new() -> Calendar<E> {
        Calendar {
            begin: 0,
            near: Box::new(std::array::from_fn(|_| Vec::new())),
            filled: [0; NEAR_CYCLES as usize / 64],
            count: 0,
            consumed: 0,
            far: BinaryHeap::new(),
            number: 0,
        }
    }

    /// Schedules an event for an edge. A past edge becomes the present one.
    #[inline]
    pub(crate) fn schedule(&mut self, cycle: u64, event: E) {
        let cycle = cycle.max(self.begin);
        if cycle - self.begin >= NEAR_CYCLES {
            return self.schedule_far(cycle, event);
        }
        let place = (cycle % NEAR_CYCLES) as usize;
        self.near[place].push(event);
        self.filled[place / 64] |= 1 << (place % 64);
        self.count += 1;
    }

    #[cold]
    fn schedule_far(&mut self, cycle: u64, event: E) {
        self.number += 1;
        let number = self.number;
        self.far.push(FarEvent {
            cycle,
            number,
            event,
        });
    }

    /// The edge of the first event of the near part.
    #[inline]
    fn first_near_cycle(&self) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let start = (self.begin % NEAR_CYCLES) as usize;
        let words = self.filled.len();
        // In most cases it is one of the next few edges.
        let bits = self.filled[start / 64] >> (start % 64);
        if bits != 0 {
            return Some(self.begin + u64::from(bits.trailing_zeros()));
        }
        // The first word is searched again last, for the edges before `start`.
        (1..=words).find_map(|n| {
            let word = (start / 64 + n) % words;
            let bits = self.filled[word];
            let place = (word * 64) as u64 + u64::from(bits.trailing_zeros());
            (bits != 0).then(|| self.begin + place.wrapping_sub(start as u64) % NEAR_CYCLES)
        })
    }

    /// The edge of the first event.
    #[inline]
    pub(crate) fn first_cycle(&self) -> Option<u64> {
        let far = self.far.peek().map(|far| far.cycle);
        match (self.first_near_cycle(), far) {
            (Some(near), Some(far)) => Some(near.min(far)),
            (near, far) => near.or(far),
        }
    }

    /// Advances to an edge. There must be no event before it.
    #[inline]
    pub(crate) fn advance_to(&mut self, cycle: u64) {
        if cycle <= self.begin {
            return;
        }
        self.begin = cycle;
        if self
            .far
            .peek()
            .is_some_and(|far| far.cycle - cycle < NEAR_CYCLES)
        {
            self.move_far_events();
        }
    }

    /// Moves far events into the near part. They were scheduled before any event that follows, so
    /// the order of an edge holds.
    #[cold]
    fn move_far_events(&mut self) {
        while let Some(far) = self.far.peek() {
            if far.cycle - self.begin >= NEAR_CYCLES {
                break;
            }
            let far = self.far.pop().expect("it is the first one");
            self.schedule(far.cycle, far.event);
        }
    }

    /// The next event of the present edge.
    #[inline]
    pub(crate) fn next_event(&mut self) -> Option<E> {
        let place = (self.begin % NEAR_CYCLES) as usize;
        let list = &mut self.near[place];
        if let Some(&event) = list.get(self.consumed) {
            self.consumed += 1;
            self.count -= 1;
            return Some(event);
        }
        list.clear();
        self.consumed = 0;
        self.filled[place / 64] &= !(1 << (place % 64));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sim::Random;

    #[test]
    fn calendar_returns_events_by_edge_then_by_scheduling_order() {
        let mut random = Random::new(5);
        let mut calendar = Calendar::new();
        let mut model: Vec<(u64, u32)> = Vec::new();
        let (mut now, mut planned) = (0u64, 0);
        for _ in 0..20_000 {
            for _ in 0..random.below(4) {
                let far = [
                    0,
                    1,
                    7,
                    NEAR_CYCLES - 20,
                    NEAR_CYCLES - 1,
                    NEAR_CYCLES,
                    NEAR_CYCLES + 1,
                    100_000,
                ];
                let most = far[random.below(8) as usize];
                let cycle = now + random.below(1 + most);
                calendar.schedule(cycle, planned);
                model.push((cycle, planned));
                planned += 1;
            }
            let Some(first) = model.iter().map(|event| event.0).min() else {
                assert_eq!(calendar.first_cycle(), None);
                continue;
            };
            assert_eq!(calendar.first_cycle(), Some(first));
            let step = now + random.below(2000);
            now = first.min(step.max(now));
            calendar.advance_to(now);
            if now < first {
                continue;
            }
            while let Some(event) = calendar.next_event() {
                let place = model.iter().position(|e| e.0 == now).unwrap();
                assert_eq!(model.remove(place).1, event);
                if random.below(8) == 0 {
                    calendar.schedule(now, planned);
                    model.push((now, planned));
                    planned += 1;
                }
            }
            assert!(model.iter().all(|event| event.0 > now));
        }
    }
}
