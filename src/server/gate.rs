//! The strict gate in front of hyper's HTTP/1 server.
//!
//! It stands around the client's socket, finds the borders of requests with
//! [`RequestFramer`] and lets only whole, valid heads through: hyper never sees a partial or a bad
//! one, hence never answers on its own. Bytes stay where the socket put them; only a head that
//! comes in pieces is held.
//!
//! A bad or late head becomes a *stand-in*: a plain request that hyper dispatches in its turn,
//! behind the answers it still owes, and that [`Handle::begin`] tells from a real one. So each
//! refusal is answered, logged and counted where every exchange is, and hyper closes after it.
//! A body that breaks its framing is an error of that body, with the [`Refusal`] among its causes.
//!
//! It must never let a byte through that a refusal stands before, and never wait on its own
//! account while an answer is owed.

mod alarm;
mod handle;
mod left;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::time::Instant;

use crate::frame::http1::{Backlog, Legible, Limits, Refusal, RequestFramer, Step};
use alarm::Alarm;
use handle::Shared;
pub use handle::{Exchange, Handle, Hints, Part, Refused, Traffic, Turn};
pub use left::Peer;

/// As many as hyper takes.
const MOST_FIELDS: usize = 100;

/// The bounds of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateLimits {
    /// Bytes of a request's head. hyper's `max_buf_size` has to be larger.
    pub head: usize,
    /// From a head's first byte to its last; zero is endless.
    pub head_timeout: Duration,
    /// Between two writes that the client takes; zero is endless.
    pub send: Duration,
}

/// The socket, as hyper may see it.
#[derive(Debug)]
pub struct Gate<IO> {
    io: IO,
    shared: Arc<Shared>,
    limits: GateLimits,
    framer: RequestFramer,
    /// An incomplete head, or good bytes for which hyper has no room yet.
    backlog: Backlog,
    /// The backlog was not framed yet.
    unframed: bool,
    mode: Mode,
    /// The head that passed last may end HTTP on this connection.
    upgrade: bool,
    /// The client has ended its side.
    ended: bool,
    late: Alarm,
    stalled: Alarm,
    /// Of a client that has ended its side.
    left: Option<Box<Alarm>>,
    /// Informational answers being written.
    hints: BytesMut,
    linger: Option<Box<write::Linger>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Framing,
    /// The bytes behind the last request are nobody's until the service decides.
    Undecided,
    Tunnel,
    /// The stand-in is the last thing that hyper gets.
    Refused,
    Broken(Refusal),
}

/// What becomes of the bytes that may not pass.
#[derive(Debug, Clone, Copy)]
enum Rest {
    None,
    Hold,
    Drop,
    Refuse(Refusal),
}

impl<IO> Gate<IO> {
    /// Around a fresh connection, of which `prefix` was read already.
    pub fn new(io: IO, limits: GateLimits, prefix: &[u8]) -> Self {
        let head = Limits {
            head: limits.head,
            fields: MOST_FIELDS,
        };
        let mut gate = Self {
            io,
            shared: Arc::default(),
            limits,
            framer: RequestFramer::new(head),
            backlog: Backlog::default(),
            unframed: false,
            mode: Mode::Framing,
            upgrade: false,
            ended: false,
            late: Alarm::default(),
            stalled: Alarm::default(),
            left: None,
            hints: BytesMut::new(),
            linger: None,
        };
        if !prefix.is_empty() {
            gate.arrived(prefix);
        }
        gate
    }

    /// The service's end.
    #[must_use]
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(&self.shared))
    }

    /// The bytes that were read already began to come then.
    pub fn begun(&mut self, at: Instant) {
        self.late.begin_at(at);
    }

    /// The connection itself.
    pub const fn io(&self) -> &IO {
        &self.io
    }

    fn arrived(&mut self, bytes: &[u8]) {
        self.shared.count_read(bytes.len());
        self.shared.set_at_rest(false);
        self.backlog.hold(bytes);
        self.unframed = true;
    }

    /// Frames the bytes: how many of them pass, and what becomes of the others.
    fn frame(&mut self, bytes: &[u8]) -> (usize, Rest) {
        let (mut at, mut heads, mut undecided) = (0, 0, false);
        let mut http10 = None;
        let rest = loop {
            if self.upgrade && self.framer.is_between() {
                self.mode = Mode::Undecided;
                break Rest::Hold;
            }
            if at == bytes.len() {
                break Rest::None;
            }
            match self.framer.step(&bytes[at..]) {
                Step::Head(head) => {
                    at += head.len;
                    heads += 1;
                    self.upgrade = head.upgrade;
                    undecided = head.upgrade;
                    http10 = Some(head.http10);
                    self.late.clear();
                }
                Step::Body(taken) => at += taken,
                Step::Blank => break Rest::Drop,
                Step::Partial => break Rest::Hold,
                Step::Refused(refusal) => break Rest::Refuse(refusal),
            }
        };
        let between = self.mode == Mode::Framing && self.framer.is_between();
        let at_rest = between && !matches!(rest, Rest::Hold | Rest::Refuse(_));
        self.shared.passed(heads, undecided, http10, at_rest);
        (at, rest)
    }

    fn frame_backlog(&mut self) {
        self.unframed = false;
        let mut bytes = self.backlog.take();
        let (clean, rest) = self.frame(&bytes);
        if matches!(rest, Rest::Hold) {
            self.backlog.restore(bytes, clean);
            self.settle(rest, &[]);
        } else {
            let tail = bytes.split_off(clean);
            self.backlog.restore(bytes, clean);
            self.settle(rest, &tail);
        }
    }

    fn settle(&mut self, rest: Rest, tail: &[u8]) {
        match rest {
            Rest::None | Rest::Drop => {}
            Rest::Hold => {
                self.backlog.hold(tail);
                if self.mode == Mode::Framing {
                    self.late.begin();
                }
            }
            Rest::Refuse(refusal) if self.framer.is_in_body() => self.mode = Mode::Broken(refusal),
            Rest::Refuse(refusal) => self.refuse(refusal, tail),
        }
    }

    /// Puts the stand-in where the bad head was.
    fn refuse(&mut self, refusal: Refusal, head: &[u8]) {
        let legible = Legible::of(head);
        self.backlog.pass(match legible.method {
            // So that hyper sends no body where the client expects none.
            Some("HEAD") => {
                b"HEAD / HTTP/1.1\r\nhost: refused.invalid\r\nconnection: close\r\n\r\n"
            }
            _ => b"GET / HTTP/1.1\r\nhost: refused.invalid\r\nconnection: close\r\n\r\n",
        });
        self.mode = Mode::Refused;
        self.shared.refused(Refused {
            refusal,
            method: legible.method.map(Into::into),
            target: legible.target.map(Into::into),
            host: legible.host.map(Into::into),
            started: self.late.begin().into_std(),
        });
        self.late.rest();
    }
}
