//! Waits a moment for the whole of an answer, so that it can be coded in one shot.
//!
//! What is held for that is bounded per answer and, by a [`Budget`], in all: until the last byte of
//! it has left, which with a slow client is long after the answer was coded.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;

use super::{AppBody, BoxError};

/// What there is of an answer after the wait.
#[derive(Debug, Default)]
pub struct Gathered {
    /// The bytes so far.
    pub chunks: Vec<Bytes>,
    /// How many that are.
    pub size: usize,
    /// Nothing follows.
    pub complete: bool,
    /// What followed the last byte.
    pub trailers: Option<HeaderMap>,
}

/// Bytes that all answers together may hold in memory.
#[derive(Debug, Clone)]
pub struct Budget {
    left: Arc<AtomicU64>,
}

/// Bytes that the budget gets back when the last handle to them is gone.
struct Held {
    bytes: Bytes,
    budget: Budget,
    taken: u64,
}

/// Collects up to `most` bytes of `incoming`, for at most `wait` from now.
///
/// Returns early when the budget is spent: what was gathered then streams.
///
/// # Errors
/// The app's body failed; nothing was sent yet, so the client can be told so.
pub async fn gather(
    incoming: &mut AppBody,
    most: usize,
    wait: Duration,
    budget: &Budget,
) -> Result<Gathered, BoxError> {
    let mut gathered = Gathered::default();
    // The first pass takes what is there already: no timer is armed for it.
    let first = poll_fn(|cx| Poll::Ready(gathered.take(incoming, most, budget, cx))).await;
    if let Poll::Ready(taken) = first {
        return taken.map(|()| gathered);
    }
    let mut deadline = pin!(tokio::time::sleep(wait));
    poll_fn(|cx| {
        if let Poll::Ready(result) = gathered.take(incoming, most, budget, cx) {
            return Poll::Ready(result);
        }
        deadline.as_mut().poll(cx).map(Ok)
    })
    .await?;
    Ok(gathered)
}

impl Gathered {
    /// Reads until the end, the bound, the budget or a pause (`Pending`).
    fn take(
        &mut self,
        incoming: &mut AppBody,
        most: usize,
        budget: &Budget,
        cx: &mut std::task::Context<'_>,
    ) -> Poll<Result<(), BoxError>> {
        while self.size <= most {
            let frame = match std::task::ready!(incoming.poll_frame(cx)) {
                None => {
                    self.complete = true;
                    return Poll::Ready(Ok(()));
                }
                Some(Err(error)) => return Poll::Ready(Err(error)),
                Some(Ok(frame)) => frame,
            };
            match frame.into_data() {
                Ok(bytes) => {
                    self.size += bytes.len();
                    let (bytes, within) = budget.hold(bytes);
                    self.chunks.push(bytes);
                    if !within {
                        return Poll::Ready(Ok(()));
                    }
                }
                Err(frame) => self.trailers = frame.into_trailers().ok(),
            }
            if incoming.is_end_stream() {
                self.complete = true;
                return Poll::Ready(Ok(()));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl Budget {
    /// So many bytes for all.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        Self {
            left: Arc::new(AtomicU64::new(bytes)),
        }
    }

    /// Counts these bytes for as long as somebody holds them; false: they were not to be had, and
    /// are not counted.
    #[must_use]
    pub fn hold(&self, bytes: Bytes) -> (Bytes, bool) {
        let size = bytes.len() as u64;
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(size)
            });
        match taken {
            Ok(_) => {
                let held = Held {
                    bytes,
                    budget: self.clone(),
                    taken: size,
                };
                (Bytes::from_owner(held), true)
            }
            Err(_) => (bytes, false),
        }
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.left.fetch_add(self.taken, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_counted_until_its_last_byte_is_gone() {
        let budget = Budget::new(10);
        let (bytes, within) = budget.hold(Bytes::from_static(b"1234567"));
        assert!(within && bytes == "1234567");
        let tail = bytes.slice(6..);
        drop(bytes);
        let (more, within) = budget.hold(Bytes::from_static(b"more"));
        assert!(
            !within && more == "more",
            "a byte of the first is still held"
        );
        drop(tail);
        let (again, within) = budget.hold(Bytes::from_static(b"0123456789"));
        assert!(within);
        assert!(!budget.hold(Bytes::from_static(b"1")).1);
        drop(again);
        assert!(budget.hold(Bytes::from_static(b"1")).1);
    }
}
