//! A deadline that costs nothing until something is waited for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Counts from the first wait; the timer behind it is made then, kept, and moved only when it
/// rings, so that waits that end in time never touch it.
#[derive(Debug, Default)]
pub(super) struct Alarm {
    since: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Alarm {
    /// What was waited for came.
    pub(super) fn clear(&mut self) {
        self.since = None;
    }

    /// Begins to count, if it does not yet.
    pub(super) fn begin(&mut self) -> Instant {
        *self.since.get_or_insert_with(Instant::now)
    }

    /// Began to count then.
    pub(super) fn begin_at(&mut self, at: Instant) {
        self.since = Some(at);
    }

    /// Gives the timer's memory back.
    pub(super) fn rest(&mut self) {
        *self = Self::default();
    }

    /// Ready once `patience` has passed; zero is endless.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, patience: Duration) -> Poll<()> {
        if patience.is_zero() {
            return Poll::Pending;
        }
        let due = self.begin() + patience;
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(due)));
        loop {
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if sleep.deadline() >= due {
                return Poll::Ready(());
            }
            // It rang for an earlier wait, which ended in time.
            sleep.as_mut().reset(due);
        }
    }
}
