//! At most so many connections to all servers of an upstream together, open and idle ones alike.
//!
//! Who finds it full waits in turn: whoever frees something wakes one. A place lives inside the
//! connection's socket, so that it is given back exactly when that is closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Counts the connections of an upstream.
#[derive(Debug)]
pub(super) struct Gate {
    most: usize,
    open: AtomicUsize,
    waiting: AtomicUsize,
    freed: Notify,
}

/// One connection's place.
#[derive(Debug)]
pub(super) struct Place(Arc<Gate>);

/// A stay in the queue.
#[derive(Debug)]
pub(super) struct Turn<'a>(&'a Gate);

impl Gate {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            open: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
        })
    }

    /// A place, if there is one.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Place> {
        self.open
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |open| {
                (open < self.most).then_some(open + 1)
            })
            .ok()
            .map(|_| Place(Arc::clone(self)))
    }

    /// Somebody waits: who comes now goes behind them.
    pub(super) fn is_crowded(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Joins the queue. What is freed from now on wakes somebody.
    pub(super) fn queue(&self) -> Turn<'_> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Turn(self)
    }

    /// A place or a connection became free: the first in the queue looks again.
    pub(super) fn freed(&self) {
        if self.is_crowded() {
            self.freed.notify_one();
        }
    }
}

impl Turn<'_> {
    /// Resolves when something was freed since this was called. Dropped when woken but not
    /// polled, it wakes the next.
    pub(super) fn comes(&self) -> Notified<'_> {
        self.0.freed.notified()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
        self.0.freed();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_freed_place_wakes_the_one_who_waits() {
        let gate = Gate::new(1);
        let first = gate.enter().unwrap();
        assert!(gate.enter().is_none());
        let turn = gate.queue();
        let comes = turn.comes();
        drop(first);
        comes.await;
        assert!(gate.enter().is_some());
        drop(turn);
        assert!(!gate.is_crowded());
    }
}
