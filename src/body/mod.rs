//! Streams: the one body type of requests and responses.
//!
//! A body here never runs a codec for longer than a hand-over costs, never holds more than its
//! bound, and never ends early looking complete: what fails after the head is an error frame, which
//! aborts the stream.

mod app;
mod arriving;
mod encode;
mod gather;
mod guard;
mod lease;
mod ledger;
mod messages;
mod request;
mod tee;
mod wire;

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;

pub use app::AppBody;
pub use arriving::Arriving;
pub use encode::{EncodeBody, EncodeSettings, Keep};
pub use gather::{Budget, Gathered, gather};
pub use guard::Guarded;
pub use lease::{Lease, Load};
pub use ledger::{EndedBy, Ledger};
pub use messages::{Feed, Messages, Way, Workshop};
pub use request::{RequestBody, RequestFault, RequestLimits};
pub use tee::{Keeper, Outcome, Reader, tee};
pub use wire::{Hints, Wire};

/// Why a body ended early.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The one body type.
#[derive(Default)]
pub enum Body {
    /// No bytes, no trailers.
    #[default]
    Empty,
    /// All of it at once.
    Full(Bytes),
    /// As it comes from the peer.
    Incoming(Incoming),
    /// What a client sends, within the limits of its route.
    Request(Box<RequestBody>),
    /// What a client sends of a call, message by message.
    Messages(Box<Messages>),
    /// What a client gets, with the record of its exchange.
    Guarded(Box<Guarded>),
}

/// Where the bytes of a guarded body come from.
#[derive(Default)]
pub enum Source {
    /// Nowhere.
    #[default]
    Empty,
    /// Coded bytes, all of them.
    Ready(Bytes),
    /// The app's own bytes.
    Plain(Plain),
    /// The app's answer through an encoder.
    Encoded(Box<EncodeBody>),
    /// The app's messages.
    Messages(Box<Messages>),
}

/// What was held of the app's answer, then the rest of it as it comes, then its trailers.
#[derive(Default)]
pub struct Plain {
    /// Read already.
    pub held: std::vec::IntoIter<Bytes>,
    /// Absent: everything was read.
    pub rest: Option<AppBody>,
    /// Only where everything was read.
    pub trailers: Option<HeaderMap>,
}

impl Body {
    /// The record that travels in it, as far as it is written.
    #[must_use]
    pub fn ledger(&self) -> Option<&Ledger> {
        match self {
            Self::Guarded(guarded) => Some(guarded.ledger()),
            _ => None,
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut *self {
            Self::Empty => Poll::Ready(None),
            Self::Full(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Self::Empty;
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
            Self::Incoming(incoming) => Pin::new(incoming).poll_frame(cx).map_err(Into::into),
            Self::Request(request) => request.poll_frame(cx),
            Self::Messages(messages) => messages.poll_frame(cx, None),
            Self::Guarded(guarded) => guarded.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Full(bytes) => bytes.is_empty(),
            Self::Incoming(incoming) => incoming.is_end_stream(),
            Self::Request(request) => request.is_end_stream(),
            Self::Messages(messages) => messages.is_end_stream(),
            Self::Guarded(guarded) => guarded.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Incoming(incoming) => incoming.size_hint(),
            Self::Request(request) => request.size_hint(),
            Self::Messages(_) => SizeHint::default(),
            Self::Guarded(guarded) => guarded.size_hint(),
        }
    }
}

impl Source {
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        ledger: &mut Ledger,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self {
            Self::Empty => Poll::Ready(None),
            Self::Ready(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Self::Empty;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Self::Plain(plain) => {
                let polled = std::task::ready!(plain.poll_frame(cx));
                if let Some(Ok(frame)) = &polled {
                    ledger.plain(frame.data_ref().map_or(0, Bytes::len));
                }
                Poll::Ready(polled)
            }
            Self::Encoded(encode) => encode.poll_frame(cx, ledger),
            Self::Messages(messages) => messages.poll_frame(cx, Some(ledger)),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Ready(bytes) => bytes.is_empty(),
            Self::Plain(plain) => plain.is_end_stream(),
            Self::Encoded(_) => false,
            Self::Messages(messages) => messages.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Ready(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Plain(plain) => plain.size_hint(),
            Self::Encoded(_) | Self::Messages(_) => SizeHint::default(),
        }
    }
}

impl Plain {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(bytes) = self.held.next() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        match &mut self.rest {
            Some(rest) => rest.poll_frame(cx),
            None => Poll::Ready(
                self.trailers
                    .take()
                    .map(|trailers| Ok(Frame::trailers(trailers))),
            ),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.held.as_slice().is_empty()
            && self.trailers.is_none()
            && self.rest.as_ref().is_none_or(AppBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let held = self
            .held
            .as_slice()
            .iter()
            .map(|bytes| bytes.len() as u64)
            .sum::<u64>();
        match &self.rest {
            // Trailers want chunks over HTTP/1.
            None if self.trailers.is_some() => SizeHint::default(),
            None => SizeHint::with_exact(held),
            Some(rest) => rest
                .size_hint()
                .exact()
                .map_or_else(SizeHint::default, |more| SizeHint::with_exact(held + more)),
        }
    }
}
