//! Where the bytes of a call come from.

use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;

use crate::body::{AppBody, BoxError, RequestBody};

/// The peer's body.
pub enum Feed {
    /// The app's answer.
    App(AppBody),
    /// The client's request.
    Client(Box<RequestBody>),
    /// Nothing more comes.
    Over,
}

impl Feed {
    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self {
            Self::App(app) => app.poll_frame(cx),
            Self::Client(client) => client.poll_frame(cx),
            Self::Over => Poll::Ready(None),
        }
    }

    pub(super) fn is_end_stream(&self) -> bool {
        match self {
            Self::App(app) => app.is_end_stream(),
            Self::Client(client) => client.is_end_stream(),
            Self::Over => true,
        }
    }
}
