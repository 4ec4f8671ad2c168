//! The body that a client gets: its bytes, the record of its exchange, and what it occupies.
//!
//! Dropped at its end or before it: then the record is written and everything is given back.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::time::Sleep;

use super::arriving::Cut;
use super::tee::BrokeOff;
use super::{BoxError, EndedBy, Lease, Ledger, Source};
use crate::policy::MessageFault;

/// A response body on its way to a client.
pub struct Guarded {
    source: Source,
    ledger: Box<Ledger>,
    lease: Option<Lease>,
    deadline: Option<Pin<Box<Sleep>>>,
}

/// The exchange took longer than `timeouts.response`.
#[derive(Debug, thiserror::Error)]
#[error("the exchange took longer than timeouts.response")]
pub(super) struct Overdue;

impl Guarded {
    /// Sends `source`; `lease` is given back at its end.
    #[must_use]
    pub fn new(
        source: Source,
        ledger: Box<Ledger>,
        lease: Option<Lease>,
        deadline: Option<Pin<Box<Sleep>>>,
    ) -> Self {
        let mut guarded = Self {
            source,
            ledger,
            lease,
            deadline,
        };
        if guarded.source.is_end_stream() {
            guarded.finish();
        }
        guarded
    }

    pub(super) fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = self.source.poll_frame(cx, &mut self.ledger);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                self.ledger.sent(frame.data_ref().map_or(0, Bytes::len));
                if self.is_end_stream() {
                    self.finish();
                }
            }
            Poll::Ready(Some(Err(error))) => {
                let from_app = error.is::<hyper::Error>()
                    || error.is::<Cut>()
                    || error.is::<BrokeOff>()
                    || error.is::<MessageFault>();
                let by = if from_app {
                    EndedBy::Upstream
                } else {
                    EndedBy::Proxy
                };
                self.ledger.broken(by, error.to_string());
                self.source = Source::Empty;
                self.lease = None;
            }
            Poll::Ready(None) => self.finish(),
            Poll::Pending => {
                if let Some(deadline) = &mut self.deadline
                    && deadline.as_mut().poll(cx).is_ready()
                {
                    self.source = Source::Empty;
                    self.lease = None;
                    self.ledger.broken(EndedBy::Proxy, Overdue.to_string());
                    return Poll::Ready(Some(Err(Overdue.into())));
                }
            }
        }
        polled
    }

    pub(super) fn is_end_stream(&self) -> bool {
        self.source.is_end_stream()
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        self.source.size_hint()
    }

    /// The last byte was handed over.
    fn finish(&mut self) {
        self.lease = None;
        self.ledger.complete();
    }
}
