//! What operators see: metrics, the log, the access record.
//!
//! Counting is an atomic addition on a handle that was resolved beforehand; a line is bytes in a
//! bounded buffer that another thread writes out. Nothing here may ever wait for a disk, a pipe or
//! a scraper, and nothing a client sends may become the value of a metric label.

mod access;
mod counted;
mod event;
mod families;
pub mod handles;
mod log;
mod metrics;
#[cfg(feature = "otel")]
pub mod otlp;
mod print;
mod queue;
mod route;
pub mod sample;
mod servers;
mod shared;
mod stamp;
pub mod trace;

pub use access::{Flow, Record, WebSocketRecord};
pub use counted::{CacheResult, Direction, Extension, Form, Kind};
pub use handles::{PoolMetrics, ServerMetrics};
pub use log::{LogError, Sink};
pub use metrics::{CONTENT_TYPE, Metrics};
pub use route::{InFlight, RouteMetrics};
pub use shared::{SharedMetrics, SharedOperation, SharedOutcome};
