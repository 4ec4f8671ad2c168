//! A body as it comes from a peer. Its end counts only if the peer said so, and of its trailers only
//! those pass that may be trailers at all.
//!
//! hyper takes RST_STREAM with NO_ERROR for the end of an HTTP/2 body, wherever it comes. It is one
//! behind END_STREAM only (RFC 9113 section 8.1); before it, the body is cut.

use std::error::Error as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Version;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;

use super::BoxError;
use crate::head::trailers;

/// The bytes of an app or a client.
pub struct Arriving {
    incoming: Incoming,
    /// HTTP/2 can tell an end from a reset; over HTTP/1 hyper does, and only it can.
    tells_ends: bool,
    /// Its trailers are metadata that nobody merges into a head.
    all_trailers: bool,
}

/// A peer reset its stream before the end of a body, and called that no error.
#[derive(Debug, thiserror::Error)]
#[error("the stream was reset before its end")]
pub(super) struct Cut;

impl Arriving {
    /// What comes over this version of HTTP.
    #[must_use]
    pub fn new(incoming: Incoming, version: Version) -> Self {
        Self {
            incoming,
            tells_ends: version == Version::HTTP_2,
            all_trailers: false,
        }
    }

    /// The same, of a call: every name may be among its trailers.
    #[must_use]
    pub fn with_all_trailers(self) -> Self {
        Self {
            all_trailers: true,
            ..self
        }
    }

    /// The next frame; an error also where the peer left without having ended its body.
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut frame = ready!(Pin::new(&mut self.incoming).poll_frame(cx));
        if frame.is_none() && self.tells_ends && !self.incoming.is_end_stream() {
            self.tells_ends = false;
            return Poll::Ready(Some(Err(Cut.into())));
        }
        if let Some(Err(error)) = &frame
            && is_no_error(error)
        {
            return Poll::Ready(Some(Err(Cut.into())));
        }
        if !self.all_trailers
            && let Some(Ok(frame)) = &mut frame
            && let Some(fields) = frame.trailers_mut()
        {
            trailers::retain_allowed(fields);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    /// Nothing follows, for certain.
    #[must_use]
    pub fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    /// How many bytes follow.
    #[must_use]
    pub fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// A reset that calls itself no error, which must not be passed on as such: it is a cut.
fn is_no_error(error: &hyper::Error) -> bool {
    let cause = error
        .source()
        .and_then(|cause| cause.downcast_ref::<h2::Error>());
    cause.and_then(h2::Error::reason) == Some(h2::Reason::NO_ERROR)
}
