//! `/events`: server-sent events, one after the other, at a steady pace.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Interval, MissedTickBehavior};

use super::data::Dice;

/// How many events, and how far apart.
pub(super) struct Pace {
    pub(super) count: usize,
    pub(super) millis: usize,
}

/// A body of `text/event-stream`: the first event at once, a chunk each.
pub(super) struct Events {
    left: usize,
    number: u64,
    cents: u64,
    dice: Dice,
    interval: Interval,
}

impl Events {
    pub(super) fn new(pace: &Pace) -> Self {
        let period = Duration::from_millis(pace.millis as u64);
        let mut interval = tokio::time::interval(period);
        // A reader that fell behind does not get what it missed in one go.
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            left: pace.count,
            number: 0,
            cents: 10_000,
            dice: Dice::new(5),
            interval,
        }
    }

    fn event(&mut self) -> Bytes {
        self.number += 1;
        // A walk of at most 50 cents a step, down to nothing.
        self.cents = (self.cents + self.dice.next() % 101).saturating_sub(50);
        let Self { number, cents, .. } = *self;
        format!("id: {number}\nevent: tick\ndata: {{\"number\":{number},\"cents\":{cents}}}\n\n")
            .into()
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        ready!(self.interval.poll_tick(cx));
        self.left -= 1;
        Poll::Ready(Some(Ok(Frame::data(self.event()))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }
}
