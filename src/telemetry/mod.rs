//! What operators see: metrics, the log, the access record.

mod handles;

pub use handles::{PoolMetrics, ServerMetrics};
