//! The threads, and the accounts of what waits and runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::queue::{Queue, Ticket};
use super::{CpuClock, Done, Errand, Lane, Lost};
use crate::telemetry::PoolMetrics;

/// New work is refused when what waits would take so many times `max_wait`, and at least
/// [`LEAST_BOUND`].
const BOUND: u32 = 64;

/// See [`BOUND`].
const LEAST_BOUND: Duration = Duration::from_secs(1);

/// The correction of estimates: 1.0.
const UNIT: u64 = 1024;

/// The correction's bounds, in [`UNIT`]s: what is outside is a stall, not a machine.
const CORRECTION: (u64, u64) = (UNIT / 8, UNIT * 16);

/// Seconds of work that are taken to have met their estimate before the first job.
const PRIOR: f64 = 0.01;

/// A job's estimate weighs so much less each time another job is done.
const FADE: f64 = 31.0 / 32.0;

/// The compression pool. Cheap to clone; it stops when the last clone is dropped: what waits is
/// lost, what runs ends its piece.
#[derive(Debug, Clone)]
pub struct Pool {
    handle: Arc<Handle>,
}

/// What is to be expected of the pool now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pressure {
    /// What a job that came now would wait for a thread.
    pub expected_wait: Duration,
}

/// Stops the threads when it is dropped.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
}

/// What threads, errands and the pool have in common.
pub(super) struct Shared {
    line: Mutex<Line>,
    work: Condvar,
    load: Load,
    bound: Duration,
    stopping: AtomicBool,
    metrics: PoolMetrics,
}

struct Line {
    queue: Queue<Job>,
    /// Threads that sleep for want of work.
    sleeping: usize,
}

struct Job {
    task: Task,
    cost: Duration,
    since: Instant,
}

type Task = Box<dyn FnOnce(Turn<'_>) + Send>;

impl Pool {
    /// Starts `threads` threads (at least one) at the priority `nice`. `max_wait` is the wait beyond
    /// which the policy makes answers cheaper; the queue's bound is a multiple of it.
    ///
    /// A priority that the system refuses is logged and done without.
    ///
    /// # Errors
    /// A thread could not be started.
    pub fn start(
        threads: usize,
        nice: i32,
        max_wait: Duration,
        metrics: PoolMetrics,
    ) -> std::io::Result<Self> {
        let threads = threads.max(1);
        let shared = Arc::new(Shared {
            line: Mutex::new(Line {
                queue: Queue::new(),
                sleeping: 0,
            }),
            work: Condvar::new(),
            load: Load::new(threads),
            bound: max_wait.saturating_mul(BOUND).max(LEAST_BOUND),
            stopping: AtomicBool::new(false),
            metrics,
        });
        // Made before the threads: should one not start, those before it end.
        let pool = Self {
            handle: Arc::new(Handle {
                shared: shared.clone(),
            }),
        };
        for number in 0..threads {
            let shared = shared.clone();
            std::thread::Builder::new()
                .name(format!("thinwire-pool-{number}"))
                .spawn(move || {
                    renice(nice, number == 0);
                    shared.serve();
                })?;
        }
        Ok(pool)
    }

    /// Queues work for an answer whose head is not out. `cost` is its estimated CPU time.
    ///
    /// Where too much waits already the errand says [`Lost::Full`], and the job is dropped.
    pub fn run<T, F>(&self, lane: Lane, cost: Duration, job: F) -> Errand<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        if self.pressure().expected_wait > self.handle.shared.bound {
            return Errand::refused(Lost::Full);
        }
        self.run_more(lane, cost, job)
    }

    /// Queues a piece of work for an answer whose head is out: it is taken however much waits. Its
    /// caller has one piece away at a time.
    pub fn run_more<T, F>(&self, lane: Lane, cost: Duration, job: F) -> Errand<T>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let task = Box::new(move |turn: Turn<'_>| {
            let clock = CpuClock::start();
            let value = job();
            let cpu = clock.elapsed();
            let waited = turn.waited;
            // The accounts are settled before anybody hears of it.
            drop(turn);
            // Nobody may be interested any more.
            let _ = sender.send(Done { value, waited, cpu });
        });
        let shared = &self.handle.shared;
        let ticket = shared.enqueue(
            lane,
            Job {
                task,
                cost,
                since: Instant::now(),
            },
        );
        Errand::away(receiver, shared.clone(), ticket)
    }

    /// What to expect; reads a few counters.
    #[must_use]
    pub fn pressure(&self) -> Pressure {
        Pressure {
            expected_wait: self.handle.shared.load.expected_wait(),
        }
    }
}

impl Pool {
    /// Nothing waits and nothing runs.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let load = &self.handle.shared.load;
        load.waiting.load(Relaxed) == 0 && load.busy.load(Relaxed) == 0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let shared = &self.shared;
        let lost = {
            let mut line = shared.line.lock();
            shared.stopping.store(true, Relaxed);
            line.queue.drain()
        };
        shared.work.notify_all();
        for job in lost {
            shared.left(&job);
        }
    }
}

impl Shared {
    pub(super) fn stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// Takes a job out that nobody waits for any more, and frees what it holds.
    pub(super) fn withdraw(&self, ticket: Ticket) {
        let job = self.line.lock().queue.withdraw(ticket);
        if let Some(job) = job {
            self.left(&job);
        }
    }

    fn enqueue(&self, lane: Lane, job: Job) -> Ticket {
        self.load.waiting.fetch_add(nanos(job.cost), Relaxed);
        self.metrics.waiting.inc();
        let (ticket, wake) = {
            let mut line = self.line.lock();
            (line.queue.push(lane, job), line.sleeping > 0)
        };
        if wake {
            self.work.notify_one();
        }
        ticket
    }

    /// A job waits no longer.
    fn left(&self, job: &Job) {
        self.load.waiting.fetch_sub(nanos(job.cost), Relaxed);
        self.metrics.waiting.dec();
    }

    /// The life of a thread.
    fn serve(&self) {
        while let Some((lane, job)) = self.next() {
            let turn = self.begin(lane, &job);
            if catch_unwind(AssertUnwindSafe(|| (job.task)(turn))).is_err() {
                tracing::error!("a job of the compression pool panicked; its answer is lost");
            }
        }
    }

    /// The next job; sleeps until there is one. Absent: the pool stops.
    fn next(&self) -> Option<(Lane, Job)> {
        let mut line = self.line.lock();
        loop {
            if self.stopping() {
                return None;
            }
            if let Some(next) = line.queue.pop() {
                return Some(next);
            }
            line.sleeping += 1;
            self.work.wait(&mut line);
            line.sleeping -= 1;
        }
    }

    fn begin(&self, lane: Lane, job: &Job) -> Turn<'_> {
        let started = Instant::now();
        let waited = started.saturating_duration_since(job.since);
        self.load.busy.fetch_add(1, Relaxed);
        self.load.running.fetch_add(nanos(job.cost), Relaxed);
        self.left(job);
        self.metrics.running.inc();
        let histogram = match lane {
            Lane::Short => &self.metrics.wait_short,
            Lane::Bulk => &self.metrics.wait_bulk,
        };
        histogram.observe(waited.as_secs_f64());
        Turn {
            shared: self,
            cost: job.cost,
            started,
            waited,
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared")
            .field("load", &self.load)
            .finish_non_exhaustive()
    }
}

/// A job on a thread; dropping it, also by a panic, settles the accounts.
struct Turn<'a> {
    shared: &'a Shared,
    cost: Duration,
    started: Instant,
    waited: Duration,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let load = &self.shared.load;
        load.running.fetch_sub(nanos(self.cost), Relaxed);
        load.busy.fetch_sub(1, Relaxed);
        load.learn(self.cost, self.started.elapsed());
        self.shared.metrics.running.dec();
    }
}

/// How much waits and runs, by estimate, and how far estimates are off.
#[derive(Debug)]
struct Load {
    threads: usize,
    busy: AtomicUsize,
    /// Nanoseconds.
    waiting: AtomicU64,
    /// Nanoseconds, each job in full until it ends.
    running: AtomicU64,
    /// What work takes by the wall clock over what it was estimated to take, in [`UNIT`]s. The wall
    /// clock counts what other threads of this machine take away, as those who wait do.
    correction: AtomicU64,
    record: Mutex<Record>,
}

/// Seconds, older jobs weighing less.
#[derive(Debug, Clone, Copy)]
struct Record {
    estimated: f64,
    taken: f64,
}

impl Load {
    fn new(threads: usize) -> Self {
        Self {
            threads,
            busy: AtomicUsize::new(0),
            waiting: AtomicU64::new(0),
            running: AtomicU64::new(0),
            correction: AtomicU64::new(UNIT),
            record: Mutex::new(Record {
                estimated: PRIOR,
                taken: PRIOR,
            }),
        }
    }

    /// Nothing while a thread is free. Else what waits and half of what runs, which is what is left
    /// of it on average, shared by the threads.
    fn expected_wait(&self) -> Duration {
        let waiting = self.waiting.load(Relaxed);
        if waiting == 0 && self.busy.load(Relaxed) < self.threads {
            return Duration::ZERO;
        }
        let ahead = waiting.saturating_add(self.running.load(Relaxed) / 2) / self.threads as u64;
        let corrected =
            u128::from(ahead) * u128::from(self.correction.load(Relaxed)) / u128::from(UNIT);
        Duration::from_nanos(u64::try_from(corrected).unwrap_or(u64::MAX))
    }

    fn learn(&self, estimated: Duration, taken: Duration) {
        let mut record = self.record.lock();
        record.estimated = record.estimated * FADE + estimated.as_secs_f64();
        record.taken = record.taken * FADE + taken.as_secs_f64();
        // Not a number or out of range: `as` saturates, and the clamp does the rest.
        let correction = (record.taken / record.estimated * UNIT as f64) as u64;
        self.correction
            .store(correction.clamp(CORRECTION.0, CORRECTION.1), Relaxed);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// On Linux a priority is a thread's own.
fn renice(nice: i32, warn: bool) {
    if let Err(error) = rustix::process::setpriority_process(None, nice)
        && warn
    {
        tracing::warn!(%error, nice, "pool.nice was refused; the pool runs at the process's priority");
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
