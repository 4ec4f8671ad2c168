//! "Now": from a test to its app or back, across threads and tasks.

use tokio::sync::watch;

use super::{PATIENCE, runtime};

/// Fired once, seen by all that wait for it, before or after.
#[derive(Clone)]
pub struct Signal(watch::Sender<bool>);

impl Signal {
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    pub fn fire(&self) {
        self.0.send_replace(true);
    }

    pub fn fired(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits, not for ever.
    pub fn wait(&self) {
        runtime::block_on("a signal of the test", self.heard());
    }

    /// The same in a task; the waiting side has the bound.
    pub async fn heard(&self) {
        let mut receiver = self.0.subscribe();
        let heard = tokio::time::timeout(PATIENCE, receiver.wait_for(|fired| *fired)).await;
        heard
            .expect("the test fires its signal in time")
            .expect("the signal outlives its waiters");
    }
}

impl Default for Signal {
    fn default() -> Self {
        Self::new()
    }
}
