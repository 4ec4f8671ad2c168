//! The metric families: names, kinds and labels as INTERFACES.md has them, and a few of our own.
//!
//! prometheus-client appends `_total` to the names of counters.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use super::handles::POOL_WAIT_BUCKETS;

/// The buckets of `thinwire_response_seconds`: 0.5 ms to 60 s.
const RESPONSE_BUCKETS: [f64; 16] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0,
];

/// A counter of seconds.
pub(super) type Seconds = Counter<f64, AtomicU64>;

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByRoute {
    pub(super) route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByResponse {
    pub(super) route: String,
    pub(super) status: String,
    pub(super) coding: &'static str,
    pub(super) reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByCodec {
    pub(super) route: String,
    pub(super) kind: &'static str,
    pub(super) coding: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByKind {
    pub(super) route: String,
    pub(super) kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByResult {
    pub(super) route: String,
    pub(super) result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByExtension {
    pub(super) route: String,
    pub(super) extension: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByMessage {
    pub(super) route: String,
    pub(super) direction: &'static str,
    pub(super) form: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByServer {
    pub(super) upstream: String,
    pub(super) server: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByOutcome {
    pub(super) upstream: String,
    pub(super) server: String,
    pub(super) outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByState {
    pub(super) state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByLane {
    pub(super) lane: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByCoding {
    pub(super) coding: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByReason {
    pub(super) reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ByOperation {
    pub(super) operation: &'static str,
    pub(super) outcome: &'static str,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Families {
    pub(super) responses: Family<ByResponse, Counter>,
    pub(super) response_seconds: Histograms<ByRoute>,
    pub(super) in_flight: Family<ByRoute, Gauge>,
    pub(super) bytes_before: Family<ByRoute, Counter>,
    pub(super) bytes_after: Family<ByRoute, Counter>,
    pub(super) encodes: Family<ByCodec, Counter>,
    pub(super) codec_seconds: Family<ByCodec, Seconds>,
    pub(super) plain_bytes: Family<ByCodec, Counter>,
    pub(super) coded_bytes: Family<ByCodec, Counter>,
    pub(super) pool_jobs: Family<ByState, Gauge>,
    pub(super) pool_wait_seconds: Histograms<ByLane>,
    pub(super) cache_requests: Family<ByResult, Counter>,
    pub(super) cache_bytes: Family<ByCoding, Gauge>,
    pub(super) shared_cache: Family<ByOperation, Counter>,
    pub(super) shared_cache_reached: Gauge,
    pub(super) websocket_connections: Family<ByExtension, Gauge>,
    pub(super) websocket_messages: Family<ByMessage, Counter>,
    pub(super) websocket_context_bytes: Gauge,
    pub(super) grpc_messages: Family<ByMessage, Counter>,
    pub(super) app_compressed: Family<ByKind, Counter>,
    pub(super) upstream_requests: Family<ByOutcome, Counter>,
    pub(super) upstream_healthy: Family<ByServer, Gauge>,
    pub(super) connections: Gauge,
    pub(super) refused: Family<ByReason, Counter>,
    pub(super) informational_dropped: Counter,
    pub(super) log_lines_dropped: Counter,
}

impl Families {
    /// Makes them and puts them into `registry`.
    pub(super) fn register(registry: &mut Registry) -> Self {
        let mut room = Room(registry.sub_registry_with_prefix("thinwire"));
        Self {
            responses: room.add("responses", "Answers sent"),
            response_seconds: room.with(
                "response_seconds",
                "From a request's head to the end of its answer",
                Family::new_with_constructor(|| Histogram::new(RESPONSE_BUCKETS)),
            ),
            in_flight: room.add("requests_in_flight", "Requests whose answer has not ended"),
            bytes_before: room.add(
                "bytes_before",
                "Bytes of answers as they came from apps or from copies",
            ),
            bytes_after: room.add("bytes_after", "Bytes of answers as they went to clients"),
            encodes: room.add("encodes", "Runs of encoders"),
            codec_seconds: room.add("codec_seconds", "CPU seconds spent in codecs"),
            plain_bytes: room.add("plain_bytes", "Bytes into encoders"),
            coded_bytes: room.add("coded_bytes", "Bytes out of encoders"),
            pool_jobs: room.add("pool_jobs", "Jobs of the compression pool"),
            pool_wait_seconds: room.with(
                "pool_wait_seconds",
                "How long jobs waited for a thread of the pool",
                Family::new_with_constructor(|| Histogram::new(POOL_WAIT_BUCKETS)),
            ),
            cache_requests: room.add("cache_requests", "What the cache did for requests"),
            cache_bytes: room.add("cache_bytes", "Bytes held by the cache"),
            shared_cache: room.add("shared_cache", "Uses of the shared cache"),
            shared_cache_reached: room
                .add("shared_cache_reached", "Whether the shared cache is used"),
            websocket_connections: room.add("websocket_connections", "Open WebSocket connections"),
            websocket_messages: room.add("websocket_messages", "WebSocket messages relayed"),
            websocket_context_bytes: room.add(
                "websocket_context_bytes",
                "Bytes of WebSocket compression state",
            ),
            grpc_messages: room.add("grpc_messages", "gRPC messages relayed"),
            app_compressed: room.add(
                "app_compressed",
                "Answers and messages that the app compressed although it need not",
            ),
            upstream_requests: room.add("upstream_requests", "Requests sent to servers"),
            upstream_healthy: room.add("upstream_healthy", "Whether a server gets requests"),
            connections: room.add("connections", "Open connections of clients"),
            refused: room.add(
                "refused",
                "Connections and heads refused before they had a route",
            ),
            informational_dropped: room.add(
                "informational_dropped",
                "Early hints that could not be relayed",
            ),
            log_lines_dropped: room.add(
                "log_lines_dropped",
                "Lines that standard output did not take in time",
            ),
        }
    }
}

struct Room<'a>(&'a mut Registry);

impl Room<'_> {
    fn add<M: Metric + Clone + Default>(&mut self, name: &'static str, help: &'static str) -> M {
        self.with(name, help, M::default())
    }

    /// A metric's clone shares its numbers.
    fn with<M: Metric + Clone>(&mut self, name: &'static str, help: &'static str, metric: M) -> M {
        self.0.register(name, help, metric.clone());
        metric
    }
}
