//! What the service and the gate tell each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};
use std::time::Instant;

use bytes::BytesMut;
use parking_lot::Mutex;

use super::write::CONTINUE;
use crate::frame::http1::Refusal;

/// The service's end of a gate. It stays valid over all requests of the connection.
#[derive(Debug, Clone)]
pub struct Handle(pub(super) Arc<Shared>);

/// What the request that hyper just handed to the service is.
#[derive(Debug)]
#[must_use = "hyper's request may stand for a refused one"]
pub enum Turn {
    /// A request of the client. Keep the exchange until its answer is wholly handed over.
    Serve(Exchange),
    /// A stand-in for a head that was refused: drop it, and answer with the refusal's status.
    Refuse(Box<Refused>),
}

/// A head that was refused, as far as it can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub refusal: Refusal,
    /// A token.
    pub method: Option<String>,
    /// Visible ASCII, at most 1,024 bytes.
    pub target: Option<String>,
    /// Visible ASCII, at most 1,024 bytes.
    pub host: Option<String>,
    /// When its first bytes came.
    pub started: Instant,
}

/// Bytes of the connection so far, without TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traffic {
    /// From the client.
    pub read: u64,
    /// To the client.
    pub written: u64,
}

/// One request and its answer. It goes into the answer's body; dropped, the exchange is over.
#[derive(Debug)]
pub struct Exchange {
    shared: Arc<Shared>,
    number: u64,
}

/// A part of an exchange that may outlive its answer, such as the request's body.
#[derive(Debug)]
pub struct Part(Arc<Shared>);

/// Sends informational answers ahead of the answer of one exchange.
#[derive(Debug, Clone)]
pub struct Hints {
    shared: Arc<Shared>,
    number: u64,
}

impl Handle {
    /// To be called exactly once for each request that hyper hands over, before anything else.
    pub fn begin(&self) -> Turn {
        let mut state = self.0.state.lock();
        state.begun += 1;
        if state.begun == state.passed
            && let Some(refused) = state.refused.take()
        {
            return Turn::Refuse(refused);
        }
        state.live += 1;
        state.answering = false;
        let number = state.begun;
        drop(state);
        Turn::Serve(Exchange {
            shared: Arc::clone(&self.0),
            number,
        })
    }

    /// Between two requests, with nothing left to read, to answer or to write: hyper's part of
    /// the connection may be dropped and the gate kept. To be asked after hyper was polled. What
    /// hyper's read buffer holds at this moment is the end of a body nobody wants.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let state = self.0.state.lock();
        state.at_rest && state.flushed && state.live == 0 && state.begun == state.passed
    }

    /// Bytes so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        Traffic {
            read: self.0.read.load(Ordering::Relaxed),
            written: self.0.written.load(Ordering::Relaxed),
        }
    }
}

impl Exchange {
    /// From now on the connection belongs to another protocol: to be called before 101, or 2xx to
    /// CONNECT, is answered. Bytes that the client sent behind its request's head are released.
    /// False if the head did not ask for it; then the connection goes on as HTTP.
    #[must_use]
    pub fn tunnel(&self) -> bool {
        self.shared.decide(self.number, Upgrade::Tunnel)
    }

    /// The connection stays HTTP: what the client sent behind the head is its next request. Said
    /// by dropping the exchange too.
    pub fn not_upgraded(&self) {
        self.shared.decide(self.number, Upgrade::Declined);
    }

    /// For what may outlive the answer and still needs the connection: the request's body.
    #[must_use]
    pub fn part(&self) -> Part {
        self.shared.state.lock().live += 1;
        Part(Arc::clone(&self.shared))
    }

    /// Sends 103, from wherever it is received.
    #[must_use]
    pub fn hints(&self) -> Hints {
        Hints {
            shared: Arc::clone(&self.shared),
            number: self.number,
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.live -= 1;
        let waker = state.decide(self.number, Upgrade::Declined);
        drop(state);
        if let Some(waker) = waker.flatten() {
            waker.wake();
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.0.state.lock().live -= 1;
    }
}

impl Hints {
    /// Sends a whole 1xx answer, as bytes, at once. False, and nothing is sent, if the answer has
    /// begun or bytes of an earlier one are still on their way. Never for HTTP/1.0.
    #[must_use]
    pub fn send(&self, answer: &[u8]) -> bool {
        let mut state = self.shared.state.lock();
        if state.begun != self.number || state.answering || !state.flushed || state.live == 0 {
            return false;
        }
        state.hints.extend_from_slice(answer);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }
}

// === The gate's end ===

#[derive(Debug, Default)]
pub(super) struct Shared {
    read: AtomicU64,
    written: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Heads that hyper was given.
    passed: u64,
    /// Heads that the service took up.
    begun: u64,
    /// Exchanges and parts that were not dropped.
    live: u32,
    /// The reader stands between two requests and holds nothing.
    at_rest: bool,
    /// hyper has nothing buffered that it did not write.
    flushed: bool,
    /// A byte of the current answer was written, or tried to be.
    answering: bool,
    /// About the head that passed last.
    upgrade: Upgrade,
    /// It says HTTP/1.0.
    http10: bool,
    hints: BytesMut,
    /// Stands for the head that passed last.
    refused: Option<Box<Refused>>,
    /// Of the task that polls hyper's connection.
    waker: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upgrade {
    Declined,
    Undecided,
    Tunnel,
}

impl Default for State {
    fn default() -> Self {
        Self {
            passed: 0,
            begun: 0,
            live: 0,
            at_rest: true,
            flushed: true,
            answering: false,
            upgrade: Upgrade::Declined,
            http10: false,
            hints: BytesMut::new(),
            refused: None,
            waker: None,
        }
    }
}

impl State {
    /// The task to wake, if there was anything to decide about this exchange.
    fn decide(&mut self, number: u64, decision: Upgrade) -> Option<Option<Waker>> {
        if self.upgrade != Upgrade::Undecided || self.passed != number {
            return None;
        }
        self.upgrade = decision;
        Some(self.waker.take())
    }

    fn remember(&mut self, cx: &Context<'_>) {
        if !matches!(&self.waker, Some(waker) if waker.will_wake(cx.waker())) {
            self.waker = Some(cx.waker().clone());
        }
    }
}

impl Shared {
    fn decide(&self, number: u64, decision: Upgrade) -> bool {
        let decided = self.state.lock().decide(number, decision);
        let done = decided.is_some();
        if let Some(waker) = decided.flatten() {
            waker.wake();
        }
        done
    }

    pub(super) fn count_read(&self, bytes: usize) {
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn count_written(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// So many heads pass; whether the last one leaves open what protocol follows.
    pub(super) fn passed(&self, heads: u64, undecided: bool, http10: Option<bool>, at_rest: bool) {
        let mut state = self.state.lock();
        state.passed += heads;
        state.http10 = http10.unwrap_or(state.http10);
        state.at_rest = at_rest;
        if undecided {
            state.upgrade = Upgrade::Undecided;
        }
    }

    /// A request waits for its answer, or for the end of that.
    pub(super) fn owes(&self) -> bool {
        let state = self.state.lock();
        state.live > 0 || state.begun < state.passed
    }

    /// Has the client sent something that it may discard, if nothing of an answer was.
    pub(super) fn probe(&self) {
        let mut state = self.state.lock();
        let waits = state.begun == state.passed && state.live > 0 && !state.answering;
        if waits && state.flushed && !state.http10 {
            state.hints.extend_from_slice(CONTINUE);
        }
    }

    /// A stand-in passes, for a head that was refused.
    pub(super) fn refused(&self, refused: Refused) {
        let mut state = self.state.lock();
        state.passed += 1;
        state.at_rest = false;
        state.refused = Some(Box::new(refused));
    }

    pub(super) fn set_at_rest(&self, at_rest: bool) {
        self.state.lock().at_rest = at_rest;
    }

    /// What follows the last head; the task is woken when it is decided.
    pub(super) fn upgrade(&self, cx: &Context<'_>) -> Upgrade {
        let mut state = self.state.lock();
        if state.upgrade == Upgrade::Undecided {
            state.remember(cx);
        }
        state.upgrade
    }

    /// hyper writes; `answer` unless it is its own 100. Returns what has to go first.
    pub(super) fn writing(&self, answer: bool) -> BytesMut {
        let mut state = self.state.lock();
        state.flushed = false;
        state.answering |= answer;
        std::mem::take(&mut state.hints)
    }

    /// hyper flushes: all it had was written. Returns what has to go first.
    pub(super) fn flushing(&self) -> BytesMut {
        std::mem::take(&mut self.state.lock().hints)
    }

    /// All was written and flushed; the task is woken for hints as long as they may come.
    pub(super) fn flushed(&self, cx: &Context<'_>) {
        let mut state = self.state.lock();
        state.flushed = true;
        if state.live > 0 && !state.answering {
            state.remember(cx);
        }
    }
}
