//! The log: access lines and what the proxy says of itself, in one stream on standard output.
//!
//! One stream keeps the order, in both formats: containers and journals collect standard output
//! and standard error alike, but interleave them as they like. In JSON the two are told apart by
//! their keys: the proxy's own lines have `level`, access lines have `status`. Standard error is
//! left to what happens before there is a log: faults in the configuration, and a start that fails.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use tracing_subscriber::filter::{EnvFilter, ParseError};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{Registry, reload};

use super::access::Record;
use super::event::Events;
use super::metrics::Metrics;
use super::queue::Queue;
use super::stamp::Stamp;
use crate::config::settings::{Log, LogFormat};

/// How long a process on its way out waits for a reader of its last lines.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Why there is no log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// `log.level` is neither a level nor a filter.
    #[error("log.level is no filter")]
    Level(#[from] ParseError),
    /// The system refuses a descriptor or a thread.
    #[error("standard output cannot be written to")]
    Output(#[from] io::Error),
    /// The process has a log already.
    #[error("this process has a log already")]
    Installed,
}

/// Where lines go; a clone is the same sink. Handing a line in never waits for whoever reads it.
#[derive(Debug, Clone)]
pub struct Sink(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    queue: Queue,
    json: AtomicBool,
    access: AtomicBool,
    /// Sees every record, also where no line is written.
    watcher: OnceLock<Watcher>,
    /// Of the process's log; absent in a sink that has only access lines.
    level: Option<reload::Handle<EnvFilter, Registry>>,
}

type Watch = dyn Fn(&Record<'_>) + Send + Sync;

struct Watcher(Box<Watch>);

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watcher")
    }
}

impl Sink {
    /// Makes standard output the log of this process, once.
    ///
    /// # Errors
    /// `log.level` cannot be read, the system refuses what is needed, or there is a log already.
    pub fn install(log: &Log, metrics: &Metrics) -> Result<Self, LogError> {
        let stdout = io::stdout();
        let colored = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none();
        // Not `Stdout` itself: its line buffer would keep what a full disk refused.
        let out = File::from(stdout.as_fd().try_clone_to_owned()?);
        let (level, handle) = reload::Layer::new(EnvFilter::try_new(&log.level)?);
        let sink = Self::with(log, out, metrics, Some(handle))?;
        let events = Events::new(sink.clone(), colored);
        let subscriber = Registry::default().with(level).with(events);
        tracing::subscriber::set_global_default(subscriber).map_err(|_| LogError::Installed)?;
        Ok(sink)
    }

    /// A sink that writes its access lines to `out`, beside the log of this process.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub fn to(log: &Log, out: impl Write + Send + 'static, metrics: &Metrics) -> io::Result<Self> {
        Self::with(log, out, metrics, None)
    }

    fn with(
        log: &Log,
        out: impl Write + Send + 'static,
        metrics: &Metrics,
        level: Option<reload::Handle<EnvFilter, Registry>>,
    ) -> io::Result<Self> {
        Ok(Self(Arc::new(Inner {
            queue: Queue::start(out, metrics.log_lines_dropped())?,
            json: AtomicBool::new(log.format == LogFormat::Json),
            access: AtomicBool::new(log.access),
            watcher: OnceLock::new(),
            level,
        })))
    }

    /// From now on these settings hold.
    pub fn configure(&self, log: &Log) {
        self.0
            .json
            .store(log.format == LogFormat::Json, Ordering::Relaxed);
        self.0.access.store(log.access, Ordering::Relaxed);
        let Some(handle) = &self.0.level else { return };
        match EnvFilter::try_new(&log.level) {
            // It fails only when the subscriber is gone, and this one stays.
            Ok(level) => drop(handle.reload(level)),
            Err(error) => tracing::error!(level = log.level, "log.level stays as it was: {error}"),
        }
    }

    /// From now on `watch` sees the record of each exchange that ends; the first one to watch does.
    /// It is called on the threads that serve: it may not wait.
    pub fn watch(&self, watch: impl Fn(&Record<'_>) + Send + Sync + 'static) {
        // A second one is dropped.
        let _ = self.0.watcher.set(Watcher(Box::new(watch)));
    }

    /// Writes the line of an exchange that ends now.
    pub fn access(&self, record: &Record<'_>) {
        if let Some(Watcher(watch)) = self.0.watcher.get() {
            watch(record);
        }
        if !self.0.access.load(Ordering::Relaxed) {
            return;
        }
        self.line(|json, ts, line| {
            if json {
                record.write_json(ts, line);
            } else {
                record.write_text(ts, line);
            }
        });
    }

    /// Waits for what was handed in to be written, a second at most. For the end of the process:
    /// never on a thread that serves.
    pub fn flush(&self) {
        self.0.queue.flush(LAST_LINES);
    }

    /// Hands in the line that `write` makes from whether it is to be JSON, and from the time.
    pub(super) fn line(&self, write: impl FnOnce(bool, &str, &mut Vec<u8>)) {
        let json = self.0.json.load(Ordering::Relaxed);
        // Taken, not borrowed: a value's Display may log, and the thread may be ending.
        let mut scratch = SCRATCH.try_with(Cell::take).unwrap_or_default();
        scratch.line.clear();
        write(json, scratch.stamp.at(SystemTime::now()), &mut scratch.line);
        scratch.line.push(b'\n');
        self.0.queue.push(&scratch.line);
        scratch.line.shrink_to(KEPT_SCRATCH);
        let _ = SCRATCH.try_with(|kept| kept.set(scratch));
    }
}

/// Capacity that a thread's scratch keeps.
const KEPT_SCRATCH: usize = 8 * 1024;

/// A line is made in the thread's own buffer, so that the queue's lock covers only a copy.
#[derive(Default)]
struct Scratch {
    line: Vec<u8>,
    stamp: Stamp,
}

thread_local! {
    static SCRATCH: Cell<Scratch> = Cell::default();
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
