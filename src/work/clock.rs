//! The CPU time of the calling thread.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Measures what a piece of work on this thread costs, however often it was interrupted.
#[derive(Debug, Clone, Copy)]
pub struct CpuClock {
    start: Duration,
}

impl CpuClock {
    /// Starts now.
    #[must_use]
    pub fn start() -> Self {
        Self { start: now() }
    }

    /// CPU time of this thread since the start; of use only on the thread that started it.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        now().saturating_sub(self.start)
    }
}

fn now() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(seconds, nanos)
}
