//! The registry, and where rooms get their handles from.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::families::{ByCoding, ByLane, ByReason, ByState, Families};
use super::handles::{PoolMetrics, ServerMetrics};
use super::route::{InFlight, RouteMetrics};
use super::servers::Servers;
use crate::codec::Coding;

/// The media type of what [`Metrics::encode`] gives.
pub const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// Everything that is counted; a clone counts into the same numbers.
#[derive(Debug, Clone)]
pub struct Metrics(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    registry: Registry,
    families: Arc<Families>,
    routes: Mutex<HashMap<String, Arc<RouteMetrics>>>,
    servers: Arc<Servers>,
}

impl Metrics {
    /// A registry with all families, and nothing in them.
    #[must_use]
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let families = Arc::new(Families::register(&mut registry));
        let servers = Servers::new(Arc::clone(&families));
        Self(Arc::new(Inner {
            registry,
            families,
            routes: Mutex::default(),
            servers,
        }))
    }

    /// All samples in the Prometheus text format, of the media type [`CONTENT_TYPE`]. Families
    /// without samples are left out.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing into a String does not fail.
        let _ = prometheus_text::encode(&mut text, &self.0.registry);
        text
    }

    /// The counters of the route with this name, the same ones after a reload. `-` is what ends
    /// before a route is known. Names come from the configuration, never from a client.
    #[must_use]
    pub fn route(&self, name: &str) -> Arc<RouteMetrics> {
        let mut routes = self.0.routes.lock();
        if let Some(known) = routes.get(name) {
            return Arc::clone(known);
        }
        let route = Arc::new(RouteMetrics::new(name, Arc::clone(&self.0.families)));
        routes.insert(name.to_owned(), Arc::clone(&route));
        route
    }

    /// The handles of the compression pool.
    #[must_use]
    pub fn pool(&self) -> PoolMetrics {
        let families = &self.0.families;
        let jobs = |state| families.pool_jobs.get_or_create_owned(&ByState { state });
        let wait = |lane| {
            families
                .pool_wait_seconds
                .get_or_create_owned(&ByLane { lane })
        };
        PoolMetrics {
            running: jobs("running"),
            waiting: jobs("waiting"),
            wait_short: wait("short"),
            wait_bulk: wait("bulk"),
        }
    }

    /// The handles of one server of an upstream, both as configured. Its row of
    /// `thinwire_upstream_healthy` is there as long as somebody holds a clone of these.
    #[must_use]
    pub fn server(&self, upstream: &str, server: &str) -> ServerMetrics {
        self.0.servers.handles(upstream, server)
    }

    /// Bytes that the cache holds in this coding; absent: plain.
    #[must_use]
    pub fn cache_bytes(&self, coding: Option<Coding>) -> Gauge {
        let coding = coding.map_or("identity", Coding::token);
        self.0
            .families
            .cache_bytes
            .get_or_create_owned(&ByCoding { coding })
    }

    /// Bytes of compression state of all WebSocket connections.
    #[must_use]
    pub fn websocket_context_bytes(&self) -> Gauge {
        self.0.families.websocket_context_bytes.clone()
    }

    /// A connection of a client opens.
    #[must_use]
    pub fn connection(&self) -> InFlight {
        InFlight::begin(&self.0.families.connections)
    }

    /// Connections and heads refused before a route was known, by what was wrong; callers keep the
    /// handle. Where there was an answer, `thinwire_responses_total` has it too, with route `-`.
    #[must_use]
    pub fn refused(&self, reason: &'static str) -> Counter {
        self.0
            .families
            .refused
            .get_or_create_owned(&ByReason { reason })
    }

    /// 103 answers of apps that could not be relayed.
    #[must_use]
    pub fn informational_dropped(&self) -> Counter {
        self.0.families.informational_dropped.clone()
    }

    /// Log and access lines that standard output did not take in time.
    #[must_use]
    pub fn log_lines_dropped(&self) -> Counter {
        self.0.families.log_lines_dropped.clone()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
