//! `websocket.memory`: what the compression state of all connections may hold together.
//!
//! A connection reserves the most that its histories can grow to when it is accepted, and is
//! accepted without the extension where that does not fit. A message that is half received holds an
//! inflater beside that; it is charged while it lasts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use prometheus_client::metrics::gauge::Gauge;

/// Shared by all connections.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    limit: AtomicU64,
    used: AtomicU64,
    /// `thinwire_websocket_context_bytes`.
    gauge: Gauge,
}

/// Bytes that a connection may use, until it is dropped.
#[derive(Debug)]
pub struct Reserved {
    budget: Budget,
    bytes: u64,
    /// Beyond `bytes`, for now.
    more: u64,
}

impl Budget {
    /// `limit` bytes; `gauge` shows how many are used.
    #[must_use]
    pub fn new(limit: u64, gauge: Gauge) -> Self {
        Self(Arc::new(Inner {
            limit: AtomicU64::new(limit),
            used: AtomicU64::new(0),
            gauge,
        }))
    }

    /// A new limit; what was reserved stays.
    pub fn limit(&self, bytes: u64) {
        self.0.limit.store(bytes, Relaxed);
    }

    /// So many bytes, if they are to be had.
    #[must_use]
    pub fn reserve(&self, bytes: u64) -> Option<Reserved> {
        self.take(bytes).then(|| Reserved {
            budget: self.clone(),
            bytes,
            more: 0,
        })
    }

    fn take(&self, bytes: u64) -> bool {
        let limit = self.0.limit.load(Relaxed);
        let fits = |used: u64| used.checked_add(bytes).filter(|&used| used <= limit);
        let taken = self.0.used.fetch_update(Relaxed, Relaxed, fits).is_ok();
        if taken {
            self.0.gauge.inc_by(signed(bytes));
        }
        taken
    }

    fn give(&self, bytes: u64) {
        self.0.used.fetch_sub(bytes, Relaxed);
        self.0.gauge.dec_by(signed(bytes));
    }
}

impl Reserved {
    /// Holds so many bytes beside those that were reserved, from now on; false: they are not to be
    /// had, and nothing has changed.
    #[must_use]
    pub fn set_more(&mut self, bytes: u64) -> bool {
        if bytes > self.more && !self.budget.take(bytes - self.more) {
            return false;
        }
        if bytes < self.more {
            self.budget.give(self.more - bytes);
        }
        self.more = bytes;
        true
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.give(self.bytes + self.more);
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_never_passes_the_limit_and_comes_back() {
        let gauge = Gauge::default();
        let budget = Budget::new(100, gauge.clone());
        let mut one = budget.reserve(60);
        assert!(one.is_some() && budget.reserve(41).is_none());
        let other = budget.reserve(30);
        if let Some(one) = &mut one {
            assert!(!one.set_more(11));
            assert!(one.set_more(10));
            assert_eq!(gauge.get(), 100);
            assert!(one.set_more(0));
        }
        budget.limit(10);
        assert!(budget.reserve(1).is_none());
        drop((one, other));
        assert_eq!(gauge.get(), 0);
        assert!(budget.reserve(10).is_some());
    }
}
