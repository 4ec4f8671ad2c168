//! What is counted of the second tier of the cache.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::families::ByOperation;

/// `thinwire_shared_cache_reached` and `thinwire_shared_cache_total`; `Default` makes handles that
/// no registry knows.
#[derive(Debug, Clone, Default)]
pub struct SharedMetrics {
    /// 1 while the tier is used, 0 while all goes on without it.
    pub reached: Gauge,
    pub(super) operations: Family<ByOperation, Counter>,
}

impl SharedMetrics {
    /// Counts one.
    pub fn count(&self, operation: SharedOperation, outcome: SharedOutcome) {
        let labels = ByOperation {
            operation: operation.word(),
            outcome: outcome.word(),
        };
        self.operations.get_or_create(&labels).inc();
    }
}

/// What was done with the tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedOperation {
    /// Looked for an object.
    Find,
    /// Put an object there.
    Keep,
    /// Looked for a coded form.
    FindCoded,
    /// Put a coded form there.
    KeepCoded,
    /// Told others of a purge.
    Purge,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedOutcome {
    /// It was there.
    Hit,
    /// It was not.
    Miss,
    /// It is there, or said, now.
    Kept,
    /// It would be stale at once.
    Unfit,
    /// It was purged after it was asked for.
    Purged,
    /// Too much was on its way already.
    Busy,
    /// It took too long.
    Slow,
    /// The connection failed.
    Failed,
    /// The tier refused.
    Refused,
    /// What lies there is not ours, or not what was looked for.
    Foreign,
    /// What lies there is damaged.
    Corrupt,
    /// What lies there is larger than it may be.
    Large,
}

impl SharedOperation {
    const fn word(self) -> &'static str {
        match self {
            Self::Find => "find",
            Self::Keep => "keep",
            Self::FindCoded => "find_coded",
            Self::KeepCoded => "keep_coded",
            Self::Purge => "purge",
        }
    }
}

impl SharedOutcome {
    const fn word(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Kept => "kept",
            Self::Unfit => "unfit",
            Self::Purged => "purged",
            Self::Busy => "busy",
            Self::Slow => "slow",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::Foreign => "foreign",
            Self::Corrupt => "corrupt",
            Self::Large => "large",
        }
    }
}
