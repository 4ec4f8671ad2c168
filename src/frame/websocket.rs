//! WebSocket frames (RFC 6455 section 5): cut from a stream of bytes, and written to one.
//!
//! A payload is handed on as it comes, unmasked where it lies: no frame and no message is ever
//! collected here, only control frames (125 bytes at most) wait until they are whole. What breaks
//! the rules is a [`Fault`] with its close code; nothing behind it is read. The verdict on a stream
//! does not depend on how it was cut into reads.
//!
//! No chance is drawn here: whoever writes towards an app brings a fresh mask for every frame.

mod close;
mod fault;
mod head;
mod mask;
mod parser;
mod utf8;
mod writer;

#[cfg(test)]
mod tests;

pub use close::{Close, CloseCode};
pub use fault::Fault;
pub use head::{MOST_CONTROL, MOST_HEAD};
pub use mask::Mask;
pub use parser::{Event, Parser, Piece, Sender};
pub use utf8::Utf8;
pub use writer::{Control, Writer};

/// What a message carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// UTF-8; to be checked after inflating, with [`Utf8`].
    Text,
    /// Anything.
    Binary,
}

/// What the first frame of a message says about all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// What it carries.
    pub kind: Kind,
    /// Its payload is compressed (RFC 7692 section 6: RSV1).
    pub deflated: bool,
}
