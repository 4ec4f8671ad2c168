//! The gate's writing side: from hyper to the socket, and the end of the connection.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::alarm::Alarm;
use super::{Gate, Mode};

/// What hyper writes on its own when a body is first asked for.
pub(super) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
/// What is still read, and thrown away, so that a last answer is not lost to a reset.
const LINGER_BYTES: usize = 1024 * 1024;
/// At most so long.
const LINGER_TIME: Duration = Duration::from_secs(2);
/// Thrown away at once.
const SINK: usize = 2048;

/// The time after our last byte.
#[derive(Debug)]
pub(super) struct Linger {
    left: usize,
    alarm: Alarm,
}

impl<IO: AsyncWrite + Unpin> Gate<IO> {
    /// Informational answers go ahead of what hyper writes or flushes.
    fn poll_hints(&mut self, cx: &mut Context<'_>, more: BytesMut) -> Poll<io::Result<()>> {
        if self.hints.is_empty() {
            self.hints = more;
        } else {
            self.hints.extend_from_slice(&more);
        }
        while !self.hints.is_empty() {
            let result = Pin::new(&mut self.io).poll_write(cx, &self.hints);
            let count = ready!(self.watch(cx, result))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.shared.count_written(count);
            self.hints.advance(count);
        }
        self.hints = BytesMut::new();
        Poll::Ready(Ok(()))
    }

    fn poll_before(&mut self, cx: &mut Context<'_>, first: &[u8]) -> Poll<io::Result<()>> {
        if self.mode == Mode::Tunnel {
            return Poll::Ready(Ok(()));
        }
        let more = self.shared.writing(first != CONTINUE);
        self.poll_hints(cx, more)
    }

    /// Gives up on a client that takes nothing.
    fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.stalled.clear();
            return result;
        }
        ready!(self.stalled.poll(cx, self.limits.send));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the client takes nothing",
        )))
    }

    fn after(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let count = ready!(self.watch(cx, result))?;
        self.shared.count_written(count);
        Poll::Ready(Ok(count))
    }

    /// The client may still be sending: a close would reset the connection under the answer.
    fn has_to_linger(&self) -> bool {
        let all_was_read = self.framer.is_between() && self.backlog.is_empty();
        !self.ended && self.mode != Mode::Tunnel && !(self.mode == Mode::Framing && all_was_read)
    }
}

impl<IO: AsyncRead + Unpin> Gate<IO> {
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(linger) = &mut self.linger else {
            return Poll::Ready(());
        };
        let mut space = [0; SINK];
        loop {
            let mut buf = ReadBuf::new(&mut space);
            match Pin::new(&mut self.io).poll_read(cx, &mut buf) {
                Poll::Pending => return linger.alarm.poll(cx, LINGER_TIME),
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(())) => {}
            }
            linger.left = linger.left.saturating_sub(buf.filled().len());
            if buf.filled().is_empty() || linger.left == 0 {
                return Poll::Ready(());
            }
        }
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Gate<IO> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let gate = self.get_mut();
        ready!(gate.poll_before(cx, data))?;
        let result = Pin::new(&mut gate.io).poll_write(cx, data);
        gate.after(cx, result)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let gate = self.get_mut();
        ready!(gate.poll_before(cx, data.first().map_or(&[], |first| first)))?;
        let result = Pin::new(&mut gate.io).poll_write_vectored(cx, data);
        gate.after(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let gate = self.get_mut();
        if gate.linger.is_some() {
            return Poll::Ready(Ok(()));
        }
        let http = gate.mode != Mode::Tunnel;
        if http {
            let more = gate.shared.flushing();
            ready!(gate.poll_hints(cx, more))?;
        }
        let result = Pin::new(&mut gate.io).poll_flush(cx);
        ready!(gate.watch(cx, result))?;
        if http {
            gate.shared.flushed(cx);
        }
        Poll::Ready(Ok(()))
    }

    /// Ends our side; then reads on for a moment where the client may still be sending.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let gate = self.get_mut();
        if gate.linger.is_none() {
            gate.shared.set_at_rest(false);
            ready!(Pin::new(&mut gate.io).poll_shutdown(cx))?;
            if !gate.has_to_linger() {
                return Poll::Ready(Ok(()));
            }
            gate.linger = Some(Box::new(Linger {
                left: LINGER_BYTES,
                alarm: Alarm::default(),
            }));
        }
        gate.poll_linger(cx).map(Ok)
    }
}
