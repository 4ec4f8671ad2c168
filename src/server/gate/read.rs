//! The gate's reading side: from the socket to hyper, whole heads only.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use super::handle::Upgrade;
use super::{Gate, Mode, Peer};
use crate::frame::http1::{Refusal, Unreadable};

/// Read at once from a connection that was idle.
const ARRIVAL: usize = 2048;

impl<IO: AsyncRead + Unpin> Gate<IO> {
    /// Waits for bytes on a connection that hyper was taken from, without a buffer until they
    /// come. False: the client has closed.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn poll_arrival(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if !self.backlog.is_empty() {
            return Poll::Ready(Ok(true));
        }
        self.late.rest();
        self.stalled.rest();
        let mut space = [0; ARRIVAL];
        let mut buf = ReadBuf::new(&mut space);
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut buf))?;
        self.ended = buf.filled().is_empty();
        if !self.ended {
            self.arrived(buf.filled());
        }
        Poll::Ready(Ok(!self.ended))
    }

    /// Gives hyper good bytes that were held.
    fn release(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let good = self.backlog.good(buf.remaining());
        let count = good.len();
        buf.put_slice(good);
        if count > 0 {
            self.backlog.advance(count);
        }
        count > 0
    }

    fn poll_io(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buf))?;
        let count = buf.filled().len() - before;
        self.ended = count == 0;
        self.shared.count_read(count);
        Poll::Ready(Ok(()))
    }

    /// Reads into hyper's buffer, and takes back what may not pass. False: look around again.
    fn poll_framed(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<bool>> {
        let before = buf.filled().len();
        if self.poll_io(cx, buf)?.is_pending() {
            return self.poll_late(cx).map(|()| Ok(false));
        }
        let fresh = &buf.filled()[before..];
        if fresh.is_empty() {
            return Poll::Ready(Ok(false));
        }
        let mut clean = 0;
        if self.backlog.is_empty() {
            let (passes, rest) = self.frame(fresh);
            self.settle(rest, &fresh[passes..]);
            clean = passes;
        } else {
            self.backlog.hold(fresh);
            self.frame_backlog();
        }
        buf.set_filled(before + clean);
        Poll::Ready(Ok(clean > 0))
    }

    /// Nothing comes: refuses a head that has begun too long ago.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.backlog.is_empty() {
            return Poll::Pending;
        }
        ready!(self.late.poll(cx, self.limits.head_timeout));
        let head = self.backlog.take();
        self.refuse(Refusal::Late, &head);
        Poll::Ready(())
    }

    /// Holds early bytes, within bounds, until the service decides whose they are.
    fn poll_undecided(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<bool>> {
        match self.shared.upgrade(cx) {
            Upgrade::Tunnel => {
                self.mode = Mode::Tunnel;
                self.backlog.pass_all();
                return Poll::Ready(Ok(false));
            }
            Upgrade::Declined => {
                self.mode = Mode::Framing;
                self.upgrade = false;
                self.unframed = !self.backlog.is_empty();
                self.shared.set_at_rest(!self.unframed);
                return Poll::Ready(Ok(false));
            }
            Upgrade::Undecided if self.backlog.len() >= self.limits.head => return Poll::Pending,
            Upgrade::Undecided => {}
        }
        let before = buf.filled().len();
        ready!(self.poll_io(cx, buf))?;
        self.backlog.hold(&buf.filled()[before..]);
        buf.set_filled(before);
        Poll::Ready(Ok(self.ended))
    }
}

impl<IO: AsyncRead + Peer + Unpin> AsyncRead for Gate<IO> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let gate = self.get_mut();
        while buf.remaining() > 0 && !gate.release(buf) {
            let done = match gate.mode {
                Mode::Framing if gate.unframed => {
                    gate.frame_backlog();
                    false
                }
                // Within a head, too: there is nobody left to tell.
                Mode::Framing if gate.ended => {
                    ready!(gate.poll_left(cx))?;
                    true
                }
                Mode::Framing => ready!(gate.poll_framed(cx, buf))?,
                Mode::Undecided => ready!(gate.poll_undecided(cx, buf))?,
                Mode::Tunnel => {
                    ready!(gate.poll_io(cx, buf))?;
                    true
                }
                // hyper still answers; it closes by itself then. An end would cut it short.
                Mode::Refused => return Poll::Pending,
                Mode::Broken(refusal) => {
                    let error = io::Error::new(io::ErrorKind::InvalidData, Unreadable(refusal));
                    return Poll::Ready(Err(error));
                }
            };
            if done {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}
