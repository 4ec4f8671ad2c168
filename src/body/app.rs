//! The body of an app's answer, whichever way it comes.

use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::tee::Reader;
use super::{Arriving, BoxError};

/// What an app answered with.
pub enum AppBody {
    /// As it comes.
    Arriving(Arriving),
    /// As it comes, and is kept on the way.
    Kept(Box<Reader>),
    /// As it was kept before.
    Whole(Bytes),
}

impl AppBody {
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self {
            Self::Arriving(arriving) => arriving.poll_frame(cx),
            Self::Kept(reader) => reader.poll_frame(cx),
            Self::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
            }
        }
    }

    /// Nothing follows, for certain.
    #[must_use]
    pub fn is_end_stream(&self) -> bool {
        match self {
            Self::Arriving(arriving) => arriving.is_end_stream(),
            Self::Kept(reader) => reader.is_end_stream(),
            Self::Whole(bytes) => bytes.is_empty(),
        }
    }

    /// How many bytes follow.
    #[must_use]
    pub fn size_hint(&self) -> SizeHint {
        match self {
            Self::Arriving(arriving) => arriving.size_hint(),
            Self::Kept(reader) => reader.size_hint(),
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
        }
    }
}
