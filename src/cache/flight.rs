//! One fetch for one key, one encode for one variant: who comes while it is under way, waits for it.
//!
//! A leader that is dropped without a word (its client left, it panicked) hands the work to one of
//! those who wait. A leader that finds the answer uncacheable lets all go at once, and for a short
//! time nobody waits for that key again. Nobody waits longer than it wants to.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::key::{Selector, Url};

/// What a fetch is for: requests that agree in all of it may share the answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FetchKey {
    /// What is asked for.
    pub url: Url,
    /// By the name of the route.
    pub route: Arc<str>,
    /// What the answer is expected to vary by ([`super::store::Store::expected`]).
    pub selector: Option<Selector>,
    /// A request with Authorization waits only for another such: what comes of it is rarely shared.
    pub authorized: bool,
}

/// The work under way.
#[derive(Debug)]
pub struct Flights<K: Clone + Eq + Hash>(Arc<Mutex<Board<K>>>);

#[derive(Debug)]
struct Board<K: Clone + Eq + Hash> {
    aloft: HashMap<K, VecDeque<oneshot::Sender<Signal<K>>>>,
    /// Until when nobody waits for this key.
    alone: HashMap<K, Instant>,
}

/// What is to be done by who asked.
#[derive(Debug)]
pub enum Join<K: Clone + Eq + Hash> {
    /// Do the work.
    Lead(Lead<K>),
    /// Wait for who does it.
    Wait(Wait<K>),
    /// Do it for yourself only: the last answer could not be shared.
    Alone,
}

/// The duty to do the work and say how it ended; dropping it hands it on.
#[derive(Debug)]
pub struct Lead<K: Clone + Eq + Hash> {
    flights: Flights<K>,
    /// `None` once it was said how it ended.
    key: Option<K>,
}

/// A place in the queue of those who wait; dropping it leaves.
#[derive(Debug)]
pub struct Wait<K: Clone + Eq + Hash>(oneshot::Receiver<Signal<K>>);

/// How waiting ended.
#[derive(Debug)]
pub enum Waited<K: Clone + Eq + Hash> {
    /// The work is done: look for its result.
    Landed,
    /// Who did it left; it is yours.
    Lead(Lead<K>),
    /// Its result cannot be shared, or did not come in time.
    Alone,
}

#[derive(Debug)]
enum Signal<K: Clone + Eq + Hash> {
    Landed,
    Alone,
    Lead(Lead<K>),
}

impl<K: Clone + Eq + Hash> Default for Flights<K> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Board {
            aloft: HashMap::new(),
            alone: HashMap::new(),
        })))
    }
}

impl<K: Clone + Eq + Hash> Clone for Flights<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Clone + Eq + Hash> Flights<K> {
    /// Keys that are remembered as not to be waited for; beyond, further ones are forgotten.
    const MOST_ALONE: usize = 4096;

    /// Leads where nobody does, else waits.
    #[must_use]
    pub fn join(&self, key: &K, now: Instant) -> Join<K> {
        let mut board = self.0.lock();
        if let Some(&until) = board.alone.get(key) {
            if now < until {
                return Join::Alone;
            }
            board.alone.remove(key);
        }
        let Some(waiting) = board.aloft.get_mut(key) else {
            board.aloft.insert(key.clone(), VecDeque::new());
            return Join::Lead(self.lead(key));
        };
        if waiting.len() == waiting.capacity() {
            waiting.retain(|sender| !sender.is_closed());
        }
        let (sender, receiver) = oneshot::channel();
        waiting.push_back(sender);
        Join::Wait(Wait(receiver))
    }

    /// How many different keys are being worked on.
    #[must_use]
    pub fn aloft(&self) -> usize {
        self.0.lock().aloft.len()
    }

    fn lead(&self, key: &K) -> Lead<K> {
        Lead {
            flights: self.clone(),
            key: Some(key.clone()),
        }
    }

    /// The next who waits, or the end of the flight.
    fn next(&self, key: &K) -> Option<oneshot::Sender<Signal<K>>> {
        let mut board = self.0.lock();
        let next = board.aloft.get_mut(key)?.pop_front();
        if next.is_none() {
            board.aloft.remove(key);
        }
        next
    }

    /// Hands the work to the first who is still there.
    fn hand_on(&self, key: &K) {
        while let Some(sender) = self.next(key) {
            match sender.send(Signal::Lead(self.lead(key))) {
                Ok(()) => return,
                // It left; what comes back must not hand on in its turn.
                Err(Signal::Lead(mut lead)) => lead.key = None,
                Err(Signal::Landed | Signal::Alone) => {}
            }
        }
    }

    fn remember_alone(&self, key: K, now: Instant, until: Instant) {
        let mut board = self.0.lock();
        if board.alone.len() >= Self::MOST_ALONE {
            board.alone.retain(|_, &mut until| now < until);
        }
        if board.alone.len() < Self::MOST_ALONE {
            board.alone.insert(key, until);
        }
    }
}

impl<K: Clone + Eq + Hash> Lead<K> {
    /// The result is where all can find it.
    pub fn landed(mut self) {
        self.release(|| Signal::Landed);
    }

    /// The result is nobody else's, or there is none: all go on by themselves.
    pub fn alone(mut self) {
        self.release(|| Signal::Alone);
    }

    /// The same, and nobody waits for this key until then.
    pub fn alone_for(mut self, now: Instant, time: Duration) {
        if let (Some(key), Some(until)) = (self.key.clone(), now.checked_add(time)) {
            self.flights.remember_alone(key, now, until);
        }
        self.release(|| Signal::Alone);
    }

    fn release(&mut self, signal: impl Fn() -> Signal<K>) {
        let Some(key) = self.key.take() else {
            return;
        };
        let waiting = self.flights.0.lock().aloft.remove(&key);
        for sender in waiting.into_iter().flatten() {
            // Who left does not mind.
            let _ = sender.send(signal());
        }
    }
}

impl<K: Clone + Eq + Hash> Drop for Lead<K> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.flights.hand_on(&key);
        }
    }
}

impl<K: Clone + Eq + Hash> Wait<K> {
    /// Waits, at most so long.
    pub async fn ended(self, at_most: Duration) -> Waited<K> {
        match tokio::time::timeout(at_most, self.0).await {
            Ok(Ok(Signal::Landed)) => Waited::Landed,
            Ok(Ok(Signal::Lead(lead))) => Waited::Lead(lead),
            Ok(Ok(Signal::Alone) | Err(_)) | Err(_) => Waited::Alone,
        }
    }
}

#[cfg(test)]
#[path = "flight_tests.rs"]
mod tests;
