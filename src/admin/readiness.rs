//! Whether requests should come here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const STARTING: u8 = 0;
const READY: u8 = 1;
const DRAINING: u8 = 2;

/// Starting, then ready, then draining, never back; a clone is the same one.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<AtomicU8>);

impl Readiness {
    /// Requests may come, unless it drains already.
    pub fn ready(&self) {
        self.0.fetch_max(READY, Ordering::Relaxed);
    }

    /// Nothing new should come.
    pub fn draining(&self) {
        self.0.fetch_max(DRAINING, Ordering::Relaxed);
    }

    /// Whether requests may come.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.0.load(Ordering::Relaxed) == READY
    }

    /// `starting`, `ready` or `draining`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self.0.load(Ordering::Relaxed) {
            STARTING => "starting",
            READY => "ready",
            _ => "draining",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_during_the_start_is_not_forgotten() {
        let readiness = Readiness::default();
        assert_eq!(
            (readiness.word(), readiness.is_ready()),
            ("starting", false)
        );
        readiness.draining();
        readiness.ready();
        assert_eq!(
            (readiness.word(), readiness.is_ready()),
            ("draining", false)
        );
    }
}
