//! The strict reading of an app's HTTP/1 answers, between its socket and hyper's client.
//!
//! An answer that two parsers could read differently fails before hyper sees its head: the error
//! has a [`MalformedAnswer`] among its causes, and the client is answered 502 (or cut off, where
//! its head was sent). Bytes stay where the socket put them; only a head in pieces is held.
//!
//! How long an answer is depends on its request, so what hyper writes is framed too. It is never
//! refused here: a request that cannot be framed costs the connection its reuse, nothing else.
//!
//! It must never wait, time or count anything.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::frame::http1::{
    Backlog, Limits, MethodKind, Refusal, RequestFramer, ResponseFramer, Step, Unreadable,
};

/// As many fields as hyper takes; more bytes than any app means.
const ANSWER: Limits = Limits {
    head: 256 * 1024,
    fields: 100,
};
/// What we send was bounded when it came in.
const REQUEST: Limits = Limits {
    head: usize::MAX,
    fields: usize::MAX,
};

/// What an app sent is not HTTP/1 as everybody reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed answer: {0}")]
pub struct MalformedAnswer(pub Refusal);

/// The malformed answer among the causes of an error.
#[must_use]
pub fn malformed_in<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a MalformedAnswer> {
    std::iter::successors(Some(error), |&error: &&'a (dyn Error + 'static)| {
        error.source()
    })
    .find_map(|error| error.downcast_ref())
}

/// The app's socket, as hyper may see it.
#[derive(Debug)]
pub struct Strict<IO> {
    io: IO,
    answer: ResponseFramer,
    backlog: Backlog,
    fault: Option<Refusal>,
    request: Request,
}

/// What is being written.
#[derive(Debug)]
struct Request {
    framer: RequestFramer,
    /// Bytes of the head that were not written yet.
    head: usize,
    /// There is no telling where it ends.
    blind: bool,
}

impl<IO> Strict<IO> {
    /// Around a fresh connection.
    pub fn new(io: IO) -> Self {
        Self {
            io,
            answer: ResponseFramer::new(ANSWER),
            backlog: Backlog::default(),
            fault: None,
            request: Request {
                framer: RequestFramer::new(REQUEST),
                head: 0,
                blind: false,
            },
        }
    }

    /// The connection itself.
    pub const fn io(&self) -> &IO {
        &self.io
    }

    /// How many of the bytes pass; the others wait for more, or are at fault.
    fn frame(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            match self.answer.step(&bytes[at..]) {
                Step::Head(head) => at += head.len,
                Step::Body(taken) => at += taken,
                Step::Blank | Step::Partial => break,
                Step::Refused(refusal) => {
                    self.fault = Some(refusal);
                    break;
                }
            }
        }
        at
    }

    /// The answer is complete, and what comes next could not be told from its request's rest.
    fn is_spent(&self) -> bool {
        self.request.blind && self.answer.is_at_rest()
    }

    /// Looks at what is about to be written: the head of a request comes whole, in the first part.
    fn before_write(&mut self, first: &[u8]) {
        let request = &mut self.request;
        let begins = request.head == 0 && request.framer.is_between();
        if !begins || request.blind || self.answer.is_opaque() || first.is_empty() {
            return;
        }
        let asked = if let Step::Head(head) = request.framer.step(first) {
            request.head = head.len;
            head.method
        } else {
            request.blind = true;
            if first.starts_with(b"HEAD ") {
                MethodKind::Head
            } else {
                MethodKind::Other
            }
        };
        self.answer.expect(asked);
    }
}

impl Request {
    /// These bytes were written; the head among them was looked at before.
    fn wrote(&mut self, mut bytes: &[u8]) {
        let head = self.head.min(bytes.len());
        self.head -= head;
        bytes = &bytes[head..];
        while !bytes.is_empty() && self.framer.is_in_body() && !self.blind {
            match self.framer.step(bytes) {
                Step::Body(taken) => bytes = &bytes[taken..],
                _ => self.blind = true,
            }
        }
    }
}

impl<IO: AsyncRead + Unpin> Strict<IO> {
    /// Reads into hyper's buffer, and takes back what may not pass. False: look around again.
    fn poll_framed(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<bool>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buf))?;
        let fresh = &buf.filled()[before..];
        if fresh.is_empty() {
            let cut = !self.backlog.is_empty();
            self.fault = cut.then_some(Refusal::Cut);
            return Poll::Ready(Ok(!cut));
        }
        let mut clean = 0;
        if self.backlog.is_empty() {
            clean = self.frame(fresh);
            self.backlog.hold(&fresh[clean..]);
        } else {
            self.backlog.hold(fresh);
            let bytes = self.backlog.take();
            let ready = self.frame(&bytes);
            self.backlog.restore(bytes, ready);
        }
        buf.set_filled(before + clean);
        Poll::Ready(Ok(clean > 0))
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Strict<IO> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let strict = self.get_mut();
        while buf.remaining() > 0 {
            let good = strict.backlog.good(buf.remaining());
            let count = good.len();
            if count > 0 {
                buf.put_slice(good);
                strict.backlog.advance(count);
                break;
            }
            if let Some(refusal) = strict.fault {
                let error = Unreadable(MalformedAnswer(refusal));
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
            }
            if strict.is_spent() || ready!(strict.poll_framed(cx, buf))? {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Strict<IO> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let strict = self.get_mut();
        strict.before_write(data);
        let count = ready!(Pin::new(&mut strict.io).poll_write(cx, data))?;
        strict.request.wrote(&data[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let strict = self.get_mut();
        strict.before_write(
            data.iter()
                .find(|part| !part.is_empty())
                .map_or(&[], |part| part),
        );
        let count = ready!(Pin::new(&mut strict.io).poll_write_vectored(cx, data))?;
        let mut left = count;
        for part in data {
            let written = left.min(part.len());
            strict.request.wrote(&part[..written]);
            left -= written;
        }
        Poll::Ready(Ok(count))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}
