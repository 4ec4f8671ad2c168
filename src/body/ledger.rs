//! The record of one exchange, written once, when it ends.
//!
//! It is made when the request arrives and travels with it into the response's body; dropping it
//! writes the access line and counts the answer, however the exchange ended.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode, Uri};

use super::Wire;
use crate::codec::Coding;
use crate::head::grpc::Dialect;
use crate::telemetry::trace::TraceContext;
use crate::telemetry::{CacheResult, InFlight, Kind, Record, RouteMetrics, Sink, WebSocketRecord};

/// Who ended an exchange before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// It left, stalled or sent nonsense.
    Client,
    /// It failed or was too slow.
    Upstream,
    /// A limit or a fault of ours.
    Proxy,
}

impl EndedBy {
    /// The word in the log.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Upstream => "upstream",
            Self::Proxy => "proxy",
        }
    }
}

/// What is known of an exchange.
pub struct Ledger {
    sink: Sink,
    started: Instant,
    /// The route's handles; those of `-` until a route is known.
    pub metrics: Arc<RouteMetrics>,
    /// The client's address; absent on unix sockets.
    pub client: Option<IpAddr>,
    /// As asked.
    pub method: Method,
    /// As asked.
    pub host: Option<Box<str>>,
    /// As asked; only path and query are logged.
    pub target: Uri,
    /// `HTTP/1.1` and so on.
    pub protocol: &'static str,
    /// What the client speaks, if it is a protocol of calls: its faults are told in it.
    pub dialect: Option<Dialect>,
    /// As answered.
    pub status: StatusCode,
    /// As answered; absent: identity.
    pub coding: Option<Coding>,
    /// The level of the encoder that ran for it, in the engine's own scale.
    pub level: Option<u8>,
    /// Why `coding` is what it is.
    pub reason: &'static str,
    /// The cache's part in it.
    pub cache: Option<CacheResult>,
    /// The server that answered.
    pub server: Option<Arc<str>>,
    /// From asking to its head.
    pub server_took: Option<Duration>,
    /// What went wrong, if something did.
    pub error: Option<Box<str>>,
    /// Its place in a trace.
    pub trace: Option<TraceContext>,
    /// What passed on a WebSocket.
    pub websocket: Option<Box<WebSocketRecord>>,
    before: u64,
    after: u64,
    waited: Duration,
    state: State,
    /// The connection, where it speaks HTTP/1.
    pub wire: Option<Box<dyn Wire>>,
    holds: Vec<Box<dyn Send + Sync>>,
    /// Last: what is counted as under way still holds all of the above.
    running: Option<InFlight>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Complete,
    Broken(EndedBy),
}

impl Ledger {
    /// Opens the record of a request that arrives now.
    #[must_use]
    pub fn open(sink: Sink, metrics: Arc<RouteMetrics>, method: Method, target: Uri) -> Box<Self> {
        Box::new(Self {
            sink,
            started: Instant::now(),
            metrics,
            client: None,
            method,
            host: None,
            target,
            protocol: "HTTP/1.1",
            dialect: None,
            status: StatusCode::OK,
            coding: None,
            level: None,
            reason: "status",
            cache: None,
            server: None,
            server_took: None,
            error: None,
            trace: None,
            websocket: None,
            before: 0,
            after: 0,
            waited: Duration::ZERO,
            state: State::Running,
            wire: None,
            holds: Vec::new(),
            running: None,
        })
    }

    /// A route takes the request.
    pub fn routed(&mut self, metrics: &Arc<RouteMetrics>) {
        self.metrics = Arc::clone(metrics);
        self.running = Some(metrics.begin());
    }

    /// Gives `held` back when this exchange is over.
    pub fn hold(&mut self, held: impl Send + Sync + 'static) {
        self.holds.push(Box::new(held));
    }

    /// When the request arrived.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.started
    }

    /// So many bytes of the app's were used.
    pub fn plain(&mut self, bytes: usize) {
        self.before += bytes as u64;
    }

    /// So many bytes went to the client.
    pub fn sent(&mut self, bytes: usize) {
        self.after += bytes as u64;
    }

    /// An encoder begins to run for this answer.
    pub fn encoding(&mut self, coding: Coding) {
        self.coding = Some(coding);
        self.metrics.encode_run(Kind::Http, coding);
    }

    /// Time in the pool's queue.
    pub fn waited(&mut self, waited: Duration) {
        self.waited += waited;
    }

    /// Time in the pool's queue so far.
    #[must_use]
    pub fn pool_waited(&self) -> Duration {
        self.waited
    }

    /// What an encoder took in, gave out and cost.
    pub fn coded(&self, plain: usize, coded: usize, cpu: Duration) {
        if let Some(coding) = self.coding {
            self.metrics
                .encoded(Kind::Http, coding, plain as u64, coded as u64, cpu);
        }
    }

    /// The last byte was handed over.
    pub fn complete(&mut self) {
        if self.state == State::Running {
            self.state = State::Complete;
        }
    }

    /// It ended before its time.
    pub fn broken(&mut self, by: EndedBy, error: impl Into<Box<str>>) {
        if self.state == State::Running {
            self.state = State::Broken(by);
            self.error = Some(error.into());
        }
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let took = self.started.elapsed();
        self.metrics
            .response(self.status.as_u16(), self.coding, self.reason, took);
        self.metrics.body(self.before, self.after);
        if let Some(result) = self.cache {
            self.metrics.cache(result);
        }
        let ended_by = match self.state {
            State::Complete => None,
            State::Running => Some(EndedBy::Client.word()),
            State::Broken(by) => Some(by.word()),
        };
        let trace_id = self.trace.map(|trace| trace.trace_id());
        self.sink.access(&Record {
            route: self.metrics.name(),
            client: self.client,
            method: self.method.as_str(),
            host: self.host.as_deref().unwrap_or(""),
            path: self
                .target
                .path_and_query()
                .map_or("", |target| target.as_str()),
            status: self.status.as_u16(),
            protocol: self.protocol,
            coding: self.coding,
            reason: self.reason,
            bytes_before: self.before,
            bytes_after: self.after,
            cache: self.cache.map(CacheResult::word),
            upstream: self.server.as_deref(),
            upstream_took: self.server_took,
            pool_waited: self.waited,
            duration: took,
            ended_by,
            trace_id: trace_id
                .as_ref()
                .and_then(|id| std::str::from_utf8(id).ok()),
            trace: self.trace,
            error: self.error.as_deref(),
            websocket: self.websocket.as_deref(),
        });
    }
}
