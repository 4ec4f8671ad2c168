//! The request body while hyper holds it: watched, so that a client's fault is told apart from a
//! server's, a slow upload is no slow answer, and what nobody took can be sent again.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::body::{Body, BoxError};

/// A request body under way.
pub(super) struct Sending {
    body: Body,
    watch: Option<Arc<Watch>>,
}

/// What is known of a body that comes piece by piece.
pub(super) struct Watch(Mutex<State>);

struct State {
    /// When the last piece went on, or the end.
    last: Instant,
    /// The client owes the next piece.
    awaited: bool,
    /// A frame left: the body cannot be sent again.
    taken: bool,
    ended: bool,
    fault: Option<BoxError>,
    waker: Option<Waker>,
    /// What hyper dropped untouched.
    back: Option<Body>,
}

/// The body of a further attempt.
pub(super) enum Again {
    Empty,
    Full(Bytes),
    Watched(Arc<Watch>),
}

/// What hyper is told, and over HTTP/2 tells the server; the fault itself stays in the watch.
#[derive(Debug, thiserror::Error)]
#[error("the request body failed")]
pub(super) struct Failed(#[source] h2::Error);

impl Sending {
    /// Whole bodies need no watch.
    pub(super) fn new(body: Body) -> Self {
        let watch = match &body {
            Body::Empty | Body::Full(_) => None,
            body if body.is_end_stream() => None,
            _ => Some(Arc::new(Watch(Mutex::new(State {
                last: Instant::now(),
                awaited: false,
                taken: false,
                ended: false,
                fault: None,
                waker: None,
                back: None,
            })))),
        };
        Self { body, watch }
    }

    pub(super) fn watch(&self) -> Option<Arc<Watch>> {
        self.watch.clone()
    }

    /// What is needed to send it once more.
    pub(super) fn again(&self) -> Again {
        match (&self.body, &self.watch) {
            (_, Some(watch)) => Again::Watched(Arc::clone(watch)),
            (Body::Full(bytes), None) => Again::Full(bytes.clone()),
            _ => Again::Empty,
        }
    }

    /// It was never handed to a connection.
    pub(super) fn into_body(mut self) -> Body {
        self.watch = None;
        std::mem::take(&mut self.body)
    }
}

impl Again {
    /// The body, if all of it is still there.
    pub(super) fn into_body(self) -> Option<Body> {
        match self {
            Self::Empty => Some(Body::Empty),
            Self::Full(bytes) => Some(Body::Full(bytes)),
            Self::Watched(watch) => watch.0.lock().back.take(),
        }
    }
}

impl Watch {
    /// The client's fault, once there is one.
    pub(super) fn poll_fault(&self, cx: &Context<'_>) -> Poll<BoxError> {
        let mut state = self.0.lock();
        if let Some(fault) = state.fault.take() {
            return Poll::Ready(fault);
        }
        if !state
            .waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            state.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// What [`Self::poll_fault`] would give now.
    pub(super) fn fault(&self) -> Option<BoxError> {
        self.0.lock().fault.take()
    }

    /// When an answer that may take `limit` is late: counted from the last piece that went on, and
    /// not at all while the client owes one.
    pub(super) fn deadline(&self, limit: Duration) -> Instant {
        let state = self.0.lock();
        let since = if state.awaited {
            Instant::now()
        } else {
            state.last
        };
        since + limit
    }
}

impl State {
    fn saw(&mut self, polled: Poll<Option<Result<(), BoxError>>>) {
        self.awaited = polled.is_pending();
        let Poll::Ready(seen) = polled else { return };
        self.last = Instant::now();
        match seen {
            Some(Ok(())) => self.taken = true,
            None => self.ended = true,
            Some(Err(fault)) => {
                self.taken = true;
                self.fault = Some(fault);
                if let Some(waker) = self.waker.take() {
                    waker.wake();
                }
            }
        }
    }
}

impl HttpBody for Sending {
    type Data = Bytes;
    type Error = Failed;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Failed>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        let (seen, polled) = match polled {
            Poll::Pending => (Poll::Pending, Poll::Pending),
            Poll::Ready(None) => (Poll::Ready(None), Poll::Ready(None)),
            Poll::Ready(Some(Ok(frame))) => {
                (Poll::Ready(Some(Ok(()))), Poll::Ready(Some(Ok(frame))))
            }
            Poll::Ready(Some(Err(fault))) => (
                Poll::Ready(Some(Err(fault))),
                Poll::Ready(Some(Err(Failed(h2::Reason::CANCEL.into())))),
            ),
        };
        if let Some(watch) = &this.watch {
            watch.0.lock().saw(seen);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let Some(watch) = &self.watch else { return };
        let mut state = watch.0.lock();
        if !state.taken {
            let body = std::mem::take(&mut self.body);
            state.back = Some(if state.ended { Body::Empty } else { body });
        }
    }
}
