//! Answers: a head, perhaps informational ones before it, and a body whose length depends on the
//! request's method and the status (RFC 9112 section 6.3).

use super::chars::is_clean;
use super::chunks::Chunks;
use super::fields::{Extent, Fields};
use super::lines::Lines;
use super::refusal::Refusal;
use super::{Limits, MethodKind, Step};

/// What every answer begins with.
const START: &[u8] = b"HTTP/1.";

/// Finds the borders of the answers on one connection, one exchange at a time.
#[derive(Debug)]
pub struct ResponseFramer {
    limits: Limits,
    asked: MethodKind,
    state: State,
}

/// A valid head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseHead {
    /// Bytes, the empty line included.
    pub len: usize,
    /// 100 to 999.
    pub status: u16,
}

#[derive(Debug)]
enum State {
    /// Nothing was asked, or the answer is complete.
    Rest,
    Head(Head),
    Length(u64),
    Chunked(Chunks),
    /// Until the connection ends: a body without a length, or another protocol.
    Opaque,
}

#[derive(Debug, Default)]
struct Head {
    lines: Lines,
    line: Option<StatusLine>,
    fields: Fields,
}

#[derive(Debug, Clone, Copy)]
struct StatusLine {
    status: u16,
    http10: bool,
}

impl ResponseFramer {
    /// Nothing is asked yet.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            asked: MethodKind::Other,
            state: State::Rest,
        }
    }

    /// A request was sent; what comes is its answer.
    pub fn expect(&mut self, asked: MethodKind) {
        self.asked = asked;
        self.state = State::Head(Head::default());
    }

    /// What `bytes` begin with; they may not be empty. Bytes that answer nothing are taken for a
    /// body: the client that reads them has to close.
    pub fn step(&mut self, bytes: &[u8]) -> Step<ResponseHead> {
        let taken = match &mut self.state {
            State::Rest | State::Opaque => bytes.len(),
            State::Head(head) => match head.read(bytes, self.limits) {
                Ok(None) => return Step::Partial,
                Ok(Some((head, extent))) => {
                    self.state = self.after(head.status, extent);
                    return Step::Head(head);
                }
                Err(refusal) => return Step::Refused(refusal),
            },
            State::Length(left) => {
                let taken = usize::try_from(*left)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                *left -= taken as u64;
                taken
            }
            State::Chunked(chunks) => match chunks.take(bytes) {
                Ok(taken) => taken,
                Err(refusal) => return Step::Refused(refusal),
            },
        };
        self.close_body();
        Step::Body(taken)
    }

    /// No answer is under way.
    #[must_use]
    pub const fn is_at_rest(&self) -> bool {
        matches!(self.state, State::Rest)
    }

    /// There are no borders up to the end of the connection.
    #[must_use]
    pub const fn is_opaque(&self) -> bool {
        matches!(self.state, State::Opaque)
    }

    fn after(&self, status: u16, extent: Extent) -> State {
        match (status, self.asked, extent) {
            (101, ..) | (200..=299, MethodKind::Connect, _) => State::Opaque,
            (100..=199, ..) => State::Head(Head::default()),
            (204 | 304, ..) | (_, MethodKind::Head, _) | (.., Extent::Length(0)) => State::Rest,
            (.., Extent::Unstated) => State::Opaque,
            (.., Extent::Length(length)) => State::Length(length),
            (.., Extent::Chunked) => State::Chunked(Chunks::new(self.limits.fields)),
        }
    }

    fn close_body(&mut self) {
        let done = match &self.state {
            State::Rest | State::Head(_) | State::Opaque => false,
            State::Length(left) => *left == 0,
            State::Chunked(chunks) => chunks.is_done(),
        };
        if done {
            self.state = State::Rest;
        }
    }
}

impl Head {
    fn read(
        &mut self,
        head: &[u8],
        limits: Limits,
    ) -> Result<Option<(ResponseHead, Extent)>, Refusal> {
        // What is no HTTP may hold no LF at all: not waited for.
        let start = head.len().min(START.len());
        if self.line.is_none() && head[..start] != START[..start] {
            return Err(Refusal::StatusLine);
        }
        while let Some(line) = self.lines.next(head, limits.head)? {
            match self.line {
                None => self.line = Some(StatusLine::parse(line)?),
                Some(StatusLine { status, http10 }) if line.is_empty() => {
                    let extent = self.fields.extent(http10)?;
                    return Ok(Some((
                        ResponseHead {
                            len: self.lines.taken(),
                            status,
                        },
                        extent,
                    )));
                }
                Some(_) => {
                    self.fields.line(line, limits.fields)?;
                }
            }
        }
        Ok(None)
    }
}

impl StatusLine {
    /// The reason phrase may be empty, and the space before it absent, as many servers write it.
    fn parse(line: &[u8]) -> Result<Self, Refusal> {
        let (version, rest) = line.split_at_checked(9).ok_or(Refusal::StatusLine)?;
        let http10 = match version {
            b"HTTP/1.1 " => false,
            b"HTTP/1.0 " => true,
            _ => return Err(Refusal::StatusLine),
        };
        let (digits, reason) = rest.split_at_checked(3).ok_or(Refusal::StatusLine)?;
        let reason_is_good = reason.is_empty() || (reason[0] == b' ' && is_clean(reason));
        if !reason_is_good || !digits.iter().all(u8::is_ascii_digit) || digits[0] == b'0' {
            return Err(Refusal::StatusLine);
        }
        let status = digits
            .iter()
            .fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
        Ok(Self { status, http10 })
    }
}
