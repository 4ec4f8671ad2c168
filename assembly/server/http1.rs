//! HTTP/1.1 towards a client: hyper behind the strict gate, parked while idle.
//!
//! hyper holds some 17 KiB for a connection that waits for its next request (NUMBERS.md). So a
//! connection that has been idle for a tick gives hyper's state back and keeps its socket and its
//! gate; the next byte makes the state anew.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead as _, AsyncWriteExt as _, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::connection::Accepted;
use super::gate::{Gate, GateHandle, GateLimits, Refused};
use super::stream::Stream;
use super::threads::Server;
use crate::body::Body;
use crate::proxy::{Facts, exchange, refusal_response};

/// How often an idle connection is looked at; idle for one to two of these, it is parked.
const TICK: Duration = Duration::from_millis(250);

/// A peer that does not read our last bytes gets no longer than this.
const LINGER: Duration = Duration::from_secs(2);

type Connection = http1::Connection<TokioIo<Gate<Stream>>, Exchanges>;

/// Serves a connection until either side has had enough.
pub(super) async fn serve(server: &Arc<Server>, accepted: Accepted) {
    let settings = server.shared.snapshot.load_full();
    let limits = GateLimits {
        head: usize::try_from(settings.settings.defaults.limits.request_head).unwrap_or(usize::MAX),
        head_timeout: settings.settings.defaults.timeouts.request_head,
        send_timeout: settings.settings.network.send,
    };
    let keep_alive = settings.settings.network.keep_alive;
    drop(settings);
    let (shared, client, listening) =
        (Arc::clone(&server.shared), accepted.client, Arc::clone(&accepted.listening));
    let refuse = Box::new(move |refused: &Refused| {
        refusal_response(&shared, client, &listening, refused)
    });
    let (mut gate, handle) = Gate::new(accepted.stream, limits, refuse);
    gate.preload(accepted.early);
    let facts = Facts::new(accepted.listening, accepted.client).over(Arc::new(handle.clone()));
    let mut session =
        Session { server: Arc::clone(server), facts: Arc::new(facts), handle, keep_alive };
    while let Some(next) = session.run(gate).await {
        gate = next;
    }
}

struct Session {
    server: Arc<Server>,
    facts: Arc<Facts>,
    handle: GateHandle,
    keep_alive: Duration,
}

/// Why hyper gives a connection back.
enum Outcome {
    /// hyper is done with it: closed, refused, failed or upgraded.
    Done(hyper::Result<()>),
    /// Nothing happens on it.
    Idle,
}

impl Session {
    /// One stretch of activity. The gate comes back when there may be another.
    async fn run(&mut self, gate: Gate<Stream>) -> Option<Gate<Stream>> {
        let exchanges = Exchanges { server: Arc::clone(&self.server), facts: Arc::clone(&self.facts) };
        let mut connection = Box::new(
            http1::Builder::new()
                .timer(hyper_util::rt::TokioTimer::new())
                .header_read_timeout(None)
                .pipeline_flush(true)
                .serve_connection(TokioIo::new(gate), exchanges),
        );
        let outcome = self.drive(&mut connection).await;
        let parts = connection.into_parts();
        let mut gate = parts.io.into_inner();
        match outcome {
            Outcome::Idle => self.park(gate).await,
            Outcome::Done(Ok(())) => {
                let tunnel = self.facts.tunnel.lock().take();
                if let Some(tunnel) = tunnel {
                    tunnel.run(gate, parts.read_buf).await;
                } else {
                    // Here a refusal is written, if there is one.
                    let _ = timeout(LINGER, gate.finish()).await;
                }
                None
            }
            Outcome::Done(Err(error)) => {
                if !error.is_incomplete_message() {
                    tracing::debug!(%error, client = ?self.facts.client.address, "connection broke off");
                }
                gate.inner().reset_on_close();
                None
            }
        }
    }

    /// Polls hyper until it is done, or nothing has happened for a tick.
    async fn drive(&self, connection: &mut Connection) -> Outcome {
        let mut draining = self.server.draining.clone();
        let mut drained = pin!(draining.wait_for(|draining| *draining));
        let mut told = false;
        let mut tick = pin!(sleep(TICK));
        let mut idle_before = false;
        poll_fn(|cx| {
            if let Poll::Ready(result) = connection.poll_without_shutdown(cx) {
                return Poll::Ready(Outcome::Done(result));
            }
            if !told && drained.as_mut().poll(cx).is_ready() {
                told = true;
                Pin::new(&mut *connection).graceful_shutdown();
                cx.waker().wake_by_ref();
            }
            self.poll_idle(tick.as_mut(), &mut idle_before, cx)
        })
        .await
    }

    /// Ready once the connection was idle at two ticks in a row.
    fn poll_idle(
        &self,
        mut tick: Pin<&mut Sleep>,
        idle_before: &mut bool,
        cx: &mut Context<'_>,
    ) -> Poll<Outcome> {
        while tick.as_mut().poll(cx).is_ready() {
            let idle = self.handle.is_idle();
            if idle && *idle_before {
                return Poll::Ready(Outcome::Idle);
            }
            *idle_before = idle;
            tick.as_mut().reset(Instant::now() + TICK);
        }
        Poll::Pending
    }

    /// Waits for the next request with nothing but the socket.
    async fn park(&self, mut gate: Gate<Stream>) -> Option<Gate<Stream>> {
        let mut draining = self.server.draining.clone();
        let early = tokio::select! {
            early = timeout(self.keep_alive, first_bytes(gate.inner_mut())) => early.ok().flatten(),
            _ = draining.wait_for(|draining| *draining) => None,
        };
        let Some(early) = early else {
            let _ = timeout(LINGER, gate.inner_mut().shutdown()).await;
            return None;
        };
        gate.preload(early);
        Some(gate)
    }
}

/// Reads what comes first, without a buffer held while waiting; `None`: the client left.
async fn first_bytes(stream: &mut Stream) -> Option<Bytes> {
    poll_fn(|cx| {
        let mut space = [0_u8; 2048];
        let mut buffer = ReadBuf::new(&mut space);
        Pin::new(&mut *stream).poll_read(cx, &mut buffer).map(|read| match read {
            Ok(()) if !buffer.filled().is_empty() => Some(Bytes::copy_from_slice(buffer.filled())),
            _ => None,
        })
    })
    .await
}

/// hyper's service: each request is an exchange.
struct Exchanges {
    server: Arc<Server>,
    facts: Arc<Facts>,
}

impl hyper::service::Service<Request<Incoming>> for Exchanges {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (server, facts) = (Arc::clone(&self.server), Arc::clone(&self.facts));
        Box::pin(async move { Ok(exchange(&server.shared, &facts, request).await) })
    }
}
