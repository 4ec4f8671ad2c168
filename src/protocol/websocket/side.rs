//! One side of a connection: its stream, what came of it and what is to go to it.
//!
//! A silent connection has no buffers: bytes are read into one that belongs to the thread, and only
//! what has to wait is kept. What is to go out is bounded by who fills it (`MARK`).

use std::cell::Cell;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Read at once, at most.
pub(super) const READ: usize = 32 << 10;

/// Nothing is added to an output beyond this, but for what one slice and control frames make.
pub(super) const MARK: usize = 64 << 10;

/// Thrown away of what a peer still sends after the end.
const LINGER_BYTES: usize = 1 << 20;

thread_local! {
    static SCRATCH: Cell<BytesMut> = Cell::default();
}

/// A peer.
pub(super) struct Side<IO> {
    /// Absent once it failed, or nothing is wanted of it any more.
    io: Option<IO>,
    /// Came, and was not looked at yet.
    pub(super) input: BytesMut,
    /// The input lies in the thread's buffer.
    borrowed: bool,
    /// To be written.
    pub(super) output: BytesMut,
    unflushed: bool,
}

impl<IO: AsyncRead + AsyncWrite + Unpin> Side<IO> {
    pub(super) fn new(io: IO, early: &[u8]) -> Self {
        Self {
            io: Some(io),
            input: BytesMut::from(early),
            borrowed: false,
            output: BytesMut::new(),
            unflushed: false,
        }
    }

    /// Reads behind what is there. False: the peer has ended its side.
    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let Some(io) = &mut self.io else {
            return Poll::Pending;
        };
        if !self.borrowed {
            let waiting = std::mem::replace(&mut self.input, SCRATCH.take());
            self.input.extend_from_slice(&waiting);
            self.borrowed = true;
        }
        self.input.reserve(READ);
        let read = ready!(pin!(io.read_buf(&mut self.input)).poll(cx));
        Poll::Ready(read.map(|count| count > 0))
    }

    /// Gives the thread its buffer back; what waits moves into one of its own size.
    pub(super) fn settle(&mut self) {
        if !std::mem::take(&mut self.borrowed) {
            return;
        }
        let waiting = BytesMut::from(&self.input[..]);
        let mut scratch = std::mem::replace(&mut self.input, waiting);
        scratch.clear();
        SCRATCH.set(scratch);
    }

    /// Writes what is there to be written. True: something was.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        let Some(io) = &mut self.io else {
            self.output = BytesMut::new();
            return Ok(false);
        };
        let mut moved = false;
        while !self.output.is_empty() {
            match Pin::new(&mut *io).poll_write(cx, &self.output)? {
                Poll::Pending => return Ok(moved),
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(count) => self.output.advance(count),
            }
            (moved, self.unflushed) = (true, true);
        }
        if moved {
            self.output = BytesMut::new();
        }
        if self.unflushed && Pin::new(io).poll_flush(cx)?.is_ready() {
            self.unflushed = false;
        }
        Ok(moved)
    }

    /// More may be added to the output.
    pub(super) fn has_room(&self) -> bool {
        self.output.len() < MARK
    }

    /// All was written that was to be.
    pub(super) fn is_flushed(&self) -> bool {
        self.io.is_none() || (self.output.is_empty() && !self.unflushed)
    }

    /// It failed, or is to hear no more.
    pub(super) fn give_up(&mut self) {
        self.io = None;
        self.give_up_buffers();
    }

    /// Ends our side, then reads to the end of the other, for a while: a close with bytes unread
    /// would be a reset, and might overtake our last frame.
    pub(super) async fn end(mut self) {
        self.give_up_buffers();
        let Some(mut io) = self.io else { return };
        if io.shutdown().await.is_err() {
            return;
        }
        let mut left = LINGER_BYTES;
        let mut space = [0; 512];
        while let Ok(count @ 1..) = io.read(&mut space).await {
            left = left.saturating_sub(count);
            if left == 0 {
                return;
            }
        }
    }

    /// Ends our side.
    pub(super) async fn leave(mut self) {
        self.give_up_buffers();
        if let Some(mut io) = self.io {
            // Who is gone already need not be told.
            let _ = io.shutdown().await;
        }
    }

    fn give_up_buffers(&mut self) {
        self.settle();
        self.input = BytesMut::new();
        self.output = BytesMut::new();
    }
}
