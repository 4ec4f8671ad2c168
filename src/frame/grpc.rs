//! gRPC's message prefix: a byte of flags, four of length, then the message.
//!
//! gRPC-Web and Connect streams frame the same way, with flags of their own. DATA frames and TCP
//! segments mean nothing to it: a prefix may come byte by byte, many messages at once. The cutter
//! keeps at most a prefix; it never holds a message.

/// Bytes before each message.
pub const PREFIX: usize = 5;

/// What stands before a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// [`COMPRESSED`], and what a protocol adds to it.
    pub flags: u8,
    /// Bytes that follow.
    pub length: u32,
}

/// The message is compressed: the lowest flag in all protocols.
pub const COMPRESSED: u8 = 0x01;

/// Connect: the message is the end of the stream.
pub const END_OF_STREAM: u8 = 0x02;

/// gRPC-Web: no message, but trailers.
pub const TRAILERS: u8 = 0x80;

/// Finds the borders of messages in bytes that come in any pieces.
#[derive(Debug, Clone, Default)]
pub struct Cutter {
    prefix: [u8; PREFIX],
    /// Bytes of `prefix` that are there.
    have: usize,
    /// Bytes of the message that are to come.
    left: u32,
}

/// What the next bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Part of a prefix; the cutter keeps it.
    Part,
    /// They complete a prefix. Length 0: the message is complete as well.
    Prefix(Prefix),
    /// Bytes of the message; `last`: it ends with them.
    Payload {
        /// Nothing of it follows.
        last: bool,
    },
}

impl Prefix {
    /// Its bytes on the wire.
    #[must_use]
    pub fn encode(self) -> [u8; PREFIX] {
        let [a, b, c, d] = self.length.to_be_bytes();
        [self.flags, a, b, c, d]
    }

    /// The other way.
    #[must_use]
    pub fn decode([flags, a, b, c, d]: [u8; PREFIX]) -> Self {
        Self {
            flags,
            length: u32::from_be_bytes([a, b, c, d]),
        }
    }

    /// Whether the message is compressed.
    #[must_use]
    pub fn is_compressed(self) -> bool {
        self.flags & COMPRESSED != 0
    }
}

impl Cutter {
    /// What `input` begins with, and how many of its bytes (at least one) that is; the next call
    /// wants the rest. `None`: `input` is empty.
    pub fn cut(&mut self, input: &[u8]) -> Option<(usize, Cut)> {
        if input.is_empty() {
            return None;
        }
        if self.left > 0 {
            let most = usize::try_from(self.left).unwrap_or(usize::MAX);
            let taken = input.len().min(most);
            self.left -= u32::try_from(taken).unwrap_or(self.left);
            let last = self.left == 0;
            return Some((taken, Cut::Payload { last }));
        }
        let taken = input.len().min(PREFIX - self.have);
        self.prefix[self.have..self.have + taken].copy_from_slice(&input[..taken]);
        self.have += taken;
        if self.have < PREFIX {
            return Some((taken, Cut::Part));
        }
        self.have = 0;
        let prefix = Prefix::decode(self.prefix);
        self.left = prefix.length;
        Some((taken, Cut::Prefix(prefix)))
    }

    /// No message has begun that has not ended: the only place where a stream may end.
    #[must_use]
    pub fn is_between(&self) -> bool {
        self.have == 0 && self.left == 0
    }

    /// The end of a message's bytes is still to come.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.left > 0
    }
}

#[cfg(test)]
mod tests;
