//! What is given up when memory is short: S3-FIFO over weights.
//!
//! New things wait in a small queue (a tenth of the weight) and leave from there unless they were
//! asked for again; the others move to the main one, where each use buys a further round. What left
//! the small queue lately is remembered by a fingerprint and comes back into the main one. A stream
//! of things that are asked for once passes through the small queue and touches nothing hot. A use
//! is one relaxed store, so it needs no exclusive lock.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::sync::atomic::{AtomicU8, Ordering};

/// An order of eviction; it holds names and weights, not the things.
#[derive(Debug)]
pub(super) struct Queue<T> {
    known: HashMap<T, Entry>,
    small: VecDeque<(T, u64)>,
    main: VecDeque<(T, u64)>,
    small_weight: usize,
    weight: usize,
    ghosts: Ghosts,
    stamp: u64,
}

#[derive(Debug)]
struct Entry {
    weight: usize,
    used: AtomicU8,
    place: Place,
    /// Tells a place in a queue that counts from one that an earlier entry left behind.
    stamp: u64,
    fingerprint: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Small,
    Main,
}

/// Rounds that uses can buy.
const MOST_USED: u8 = 3;

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self {
            known: HashMap::new(),
            small: VecDeque::new(),
            main: VecDeque::new(),
            small_weight: 0,
            weight: 0,
            ghosts: Ghosts::default(),
            stamp: 0,
        }
    }
}

impl<T: Copy + Eq + Hash> Queue<T> {
    /// Of all that is known.
    pub(super) const fn weight(&self) -> usize {
        self.weight
    }

    pub(super) fn touch(&self, item: &T) {
        if let Some(entry) = self.known.get(item) {
            let used = entry.used.load(Ordering::Relaxed);
            if used < MOST_USED {
                entry.used.store(used + 1, Ordering::Relaxed);
            }
        }
    }

    /// `fingerprint` names what the thing is a copy of, so that it is known when it comes back.
    pub(super) fn insert(&mut self, item: T, weight: usize, fingerprint: u64) {
        self.remove(&item);
        let place = if self.ghosts.take(fingerprint) {
            Place::Main
        } else {
            Place::Small
        };
        let entry = Entry {
            weight,
            used: AtomicU8::new(0),
            place,
            stamp: 0,
            fingerprint,
        };
        self.place(item, entry);
    }

    /// What has this fingerprint was asked for before.
    pub(super) fn welcome(&mut self, fingerprint: u64) {
        self.ghosts.add(fingerprint, self.known.len());
    }

    pub(super) fn reweigh(&mut self, item: &T, weight: usize) {
        if let Some(entry) = self.known.get_mut(item) {
            let before = std::mem::replace(&mut entry.weight, weight);
            self.weight = self.weight - before + weight;
            if entry.place == Place::Small {
                self.small_weight = self.small_weight - before + weight;
            }
        }
    }

    pub(super) fn remove(&mut self, item: &T) {
        if self.take(item).is_some() {
            self.tidy();
        }
    }

    /// The next to go; the caller lets it go.
    pub(super) fn evict(&mut self) -> Option<T> {
        while self.weight > 0 {
            let main_weight = self.weight - self.small_weight;
            let evicted = if self.small_weight * 9 > main_weight {
                self.turn_small()
            } else {
                self.turn_main()
            };
            if evicted.is_some() {
                self.tidy();
                return evicted;
            }
        }
        None
    }

    /// Takes the oldest of the small queue: out, or into the main one.
    fn turn_small(&mut self) -> Option<T> {
        let (item, stamp) = self.small.pop_front()?;
        let used = self.counting(&item, stamp)?;
        let mut entry = self.take(&item)?;
        if used == 0 {
            self.ghosts.add(entry.fingerprint, self.known.len());
            return Some(item);
        }
        entry.place = Place::Main;
        entry.used = AtomicU8::new(0);
        self.place(item, entry);
        None
    }

    /// Takes the oldest of the main queue: out, or a round further.
    fn turn_main(&mut self) -> Option<T> {
        let (item, stamp) = self.main.pop_front()?;
        let used = self.counting(&item, stamp)?;
        let mut entry = self.take(&item)?;
        if used == 0 {
            return Some(item);
        }
        entry.used = AtomicU8::new(used - 1);
        self.place(item, entry);
        None
    }

    /// How often it was used, if this place in a queue is still its own.
    fn counting(&self, item: &T, stamp: u64) -> Option<u8> {
        let entry = self.known.get(item).filter(|entry| entry.stamp == stamp)?;
        Some(entry.used.load(Ordering::Relaxed))
    }

    fn place(&mut self, item: T, mut entry: Entry) {
        self.stamp += 1;
        entry.stamp = self.stamp;
        self.weight += entry.weight;
        match entry.place {
            Place::Small => {
                self.small_weight += entry.weight;
                self.small.push_back((item, self.stamp));
            }
            Place::Main => self.main.push_back((item, self.stamp)),
        }
        self.known.insert(item, entry);
    }

    fn take(&mut self, item: &T) -> Option<Entry> {
        let entry = self.known.remove(item)?;
        self.weight -= entry.weight;
        if entry.place == Place::Small {
            self.small_weight -= entry.weight;
        }
        Some(entry)
    }

    /// Gives back what places left behind and empty tables cost.
    fn tidy(&mut self) {
        let live = self.known.len();
        if self.small.len() + self.main.len() > 2 * live + 1024 {
            let known = &self.known;
            let counts = |(item, stamp): &(T, u64)| {
                known.get(item).is_some_and(|entry| entry.stamp == *stamp)
            };
            self.small.retain(counts);
            self.main.retain(counts);
        }
        let roomy = |capacity: usize, length: usize| capacity > 4 * length + 512;
        if roomy(self.known.capacity(), live) {
            self.known.shrink_to(2 * live);
        }
        for queue in [&mut self.small, &mut self.main] {
            if roomy(queue.capacity(), queue.len()) {
                queue.shrink_to(2 * queue.len());
            }
        }
    }
}

/// Fingerprints of what was given up lately, about as many as things are known.
#[derive(Debug, Default)]
struct Ghosts {
    order: VecDeque<u64>,
    known: HashSet<u64>,
}

impl Ghosts {
    fn add(&mut self, fingerprint: u64, live: usize) {
        if self.known.insert(fingerprint) {
            self.order.push_back(fingerprint);
        }
        let most = live.max(64);
        while self.order.len() > most {
            if let Some(oldest) = self.order.pop_front() {
                self.known.remove(&oldest);
            }
        }
        if self.known.capacity() > 4 * most + 512 {
            self.known.shrink_to(2 * most);
            self.order.shrink_to(2 * most);
        }
    }

    fn take(&mut self, fingerprint: u64) -> bool {
        self.known.remove(&fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_stream_of_things_asked_for_once_leaves_what_is_hot() {
        let mut queue = Queue::default();
        for hot in 0..50_u32 {
            queue.insert(hot, 10, hot.into());
            queue.touch(&hot);
        }
        for cold in 1000..20_000_u32 {
            queue.insert(cold, 10, cold.into());
            queue.touch(&(cold % 50));
            while queue.weight() > 1000 {
                let out = queue.evict().expect("something to give up");
                assert!(out >= 1000, "{out} was hot");
            }
        }
    }

    #[test]
    fn what_comes_back_soon_is_taken_for_good() {
        let mut queue = Queue::default();
        queue.insert(1_u32, 10, 77);
        assert_eq!(queue.evict(), Some(1));
        queue.insert(2, 10, 77);
        queue.insert(3, 10, 78);
        assert_eq!(queue.evict(), Some(3), "2 has a known fingerprint");
    }

    #[test]
    fn removed_things_leave_no_places_behind() {
        let mut queue = Queue::default();
        for n in 0..100_000_u32 {
            queue.insert(n % 10, 10, n.into());
        }
        assert_eq!(queue.weight(), 100);
        assert!(queue.small.len() + queue.main.len() < 2000);
        for n in 0..10 {
            queue.remove(&n);
        }
        assert_eq!((queue.weight(), queue.evict()), (0, None));
    }

    proptest! {
        #[test]
        fn the_weight_is_the_sum_of_what_is_known(
            steps in prop::collection::vec((0..5_u8, 0..20_u32, 1..100_usize), 0..300),
        ) {
            let mut queue = Queue::default();
            let mut model = HashMap::new();
            for (step, item, weight) in steps {
                match step {
                    0 | 1 => {
                        queue.insert(item, weight, item.into());
                        model.insert(item, weight);
                    }
                    2 => queue.touch(&item),
                    3 => {
                        queue.remove(&item);
                        model.remove(&item);
                    }
                    _ => {
                        let out = queue.evict();
                        prop_assert_eq!(out.is_none(), model.is_empty());
                        if let Some(out) = out {
                            prop_assert!(model.remove(&out).is_some());
                        }
                    }
                }
                if let Some(known) = model.get_mut(&item) {
                    *known += 1;
                    queue.reweigh(&item, *known);
                }
                prop_assert_eq!(queue.weight(), model.values().sum::<usize>());
            }
        }
    }
}
