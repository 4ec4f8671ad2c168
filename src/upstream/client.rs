//! The HTTP side of one server: which kind of pool it has, and one exchange on one connection.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri, Version, header};
use hyper::body::Incoming;
use tokio::sync::{MutexGuard, OwnedSemaphorePermit};
use tokio::time::Instant;

use super::error::{ConnectError, SendError};
use super::io::Io;
use super::sending::{Sending, Watch};
use super::{http1, http2};

/// Network threads that have a pool of their own; more than that share.
pub(super) const SLOTS: usize = 64;

/// The number of this thread's pools.
pub(super) fn slot() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SLOT: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SLOTS;
    }
    SLOT.with(|slot| *slot)
}

/// The pool of one server.
pub(super) enum Client {
    Http1(Arc<http1::Pool>),
    Http2(Arc<http2::Pool>),
}

/// A connection, or a stream's place on one.
pub(super) enum Link {
    Http1(http1::Link),
    Http2(http2::Link),
}

/// No response head.
pub(super) struct Unanswered {
    pub(super) error: SendError,
    /// The request, where nothing of it was sent.
    pub(super) unsent: Option<Box<Request<Sending>>>,
}

impl Client {
    /// What this thread keeps. `since`: only what was begun after that, which nothing idle was.
    pub(super) fn take(&self, since: Option<Instant>) -> Option<Link> {
        match self {
            Self::Http1(_) if since.is_some() => None,
            Self::Http1(pool) => pool.take().map(Link::Http1),
            Self::Http2(pool) => pool.take(since).map(Link::Http2),
        }
    }

    /// What any thread keeps: where no further connection may be opened.
    pub(super) fn take_anywhere(&self, since: Option<Instant>) -> Option<Link> {
        match self {
            Self::Http1(_) if since.is_some() => None,
            Self::Http1(pool) => pool.take_anywhere().map(Link::Http1),
            Self::Http2(pool) => pool.take_anywhere(since).map(Link::Http2),
        }
    }

    /// The right to open a connection that others wait for; HTTP/1 needs none.
    pub(super) async fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self {
            Self::Http1(_) => None,
            Self::Http2(pool) => Some(pool.turn().await),
        }
    }

    /// The same, if nobody has it.
    pub(super) fn try_turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self {
            Self::Http1(_) => None,
            Self::Http2(pool) => pool.try_turn(),
        }
    }

    /// Makes room for a connection to another server; false: none is idle.
    pub(super) fn close_one(&self) -> bool {
        match self {
            Self::Http1(pool) => pool.close_one(),
            Self::Http2(pool) => pool.close_one(),
        }
    }

    pub(super) fn close_idle(&self) {
        match self {
            Self::Http1(pool) => pool.close_idle(),
            Self::Http2(pool) => pool.close_idle(),
        }
    }

    pub(super) async fn begin(&self, io: Io) -> Result<Link, ConnectError> {
        match self {
            Self::Http1(pool) => pool.begin(io).await.map(Link::Http1),
            Self::Http2(pool) => pool.begin(io).await.map(Link::Http2),
        }
    }

    /// Writes the head as this protocol wants it: origin-form and Host, or the pseudo-headers
    /// (RFC 9112 section 3.2.1, RFC 9113 section 8.3.1). `server` stands in for a missing authority.
    pub(super) fn address(&self, head: &mut Parts, scheme: Scheme, server: &Authority) {
        match self {
            Self::Http1(_) => {
                head.version = Version::HTTP_11;
                if !head.headers.contains_key(header::HOST) {
                    let host = head.uri.authority().unwrap_or(server).as_str();
                    if let Ok(host) = HeaderValue::from_str(host) {
                        head.headers.insert(header::HOST, host);
                    }
                }
                if head.uri.authority().is_some() {
                    head.uri = Uri::from(path_of(&head.uri));
                }
            }
            Self::Http2(_) => {
                head.version = Version::HTTP_2;
                let host = head.headers.remove(header::HOST);
                let host = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
                let authority = head.uri.authority().cloned().or(host);
                let mut uri = http::uri::Parts::default();
                uri.scheme = Some(scheme);
                uri.authority = Some(authority.unwrap_or_else(|| server.clone()));
                uri.path_and_query = Some(path_of(&head.uri));
                if let Ok(uri) = Uri::from_parts(uri) {
                    head.uri = uri;
                }
            }
        }
    }
}

fn path_of(uri: &Uri) -> PathAndQuery {
    uri.path_and_query()
        .cloned()
        .unwrap_or_else(|| PathAndQuery::from_static("/"))
}

impl Link {
    pub(super) fn is_reused(&self) -> bool {
        match self {
            Self::Http1(link) => link.reused,
            Self::Http2(link) => link.reused,
        }
    }

    /// It is busy, and there may be one more beside it.
    pub(super) fn wants_more(&self) -> bool {
        matches!(self, Self::Http2(link) if link.wants_more)
    }

    /// The server may say that it did not begin with a request.
    pub(super) fn may_be_refused(&self) -> bool {
        matches!(self, Self::Http2(_))
    }

    /// One exchange, up to the response head. Dropped before that, it ends at once: the
    /// connection is closed, or the stream reset with CANCEL.
    pub(super) async fn exchange(
        self,
        request: Request<Sending>,
        limit: Option<Duration>,
    ) -> Result<(Response<Incoming>, Option<OwnedSemaphorePermit>), Unanswered> {
        let watch = request.body().watch();
        match self {
            Self::Http1(mut link) => {
                let sent = link.sender.try_send_request(request);
                let response = head(sent, watch.as_deref(), limit).await?;
                link.leave();
                Ok((response, None))
            }
            Self::Http2(mut link) => {
                let sent = link.sender.try_send_request(request);
                let response = head(sent, watch.as_deref(), limit).await?;
                Ok((response, link.stream))
            }
        }
    }
}

type TrySend = hyper::client::conn::TrySendError<Request<Sending>>;

/// Waits for the response head, for the client's fault, or until it is late.
async fn head(
    sent: impl Future<Output = Result<Response<Incoming>, TrySend>>,
    watch: Option<&Watch>,
    limit: Option<Duration>,
) -> Result<Response<Incoming>, Unanswered> {
    let mut sent = pin!(sent);
    let mut late = pin!(limit.map(tokio::time::sleep));
    poll_fn(|cx| {
        if let Poll::Ready(outcome) = sent.as_mut().poll(cx) {
            return Poll::Ready(outcome.map_err(|error| Unanswered::of(error, watch)));
        }
        if let Some(Poll::Ready(fault)) = watch.map(|watch| watch.poll_fault(cx)) {
            return Poll::Ready(Err(SendError::RequestBody(fault).into()));
        }
        while let Some(mut late) = late.as_mut().as_pin_mut()
            && let Some(limit) = limit
        {
            if late.as_mut().poll(cx).is_pending() {
                break;
            }
            match watch.map(|watch| watch.deadline(limit)) {
                Some(due) if due > Instant::now() => late.as_mut().reset(due),
                _ => return Poll::Ready(Err(SendError::HeadTimeout.into())),
            }
        }
        Poll::Pending
    })
    .await
}

impl Unanswered {
    fn of(mut failed: TrySend, watch: Option<&Watch>) -> Self {
        if let Some(fault) = watch.and_then(Watch::fault) {
            return SendError::RequestBody(fault).into();
        }
        let unsent = failed.take_message().map(Box::new);
        Self {
            error: SendError::of_exchange(failed.into_error()),
            unsent,
        }
    }
}

impl From<SendError> for Unanswered {
    fn from(error: SendError) -> Self {
        Self {
            error,
            unsent: None,
        }
    }
}
