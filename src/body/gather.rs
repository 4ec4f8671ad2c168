//! Waits a moment for the whole of an answer, so that it can be coded in one shot.
//!
//! What is held for that is bounded per answer and, by a [`Budget`], in all.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body as _;
use hyper::body::Incoming;

use super::BoxError;

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
    hold: Hold,
}

/// Bytes that all answers together may hold while they wait.
#[derive(Debug, Clone)]
pub struct Budget {
    left: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct Hold {
    budget: Option<Budget>,
    bytes: u64,
}

/// Collects up to `most` bytes of `incoming`, for at most `wait` from now.
///
/// Returns early when the budget is spent: what was gathered then streams.
///
/// # Errors
/// The app's body failed; nothing was sent yet, so the client can be told so.
pub async fn gather(
    incoming: &mut Incoming,
    most: usize,
    wait: Duration,
    budget: &Budget,
) -> Result<Gathered, BoxError> {
    let mut gathered = Gathered {
        hold: Hold {
            budget: Some(budget.clone()),
            bytes: 0,
        },
        ..Gathered::default()
    };
    // The first pass takes what is there already: no timer is armed for it.
    let first = poll_fn(|cx| Poll::Ready(gathered.take(incoming, most, cx))).await;
    if let Poll::Ready(taken) = first {
        return taken.map(|()| gathered);
    }
    let mut deadline = pin!(tokio::time::sleep(wait));
    poll_fn(|cx| {
        if let Poll::Ready(result) = gathered.take(incoming, most, cx) {
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
        incoming: &mut Incoming,
        most: usize,
        cx: &mut std::task::Context<'_>,
    ) -> Poll<Result<(), BoxError>> {
        while self.size <= most {
            let frame = match std::task::ready!(std::pin::Pin::new(&mut *incoming).poll_frame(cx)) {
                None => {
                    self.complete = true;
                    return Poll::Ready(Ok(()));
                }
                Some(Err(error)) => return Poll::Ready(Err(error.into())),
                Some(Ok(frame)) => frame,
            };
            match frame.into_data() {
                Ok(bytes) => {
                    self.size += bytes.len();
                    let within = self.hold.grow(bytes.len());
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
}

impl Hold {
    /// Takes `bytes` more; false when they were not to be had.
    fn grow(&mut self, bytes: usize) -> bool {
        let Some(budget) = &self.budget else {
            return false;
        };
        let bytes = bytes as u64;
        let taken = budget
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            });
        if taken.is_ok() {
            self.bytes += bytes;
        }
        taken.is_ok()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.left.fetch_add(self.bytes, Ordering::Relaxed);
        }
    }
}
