//! HTTP/2 connections to one server: each carries many exchanges, a few of them share the load.
//!
//! hyper-util's pool is keyed by the authority of the request, which here is the client's and not
//! the server's; so this is a pool of our own. No pings are sent: gRPC servers take more than one
//! in five minutes for an attack.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::sync::{MutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::client::{SLOTS, slot};
use super::error::ConnectError;
use super::io::Io;
use super::sending::Sending;

/// A further connection is opened when each has so many streams.
const BUSY: usize = 100;

/// Connections of one thread to one server.
const MOST: usize = 4;

/// What a server may send ahead on one stream, and on all of a connection.
const STREAM_WINDOW: u32 = 2 * 1024 * 1024;
const CONNECTION_WINDOW: u32 = 8 * 1024 * 1024;

/// Larger frames, fewer steps: four times the least that HTTP/2 allows.
const FRAME: u32 = 64 * 1024;

/// Bytes of a response head or of trailers; grpc-status-details-bin alone may be 8 KiB.
const HEADS: u32 = 64 * 1024;

/// Looks at an idle connection within its time.
const LOOKS: u32 = 4;

/// The connections to one server.
pub(super) struct Pool {
    slots: Box<[Slot]>,
    idle_timeout: Duration,
}

#[derive(Default)]
#[repr(align(64))] // Threads do not share a cache line.
struct Slot {
    lines: Mutex<Lines>,
    opening: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Lines {
    all: Vec<Arc<Line>>,
    reaped: bool,
}

/// One connection.
struct Line {
    sender: SendRequest<Sending>,
    born: Instant,
    /// A permit a stream: those that are out are under way.
    streams: Arc<Semaphore>,
    /// Streams that the server allows.
    allowed: Arc<AtomicUsize>,
    /// Streams ever begun, and what the reaper last saw of that.
    begun: AtomicU64,
    seen: Mutex<(u64, u32)>,
}

/// A stream's place on a connection.
pub(super) struct Link {
    pub(super) sender: SendRequest<Sending>,
    pub(super) reused: bool,
    /// All connections are busy and there may be one more.
    pub(super) wants_more: bool,
    pub(super) stream: Option<OwnedSemaphorePermit>,
}

impl Pool {
    pub(super) fn new(idle_timeout: Duration) -> Arc<Self> {
        let slots = (0..SLOTS).map(|_| Slot::default()).collect();
        Arc::new(Self {
            slots,
            idle_timeout,
        })
    }

    /// A stream on the least busy connection of this thread, begun `since` then if that is given.
    pub(super) fn take(&self, since: Option<Instant>) -> Option<Link> {
        self.take_from(slot(), since)
    }

    /// A stream on a connection of any thread.
    pub(super) fn take_anywhere(&self, since: Option<Instant>) -> Option<Link> {
        (0..SLOTS).find_map(|slot| self.take_from(slot, since))
    }

    fn take_from(&self, slot: usize, since: Option<Instant>) -> Option<Link> {
        let mut lines = self.slots[slot].lines.lock();
        lines.all.retain(|line| !line.sender.is_closed());
        let young = |line: &&Arc<Line>| since.is_none_or(|since| line.born >= since);
        let line = lines
            .all
            .iter()
            .filter(young)
            .min_by_key(|line| line.streams())?;
        let wants_more = lines.all.len() < MOST && line.is_busy();
        Some(line.link(wants_more))
    }

    /// The right to open a connection: one request does it, the others wait for what it brings.
    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.slots[slot()].opening.lock().await
    }

    /// The same, if nobody has it.
    pub(super) fn try_turn(&self) -> Option<MutexGuard<'_, ()>> {
        self.slots[slot()].opening.try_lock().ok()
    }

    /// Closes one connection without streams; false: there is none.
    pub(super) fn close_one(&self) -> bool {
        self.slots.iter().any(|slot| {
            let mut lines = slot.lines.lock();
            let idle = lines.all.iter().position(|line| line.streams() == 0);
            idle.map(|index| lines.all.swap_remove(index)).is_some()
        })
    }

    pub(super) fn close_idle(&self) {
        for slot in &self.slots {
            slot.lines.lock().all.retain(|line| line.streams() > 0);
        }
    }

    /// Begins HTTP/2 on a new connection, driven on this thread, and takes a stream on it.
    pub(super) async fn begin(self: &Arc<Self>, io: Io) -> Result<Link, ConnectError> {
        let (sender, mut connection) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .adaptive_window(false)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(FRAME)
            .max_header_list_size(HEADS)
            .handshake(TokioIo::new(io))
            .await
            .map_err(ConnectError::Http)?;
        let allowed = Arc::new(AtomicUsize::new(connection.current_max_send_streams()));
        let line = Arc::new(Line {
            sender,
            born: Instant::now(),
            streams: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            allowed: Arc::clone(&allowed),
            begun: AtomicU64::new(0),
            seen: Mutex::new((0, 0)),
        });
        tokio::spawn(async move {
            let ended = poll_fn(|cx| {
                let polled = Pin::new(&mut connection).poll(cx);
                allowed.store(connection.current_max_send_streams(), Ordering::Relaxed);
                polled
            });
            if let Err(error) = ended.await {
                tracing::debug!(%error, "an HTTP/2 connection to a server ended");
            }
        });
        let mut link = line.link(false);
        link.reused = false;
        self.keep(line);
        Ok(link)
    }

    fn keep(self: &Arc<Self>, line: Arc<Line>) {
        let slot = slot();
        let mut lines = self.slots[slot].lines.lock();
        lines.all.push(line);
        let reaped = std::mem::replace(&mut lines.reaped, true);
        drop(lines);
        if !reaped {
            // Looked at so often, a connection is closed in the last quarter of its time.
            let pause = (self.idle_timeout / LOOKS).max(Duration::from_millis(1));
            tokio::spawn(reap(Arc::downgrade(self), slot, pause));
        }
    }

    /// Lets go of what ended or was idle too long; false: nothing is left to look at.
    fn reap(&self, slot: usize) -> bool {
        let mut lines = self.slots[slot].lines.lock();
        lines
            .all
            .retain(|line| !line.sender.is_closed() && !line.was_idle());
        lines.reaped = !lines.all.is_empty();
        lines.reaped
    }
}

/// Runs while a thread keeps connections to the server.
async fn reap(pool: Weak<Pool>, slot: usize, pause: Duration) {
    loop {
        tokio::time::sleep(pause).await;
        if !pool.upgrade().is_some_and(|pool| pool.reap(slot)) {
            return;
        }
    }
}

impl Line {
    fn streams(&self) -> usize {
        Semaphore::MAX_PERMITS - self.streams.available_permits()
    }

    fn is_busy(&self) -> bool {
        self.streams() >= self.allowed.load(Ordering::Relaxed).min(BUSY)
    }

    fn link(&self, wants_more: bool) -> Link {
        self.begun.fetch_add(1, Ordering::Relaxed);
        Link {
            sender: self.sender.clone(),
            reused: true,
            wants_more,
            stream: Arc::clone(&self.streams).try_acquire_owned().ok(),
        }
    }

    /// Nothing was under way at this look and the ones before it.
    fn was_idle(&self) -> bool {
        let begun = self.begun.load(Ordering::Relaxed);
        let mut seen = self.seen.lock();
        let quiet = self.streams() == 0;
        *seen = if quiet && seen.0 == begun {
            (begun, seen.1 + 1)
        } else {
            (begun, u32::from(quiet))
        };
        seen.1 >= LOOKS
    }
}
