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
use tokio::io::AsyncWriteExt as _;
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::connection::Accepted;
use super::gate::{self, Gate, GateLimits, Handle, Refused, Turn};
use super::stream::Stream;
use super::threads::Server;
use crate::body::{Body, Hints, Wire};
use crate::proxy::{Facts, RefusedHead, exchange, refuse};

/// An idle connection is looked at after this, and parked if it still is after as long again.
///
/// Short, so that a flood of new connections does not hold hyper's state for all of them at once.
const TICK: Duration = Duration::from_millis(50);

/// A busy one is looked at ever less often, down to this.
const LONGEST_TICK: Duration = Duration::from_secs(1);

/// A peer that does not read our last bytes gets no longer than this.
const LINGER: Duration = Duration::from_secs(2);

/// hyper's own bound on what it buffers of a connection, which large bodies profit from.
const HYPER_BUFFER: usize = 408 * 1024;

type Connection = http1::Connection<TokioIo<Gate<Stream>>, Exchanges>;

/// Serves a connection until either side has had enough.
pub(super) async fn serve(server: &Arc<Server>, accepted: Accepted) {
    let settings = server.shared.snapshot.load_full();
    let defaults = &settings.settings.defaults;
    let limits = GateLimits {
        head: usize::try_from(defaults.limits.request_head).unwrap_or(usize::MAX),
        head_timeout: defaults.timeouts.request_head,
        send: settings.settings.network.send,
    };
    let keep_alive = settings.settings.network.keep_alive;
    drop(settings);
    let mut gate = Gate::new(accepted.stream, limits, &accepted.early);
    if let Some(begun) = accepted.begun {
        gate.begun(begun);
    }
    let facts = Arc::new(Facts::new(
        accepted.listening,
        accepted.client,
        accepted.certificate.as_deref(),
    ));
    let session = Session {
        server: Arc::clone(server),
        facts,
        handle: gate.handle(),
        keep_alive,
        buffer: limits.head.saturating_mul(2).max(HYPER_BUFFER),
    };
    while let Some(next) = session.run(gate).await {
        gate = next;
    }
}

struct Session {
    server: Arc<Server>,
    facts: Arc<Facts>,
    handle: Handle,
    keep_alive: Duration,
    buffer: usize,
}

/// What the last look at a connection saw, and when the next one is due.
struct Look {
    idle: bool,
    next: Duration,
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
    async fn run(&self, gate: Gate<Stream>) -> Option<Gate<Stream>> {
        let exchanges = Exchanges {
            server: Arc::clone(&self.server),
            facts: Arc::clone(&self.facts),
            handle: self.handle.clone(),
        };
        let mut connection = Box::new(
            http1::Builder::new()
                .timer(hyper_util::rt::TokioTimer::new())
                .header_read_timeout(None)
                .max_buf_size(self.buffer)
                .serve_connection(TokioIo::new(gate), exchanges),
        );
        let outcome = self.drive(&mut connection).await;
        let (mut gate, early) = taken_back(connection);
        match outcome {
            Outcome::Idle => {
                // The end of a body nobody wants; even empty it holds hyper's whole read buffer.
                drop(early);
                self.park(gate).await
            }
            Outcome::Done(Ok(())) => {
                let switched = self.facts.switched.lock().take();
                if let Some(switched) = switched {
                    switched.run(gate, early).await;
                } else {
                    // Lingers where the client may still be sending.
                    let _ = timeout(LINGER, gate.shutdown()).await;
                }
                None
            }
            Outcome::Done(Err(error)) => {
                if !error.is_incomplete_message() {
                    tracing::debug!(%error, client = ?self.facts.client.address, "connection broke off");
                }
                gate.io().reset_on_close();
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
        let mut look = Look {
            idle: false,
            next: TICK,
        };
        poll_fn(|cx| {
            if let Poll::Ready(result) = connection.poll_without_shutdown(cx) {
                return Poll::Ready(Outcome::Done(result));
            }
            if !told && drained.as_mut().poll(cx).is_ready() {
                told = true;
                Pin::new(&mut *connection).graceful_shutdown();
                cx.waker().wake_by_ref();
            }
            self.poll_idle(tick.as_mut(), &mut look, cx)
        })
        .await
    }

    /// Ready once the connection was idle at two looks in a row.
    fn poll_idle(
        &self,
        mut tick: Pin<&mut Sleep>,
        look: &mut Look,
        cx: &mut Context<'_>,
    ) -> Poll<Outcome> {
        while tick.as_mut().poll(cx).is_ready() {
            let idle = self.handle.is_idle();
            if idle && look.idle {
                return Poll::Ready(Outcome::Idle);
            }
            look.next = if idle {
                TICK
            } else {
                (look.next * 2).min(LONGEST_TICK)
            };
            look.idle = idle;
            tick.as_mut().reset(Instant::now() + look.next);
        }
        Poll::Pending
    }

    /// Waits for the next request with nothing but the socket.
    async fn park(&self, mut gate: Gate<Stream>) -> Option<Gate<Stream>> {
        let mut draining = self.server.draining.clone();
        let arrival = poll_fn(|cx| gate.poll_arrival(cx));
        let arrived = tokio::select! {
            arrived = timeout(self.keep_alive, arrival) => matches!(arrived, Ok(Ok(true))),
            _ = draining.wait_for(|draining| *draining) => false,
        };
        if !arrived {
            let _ = timeout(LINGER, gate.shutdown()).await;
            return None;
        }
        Some(gate)
    }
}

/// hyper's state goes; what it had read beyond the last request stays.
fn taken_back(connection: Box<Connection>) -> (Gate<Stream>, Bytes) {
    let parts = connection.into_parts();
    (parts.io.into_inner(), parts.read_buf)
}

/// hyper's service: each request is an exchange.
struct Exchanges {
    server: Arc<Server>,
    facts: Arc<Facts>,
    handle: Handle,
}

impl hyper::service::Service<Request<Incoming>> for Exchanges {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (server, facts) = (Arc::clone(&self.server), Arc::clone(&self.facts));
        match self.handle.begin() {
            Turn::Serve(begun) => Box::pin(async move {
                let wire: Box<dyn Wire> = Box::new(OverGate(begun));
                Ok(exchange(&server.shared, &facts, request, Some(wire)).await)
            }),
            Turn::Refuse(refused) => {
                let response = refuse(&server.shared, facts.client, described(*refused));
                Box::pin(std::future::ready(Ok(response)))
            }
        }
    }
}

fn described(refused: Refused) -> RefusedHead {
    RefusedHead {
        status: refused.refusal.status(),
        word: refused.refusal.word(),
        what: refused.refusal.to_string(),
        method: refused.method,
        target: refused.target,
        host: refused.host,
    }
}

/// An exchange's hold on its connection.
struct OverGate(gate::Exchange);

impl Wire for OverGate {
    fn tunnel(&self) -> bool {
        self.0.tunnel()
    }

    fn stay(&self) {
        self.0.not_upgraded();
    }

    fn hints(&self) -> Arc<dyn Hints> {
        Arc::new(HintsOverGate(self.0.hints()))
    }

    fn part(&self) -> Box<dyn Send + Sync> {
        Box::new(self.0.part())
    }
}

struct HintsOverGate(gate::Hints);

impl Hints for HintsOverGate {
    fn send(&self, head: &[u8]) -> bool {
        self.0.send(head)
    }
}
