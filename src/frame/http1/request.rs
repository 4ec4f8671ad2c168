//! Requests: from a head to its body to the next head.

use super::chars::{is_token, trim};
use super::chunks::Chunks;
use super::fields::{Extent, Field, Fields};
use super::lines::Lines;
use super::refusal::Refusal;
use super::target::{check_host, check_target};
use super::{Limits, MethodKind, Step};

/// Finds the borders of the requests on one connection.
#[derive(Debug)]
pub struct RequestFramer {
    limits: Limits,
    state: State,
}

/// A valid head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestHead {
    /// Bytes, the empty line included.
    pub len: usize,
    /// What the answer's length depends on.
    pub method: MethodKind,
    /// It says HTTP/1.0.
    pub http10: bool,
    /// Its connection may become another protocol's: CONNECT, or an Upgrade that Connection names.
    pub upgrade: bool,
}

#[derive(Debug)]
enum State {
    Head(Head),
    Length(u64),
    Chunked(Chunks),
}

/// What an incomplete head said so far.
#[derive(Debug, Default)]
struct Head {
    lines: Lines,
    /// The empty line before it was seen, and taken.
    blank: bool,
    line: Option<RequestLine>,
    fields: Fields,
    host: bool,
    upgrade: bool,
    connection_upgrade: bool,
}

#[derive(Debug, Clone, Copy)]
struct RequestLine {
    method: MethodKind,
    http10: bool,
}

impl RequestFramer {
    /// Waits for the first head.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: State::Head(Head::default()),
        }
    }

    /// What `bytes` begin with; they may not be empty.
    pub fn step(&mut self, bytes: &[u8]) -> Step<RequestHead> {
        let taken = match &mut self.state {
            State::Head(head) => match head.read(bytes, self.limits) {
                Ok(step) => return self.open_body(step),
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

    /// No byte of a next request was seen.
    #[must_use]
    pub fn is_between(&self) -> bool {
        matches!(&self.state, State::Head(head) if head.lines.is_fresh())
    }

    /// Within a body.
    #[must_use]
    pub const fn is_in_body(&self) -> bool {
        !matches!(self.state, State::Head(_))
    }

    fn open_body(&mut self, step: Step<(RequestHead, Extent)>) -> Step<RequestHead> {
        let (head, extent) = match step {
            Step::Head(whole) => whole,
            Step::Body(taken) => return Step::Body(taken),
            Step::Blank => return Step::Blank,
            Step::Partial => return Step::Partial,
            Step::Refused(refusal) => return Step::Refused(refusal),
        };
        self.state = match extent {
            Extent::Unstated | Extent::Length(0) => State::Head(Head::default()),
            Extent::Length(length) => State::Length(length),
            Extent::Chunked => State::Chunked(Chunks::new(self.limits.fields)),
        };
        Step::Head(head)
    }

    fn close_body(&mut self) {
        let done = match &self.state {
            State::Head(_) => false,
            State::Length(left) => *left == 0,
            State::Chunked(chunks) => chunks.is_done(),
        };
        if done {
            self.state = State::Head(Head::default());
        }
    }
}

impl Head {
    fn read(
        &mut self,
        bytes: &[u8],
        limits: Limits,
    ) -> Result<Step<(RequestHead, Extent)>, Refusal> {
        let blank = match bytes {
            b"\r" if !self.blank => return Ok(Step::Partial),
            b"\r\n" if !self.blank => {
                self.blank = true;
                return Ok(Step::Blank);
            }
            [b'\r', b'\n', ..] if !self.blank => 2,
            _ => 0,
        };
        let head = &bytes[blank..];
        if self.lines.is_fresh() {
            check_first_byte(head)?;
        }
        loop {
            let cut = self.lines.next(head, limits.head);
            let Some(line) = cut.map_err(|refusal| self.name_excess(refusal, head, limits))? else {
                return Ok(Step::Partial);
            };
            match self.line {
                None => self.line = Some(RequestLine::parse(line)?),
                Some(request) if line.is_empty() => {
                    return self.finish(request, blank).map(Step::Head);
                }
                Some(_) => self.field(line, limits.fields)?,
            }
        }
    }

    /// Of a line that is too long: whether the target is to blame.
    fn name_excess(&self, refusal: Refusal, head: &[u8], limits: Limits) -> Refusal {
        if refusal != Refusal::HeadTooLarge || self.line.is_some() {
            return refusal;
        }
        let line = &head[..limits.head.min(head.len())];
        match line.iter().position(|&byte| !is_token(byte)) {
            Some(end) if line[end] == b' ' => match memchr::memchr(b' ', &line[end + 1..]) {
                None => Refusal::TargetTooLong,
                Some(_) => Refusal::HeadTooLarge,
            },
            _ => Refusal::Method,
        }
    }

    fn field(&mut self, line: &[u8], most: usize) -> Result<(), Refusal> {
        match self.fields.line(line, most)? {
            Field::Host(_) if self.host => return Err(Refusal::RepeatedHost),
            Field::Host(value) => {
                check_host(value)?;
                self.host = true;
            }
            Field::Upgrade => self.upgrade = true,
            Field::Connection(value) => {
                self.connection_upgrade |= value
                    .split(|&byte| byte == b',')
                    .any(|option| trim(option).eq_ignore_ascii_case(b"upgrade"));
            }
            Field::Other => {}
        }
        Ok(())
    }

    fn finish(
        &self,
        RequestLine { method, http10 }: RequestLine,
        blank: usize,
    ) -> Result<(RequestHead, Extent), Refusal> {
        if !http10 && !self.host {
            return Err(Refusal::NoHost);
        }
        let extent = self.fields.extent(http10)?;
        let asks = self.upgrade && self.connection_upgrade && !http10;
        let upgrade = asks || method == MethodKind::Connect;
        Ok((
            RequestHead {
                len: blank + self.lines.taken(),
                method,
                http10,
                upgrade,
            },
            extent,
        ))
    }
}

/// Bytes that no request begins with are refused at once: a TLS hello may hold no LF at all.
fn check_first_byte(head: &[u8]) -> Result<(), Refusal> {
    match head.first() {
        Some(b'\n') => Err(Refusal::BareLf),
        Some(b' ' | b'\t' | b'\r') => Err(Refusal::RequestLine),
        Some(&byte) if !is_token(byte) => Err(Refusal::Method),
        _ => Ok(()),
    }
}

impl RequestLine {
    fn parse(line: &[u8]) -> Result<Self, Refusal> {
        let (method, rest) = split_at_space(line).ok_or(Refusal::RequestLine)?;
        let (target, version) = split_at_space(rest).ok_or(Refusal::RequestLine)?;
        if !method.iter().all(|&byte| is_token(byte)) {
            return Err(Refusal::Method);
        }
        if target.is_empty() || version.is_empty() {
            return Err(Refusal::RequestLine);
        }
        let http10 = match version {
            b"HTTP/1.1" => false,
            b"HTTP/1.0" => true,
            [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
                if major.is_ascii_digit() && minor.is_ascii_digit() =>
            {
                return Err(Refusal::UnsupportedVersion);
            }
            _ if version.contains(&b' ') => return Err(Refusal::RequestLine),
            _ => return Err(Refusal::Version),
        };
        check_target(method, target)?;
        let method = match method {
            b"HEAD" => MethodKind::Head,
            b"CONNECT" => MethodKind::Connect,
            _ => MethodKind::Other,
        };
        Ok(Self { method, http10 })
    }
}

fn split_at_space(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memchr::memchr(b' ', line)?;
    Some((&line[..space], &line[space + 1..]))
}
