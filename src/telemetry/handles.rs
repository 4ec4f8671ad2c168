//! Metric handles that rooms hold on to, so that counting on a hot path is one atomic addition.
//!
//! `Default` makes handles that no registry knows: they count, and nobody sees it.

use std::sync::Arc;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::servers::Listed;

/// `thinwire_pool_jobs` and `thinwire_pool_wait_seconds`.
#[derive(Debug, Clone)]
pub struct PoolMetrics {
    /// Jobs on a thread.
    pub running: Gauge,
    /// Jobs in a queue.
    pub waiting: Gauge,
    /// Seconds in the queue, short lane.
    pub wait_short: Histogram,
    /// Seconds in the queue, bulk lane.
    pub wait_bulk: Histogram,
}

/// The buckets of `thinwire_pool_wait_seconds`: 50 us to 1.6 s.
pub const POOL_WAIT_BUCKETS: [f64; 16] = [
    50e-6, 100e-6, 200e-6, 400e-6, 800e-6, 1.6e-3, 3.2e-3, 6.4e-3, 12.8e-3, 25e-3, 50e-3, 100e-3,
    200e-3, 400e-3, 800e-3, 1.6,
];

impl Default for PoolMetrics {
    fn default() -> Self {
        Self {
            running: Gauge::default(),
            waiting: Gauge::default(),
            wait_short: Histogram::new(POOL_WAIT_BUCKETS),
            wait_bulk: Histogram::new(POOL_WAIT_BUCKETS),
        }
    }
}

/// `thinwire_upstream_requests_total` by outcome and `thinwire_upstream_healthy`, of one server.
#[derive(Debug, Clone, Default)]
pub struct ServerMetrics {
    /// A response head came.
    pub answered: Counter,
    /// No connection could be made.
    pub connect_failed: Counter,
    /// The connection ended, or what came was no HTTP, before a response head.
    pub failed: Counter,
    /// No response head in time.
    pub timed_out: Counter,
    /// The client left first.
    pub canceled: Counter,
    /// Sent once more after no answer on a reused connection.
    pub retried: Counter,
    /// 1 or 0. The row goes when the last clone of these handles does.
    pub healthy: Gauge,
    /// Absent: no registry knows them.
    pub(super) _listed: Option<Arc<Listed>>,
}
