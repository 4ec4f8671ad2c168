//! Bytes held back: the first ones are known to be good, the rest waits for its verdict.

use bytes::{Buf, BytesMut};

/// Held bytes; without memory while empty.
#[derive(Debug, Default)]
pub struct Backlog {
    bytes: BytesMut,
    ready: usize,
}

impl Backlog {
    /// Nothing is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes held, good ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends bytes whose verdict is open.
    pub fn hold(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends bytes, all good; the ones before them become so too.
    pub fn pass(&mut self, bytes: &[u8]) {
        self.hold(bytes);
        self.pass_all();
    }

    /// All that is held is good.
    pub fn pass_all(&mut self) {
        self.ready = self.bytes.len();
    }

    /// Takes all bytes out, for a look at them; [`Self::restore`] brings them back.
    #[must_use]
    pub fn take(&mut self) -> BytesMut {
        self.ready = 0;
        std::mem::take(&mut self.bytes)
    }

    /// What [`Self::take`] took, its first `ready` bytes good.
    pub fn restore(&mut self, bytes: BytesMut, ready: usize) {
        debug_assert!(self.bytes.is_empty() && ready <= bytes.len());
        if !bytes.is_empty() {
            self.bytes = bytes;
        }
        self.ready = ready;
    }

    /// Good bytes, at most `room`.
    #[must_use]
    pub fn good(&self, room: usize) -> &[u8] {
        &self.bytes[..self.ready.min(room)]
    }

    /// So many good bytes were handed over.
    pub fn advance(&mut self, count: usize) {
        debug_assert!(count <= self.ready);
        self.bytes.advance(count);
        self.ready -= count;
        if self.bytes.is_empty() {
            self.bytes = BytesMut::new();
        }
    }
}
