//! An app's answer on its way to a client and into the cache at once.
//!
//! A task of its own reads it to its end, so that a slow client holds up nobody who waits for the
//! copy, and a client that leaves does not end the fetch that others wait for. It reads ahead as far
//! as what it reads may be kept: beyond `max_object`, or where all fetches together hold too much,
//! the rest is the client's alone, at its own pace.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::timeout;

use super::{Arriving, BoxError, Budget, Lease};

/// An app that sends nothing for so long, while nobody reads, is given up.
const STALL: Duration = Duration::from_secs(30);

/// What became of a body that was to be kept.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// All of it is here, and no trailers followed.
    Whole(&'a [Bytes]),
    /// It is longer than may be kept, or has trailers.
    Unfit,
}

/// Told once how it ended, unless the app broke off; gives the kept bytes, where they are kept.
pub type Keeper = Box<dyn FnOnce(Outcome<'_>) -> Option<Bytes> + Send>;

/// The app's answer broke off.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the application's answer broke off: {0}")]
pub(super) struct BrokeOff(Arc<str>);

/// The client's end. Dropping it leaves the fetch alone.
pub struct Reader {
    shared: Arc<Mutex<State>>,
    /// Bytes given out.
    offset: usize,
    /// Chunks given out.
    chunk: usize,
    length: Option<u64>,
    /// Where the rest is this reader's alone.
    rest: Option<(Arriving, Lease)>,
    ended: bool,
}

struct State {
    chunks: Vec<Bytes>,
    size: usize,
    budget: Budget,
    stage: Stage,
    waker: Option<Waker>,
}

enum Stage {
    Filling,
    /// Complete, and these are its bytes in the cache.
    Kept(Bytes),
    /// Complete.
    Complete(Option<HeaderMap>),
    /// Too long: to be read on by the client's end.
    Handed(Option<(Arriving, Lease)>),
    Broken(BrokeOff),
}

/// Begins to read `incoming`: at most `most` bytes of it, within `budget`.
#[must_use]
pub fn tee(incoming: Arriving, lease: Lease, most: u64, budget: &Budget, keep: Keeper) -> Reader {
    let shared = Arc::new(Mutex::new(State {
        chunks: Vec::new(),
        size: 0,
        budget: budget.clone(),
        stage: Stage::Filling,
        waker: None,
    }));
    let length = incoming.size_hint().exact();
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    tokio::spawn(fill(incoming, lease, most, keep, Arc::clone(&shared)));
    Reader {
        shared,
        offset: 0,
        chunk: 0,
        length,
        rest: None,
        ended: false,
    }
}

async fn fill(
    mut incoming: Arriving,
    lease: Lease,
    most: usize,
    keep: Keeper,
    shared: Arc<Mutex<State>>,
) {
    let mut trailers = None;
    loop {
        let frame = poll_fn(|cx| incoming.poll_frame(cx));
        let frame = match timeout(STALL, frame).await {
            Ok(frame) => frame,
            Err(_) if Arc::strong_count(&shared) == 1 => return,
            Err(_) => continue,
        };
        match frame {
            None => break,
            Some(Err(error)) => {
                let broken = BrokeOff(error.to_string().into());
                return State::settle(&shared, Stage::Broken(broken));
            }
            Some(Ok(frame)) => match frame.into_data() {
                Err(frame) => trailers = frame.into_trailers().ok(),
                Ok(bytes) => {
                    if !State::add(&shared, bytes, most) {
                        keep(Outcome::Unfit);
                        return State::settle(&shared, Stage::Handed(Some((incoming, lease))));
                    }
                }
            },
        }
    }
    // The server's place is free for the next before anybody hears of the end.
    drop((incoming, lease));
    let chunks = std::mem::take(&mut shared.lock().chunks);
    let kept = keep(if trailers.is_none() {
        Outcome::Whole(&chunks)
    } else {
        Outcome::Unfit
    });
    let mut state = shared.lock();
    state.stage = match kept {
        Some(bytes) => Stage::Kept(bytes),
        None => {
            state.chunks = chunks;
            Stage::Complete(trailers)
        }
    };
    state.wake();
}

impl State {
    /// False once there is more than may be kept.
    fn add(shared: &Mutex<Self>, bytes: Bytes, most: usize) -> bool {
        let mut state = shared.lock();
        state.size += bytes.len();
        let (bytes, held) = state.budget.hold(bytes);
        let within = held && state.size <= most;
        state.chunks.push(bytes);
        state.wake();
        within
    }

    fn settle(shared: &Mutex<Self>, stage: Stage) {
        let mut state = shared.lock();
        state.stage = stage;
        state.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Wakes this task at the next change.
    fn wait(&mut self, cx: &Context<'_>) {
        match &mut self.waker {
            Some(waker) if waker.will_wake(cx.waker()) => {}
            waker => *waker = Some(cx.waker().clone()),
        }
    }
}

impl Reader {
    /// Waits until the body is complete or more than `most` bytes long, at most so long.
    pub async fn settled(&self, most: u64, wait: Duration) {
        let settled = poll_fn(|cx| {
            let mut state = self.shared.lock();
            if matches!(state.stage, Stage::Filling) && state.size as u64 <= most {
                state.wait(cx);
                return Poll::Pending;
            }
            Poll::Ready(())
        });
        // Either way the answer goes on.
        let _ = timeout(wait, settled).await;
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some((incoming, _)) = &mut self.rest {
            let polled = std::task::ready!(incoming.poll_frame(cx));
            self.ended = polled.is_none();
            if let Some(Ok(frame)) = &polled {
                self.offset += frame.data_ref().map_or(0, Bytes::len);
            }
            return Poll::Ready(polled);
        }
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        if let Stage::Kept(whole) = &state.stage {
            let rest = whole.slice(self.offset.min(whole.len())..);
            self.offset = whole.len();
            self.ended = true;
            return Poll::Ready((!rest.is_empty()).then(|| Ok(Frame::data(rest))));
        }
        if let Some(bytes) = state.chunks.get(self.chunk).cloned() {
            if matches!(state.stage, Stage::Complete(_) | Stage::Handed(_)) {
                // Nobody else wants it any more.
                state.chunks[self.chunk] = Bytes::new();
            }
            self.chunk += 1;
            self.offset += bytes.len();
            self.ended =
                matches!(state.stage, Stage::Complete(None)) && self.chunk == state.chunks.len();
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        match &mut state.stage {
            Stage::Filling => {
                state.wait(cx);
                Poll::Pending
            }
            Stage::Complete(trailers) => {
                self.ended = true;
                let trailers = trailers.take();
                Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
            }
            Stage::Broken(broken) => {
                self.ended = true;
                Poll::Ready(Some(Err(broken.clone().into())))
            }
            Stage::Handed(rest) => {
                self.rest = rest.take();
                drop(state);
                if self.rest.is_none() {
                    return Poll::Ready(None);
                }
                self.poll_frame(cx)
            }
            Stage::Kept(_) => Poll::Ready(None),
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.ended
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        let left = self
            .length
            .map(|length| length.saturating_sub(self.offset as u64));
        left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
