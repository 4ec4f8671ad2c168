//! What a response occupies at its upstream for as long as it lasts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::OwnedSemaphorePermit;

/// Requests under way at one server, shared by the threads that balance over it.
#[derive(Debug, Clone, Default)]
pub struct Load(Arc<AtomicUsize>);

impl Load {
    /// How many are under way.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts one request at a server and holds its place among the upstream's connections.
///
/// Dropping it gives both back; it travels with the response's body.
#[derive(Debug)]
pub struct Lease {
    load: Load,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Lease {
    /// One more request under way.
    #[must_use]
    pub fn new(load: Load, permit: Option<OwnedSemaphorePermit>) -> Self {
        load.0.fetch_add(1, Ordering::Relaxed);
        Self {
            load,
            _permit: permit,
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.load.0.fetch_sub(1, Ordering::Relaxed);
    }
}
