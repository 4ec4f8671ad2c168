//! HTTP/2 towards a client.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep};

use super::connection::Accepted;
use super::stream::Stream;
use super::threads::Server;
use crate::body::Body;
use crate::frame::http2::{Forbearance, Frames};
use crate::protocol::grpc::Reset;
use crate::proxy::{Facts, exchange};

/// What a client may send on a stream before we ask for more: its request bodies are passed on as
/// the app takes them.
const STREAM_WINDOW: u32 = 256 * 1024;

/// The same for all its streams together.
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// What hyper holds for a stream that the client does not read.
const SEND_BUFFER: usize = 128 * 1024;

/// The h2 crate answers heads over its limit by itself, without a record; so its limit lies above
/// ours, and the exchange refuses.
const HEAD_SLACK: u32 = 64 * 1024;

/// A client that was told to leave, has nothing under way and is silent is given so long.
const FAREWELL: Duration = Duration::from_secs(1);

/// Serves a connection until either side has had enough.
pub(super) async fn serve(server: &Arc<Server>, accepted: Accepted) {
    let snapshot = server.shared.snapshot.load_full();
    let head = u32::try_from(snapshot.settings.defaults.limits.request_head).unwrap_or(u32::MAX);
    let keep_alive = snapshot.settings.network.keep_alive;
    let facts = Arc::new(Facts::new(
        accepted.listening,
        accepted.client,
        accepted.certificate.as_deref(),
    ));
    let heard = Arc::new(AtomicBool::new(false));
    let flooded = Arc::new(AtomicBool::new(false));
    let io = TokioIo::new(Early {
        bytes: accepted.early,
        inner: accepted.stream,
        heard: Arc::clone(&heard),
        frames: Frames::new(),
        forbearance: Forbearance::new(),
        begun: Instant::now(),
        flooded: Arc::clone(&flooded),
    });
    let service = {
        let (server, facts) = (Arc::clone(server), Arc::clone(&facts));
        hyper::service::service_fn(move |request: Request<Incoming>| {
            let (server, facts) = (Arc::clone(&server), Arc::clone(&facts));
            async move {
                let response: Response<Body> =
                    exchange(&server.shared, &facts, request, None).await;
                // The app reset its stream, which says more than any answer.
                match response.extensions().get::<Reset>() {
                    Some(Reset(reason)) => Err(h2::Error::from(*reason)),
                    None => Ok(response),
                }
            }
        })
    };
    let mut connection = pin!(
        http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(snapshot.settings.network.max_streams)
            .max_header_list_size(head.saturating_add(HEAD_SLACK))
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND_BUFFER)
            .enable_connect_protocol()
            .serve_connection(io, service)
    );
    drop(snapshot);
    let mut draining = server.draining.clone();
    let mut drained = pin!(draining.wait_for(|draining| *draining));
    let mut alarm = pin!(sleep(keep_alive));
    let mut told = false;
    let ended = poll_fn(|cx| {
        if let Poll::Ready(result) = connection.as_mut().poll(cx) {
            return Poll::Ready(result);
        }
        let mut leave = !told && drained.as_mut().poll(cx).is_ready();
        while !leave && alarm.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            let quiet = facts.quiet_since().map(Instant::from_std);
            if told {
                // Who lives has answered the PING of a graceful end, however slowly it reads.
                if quiet.is_some() && !heard.load(Ordering::Relaxed) {
                    return Poll::Ready(Ok(()));
                }
                alarm.as_mut().reset(now + FAREWELL);
                continue;
            }
            let until = quiet.unwrap_or(now) + keep_alive;
            leave = until <= now;
            alarm.as_mut().reset(until);
        }
        if leave {
            told = true;
            heard.store(false, Ordering::Relaxed);
            alarm.as_mut().reset(Instant::now() + FAREWELL);
            connection.as_mut().graceful_shutdown();
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await;
    if flooded.load(Ordering::Relaxed) {
        server.shared.metrics.refused("flood").inc();
        tracing::info!(client = ?facts.client.address, "cut off: it sends HTTP/2 frames for nothing");
    } else if let Err(error) = ended {
        tracing::debug!(%error, client = ?facts.client.address, "connection broke off");
    }
}

/// A stream whose first bytes were read already, that notes when more come, and that fails once
/// frames came for nothing for too long.
struct Early {
    bytes: Bytes,
    inner: Stream,
    heard: Arc<AtomicBool>,
    frames: Frames,
    forbearance: Forbearance,
    begun: Instant,
    flooded: Arc<AtomicBool>,
}

impl Early {
    /// These bytes came.
    fn came(&mut self, bytes: &[u8]) -> io::Result<()> {
        let cost = self.frames.cost(bytes);
        if cost == 0 || self.forbearance.bears(cost, self.begun.elapsed()) {
            return Ok(());
        }
        self.flooded.store(true, Ordering::Relaxed);
        Err(io::Error::other("too many HTTP/2 frames for nothing"))
    }
}

impl AsyncRead for Early {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if self.bytes.is_empty() {
            ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
            if buffer.filled().len() > before {
                self.heard.store(true, Ordering::Relaxed);
            }
        } else {
            let size = self.bytes.len().min(buffer.remaining());
            buffer.put_slice(&self.bytes[..size]);
            self.bytes.advance(size);
        }
        Poll::Ready(self.came(&buffer.filled()[before..]))
    }
}

impl AsyncWrite for Early {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
