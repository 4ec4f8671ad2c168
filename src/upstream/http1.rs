//! HTTP/1.1 connections to one server: one exchange at a time, kept for the next.
//!
//! Each network thread keeps its own stack, so that a connection is driven where it is used. A
//! connection that is not ready for a request is never handed out, nor one that was idle too long.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::client::{SLOTS, slot};
use super::connect::held_to_grammar;
use super::error::ConnectError;
use super::gate::Gate;
use super::io::Io;
use super::sending::Sending;

/// What a connection reads at once, at most; hyper begins small and adapts. Bounds heads, too.
const READ_BUFFER: usize = 256 * 1024;

/// The kept connections to one server.
pub(super) struct Pool {
    slots: Box<[Slot]>,
    idle_timeout: Duration,
    /// A connection that speaks for one client serves one exchange.
    keeps: bool,
    gate: Arc<Gate>,
}

#[derive(Default)]
#[repr(align(64))] // Threads do not share a cache line.
struct Slot(Mutex<Stack>);

/// The oldest in front; the youngest, which is the warmest, is taken first.
#[derive(Default)]
struct Stack {
    idle: VecDeque<Idle>,
    reaped: bool,
}

struct Idle {
    sender: SendRequest<Sending>,
    seat: Arc<Seat>,
    since: Instant,
}

/// Where a connection's sender waits for the end of the exchange; its driver looks after it.
struct Seat {
    pool: Weak<Pool>,
    slot: usize,
    waiting: Mutex<Option<SendRequest<Sending>>>,
}

/// A connection that is ready for one exchange.
pub(super) struct Link {
    pub(super) sender: SendRequest<Sending>,
    pub(super) reused: bool,
    seat: Arc<Seat>,
}

impl Pool {
    pub(super) fn new(idle_timeout: Duration, keeps: bool, gate: Arc<Gate>) -> Arc<Self> {
        let slots = (0..SLOTS).map(|_| Slot::default()).collect();
        Arc::new(Self {
            slots,
            idle_timeout,
            keeps,
            gate,
        })
    }

    /// A kept connection of this thread.
    pub(super) fn take(&self) -> Option<Link> {
        self.take_from(slot())
    }

    /// A kept connection of any thread.
    pub(super) fn take_anywhere(&self) -> Option<Link> {
        (0..SLOTS).find_map(|slot| self.take_from(slot))
    }

    fn take_from(&self, slot: usize) -> Option<Link> {
        let mut stack = self.slots[slot].0.lock();
        while let Some(Idle {
            sender,
            seat,
            since,
        }) = stack.idle.pop_back()
        {
            if since.elapsed() < self.idle_timeout && sender.is_ready() {
                return Some(Link {
                    sender,
                    reused: true,
                    seat,
                });
            }
        }
        None
    }

    /// Closes one kept connection, the longest unused of some thread; false: there is none.
    pub(super) fn close_one(&self) -> bool {
        self.slots.iter().any(|slot| {
            let idle = slot.0.lock().idle.pop_front();
            idle.is_some()
        })
    }

    pub(super) fn close_idle(&self) {
        for slot in &self.slots {
            let idle = std::mem::take(&mut slot.0.lock().idle);
            drop(idle);
        }
    }

    /// Begins HTTP on a new connection, driven on this thread.
    pub(super) async fn begin(self: &Arc<Self>, io: Io) -> Result<Link, ConnectError> {
        let io = TokioIo::new(held_to_grammar(io));
        let (sender, connection) = Builder::new()
            .max_buf_size(READ_BUFFER)
            .handshake(io)
            .await
            .map_err(ConnectError::Http)?;
        let seat = Arc::new(Seat {
            pool: if self.keeps {
                Arc::downgrade(self)
            } else {
                Weak::new()
            },
            slot: slot(),
            waiting: Mutex::new(None),
        });
        let driven = Arc::clone(&seat);
        let mut connection = connection.with_upgrades();
        tokio::spawn(async move {
            let ended = poll_fn(|cx| {
                let polled = Pin::new(&mut connection).poll(cx);
                if polled.is_pending() {
                    driven.settle();
                }
                polled
            });
            if let Err(error) = ended.await {
                tracing::debug!(%error, "a connection to a server ended");
            }
        });
        Ok(Link {
            sender,
            reused: false,
            seat,
        })
    }

    fn keep(self: &Arc<Self>, slot: usize, sender: SendRequest<Sending>, seat: Arc<Seat>) {
        let mut stack = self.slots[slot].0.lock();
        stack.idle.push_back(Idle {
            sender,
            seat,
            since: Instant::now(),
        });
        let reaped = std::mem::replace(&mut stack.reaped, true);
        drop(stack);
        if !reaped {
            tokio::spawn(reap(Arc::downgrade(self), slot));
        }
        self.gate.freed();
    }

    /// Closes what was idle too long; the time of the next look, if anything is left to look at.
    fn reap(&self, slot: usize) -> Option<Instant> {
        let mut stack = self.slots[slot].0.lock();
        loop {
            let Some(oldest) = stack.idle.front() else {
                stack.reaped = false;
                return None;
            };
            let due = oldest.since + self.idle_timeout;
            if due > Instant::now() {
                return Some(due);
            }
            stack.idle.pop_front();
        }
    }
}

/// Runs while a thread keeps connections to the server.
async fn reap(pool: Weak<Pool>, slot: usize) {
    while let Some(due) = pool.upgrade().and_then(|pool| pool.reap(slot)) {
        tokio::time::sleep_until(due).await;
    }
}

impl Link {
    /// The head came: the connection is kept as soon as the exchange is over, if it can be.
    pub(super) fn leave(self) {
        *self.seat.waiting.lock() = Some(self.sender);
        self.seat.settle();
    }
}

impl Seat {
    /// Keeps the connection if its exchange is over.
    ///
    /// The driver asks after each step, and who leaves the sender asks once: whichever comes
    /// second sees that it is ready.
    fn settle(self: &Arc<Self>) {
        let mut waiting = self.waiting.lock();
        let Some(sender) = waiting.take_if(|sender| sender.is_ready() || sender.is_closed()) else {
            return;
        };
        drop(waiting);
        if let Some(pool) = self.pool.upgrade()
            && !sender.is_closed()
        {
            pool.keep(self.slot, sender, Arc::clone(self));
        }
    }
}
