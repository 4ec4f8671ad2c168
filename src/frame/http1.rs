//! The strict HTTP/1 grammar: where a message starts and ends, and what is refused.
//!
//! hyper reads heads leniently. These framers stand before it and find the borders of messages
//! on their own: head, then length or chunks, then the next head. Whatever two parsers could read
//! differently is a [`Refusal`], so that no border found here can lie elsewhere for the app.
//!
//! They never copy, keep or change bytes, and never wait. The verdict on a stream of bytes does
//! not depend on how it was cut into reads; only the moment at which it is known does.

mod backlog;
mod chars;
mod chunks;
mod fields;
mod legible;
mod lines;
mod refusal;
mod request;
mod response;
mod target;

#[cfg(test)]
mod tests;

pub use backlog::Backlog;
pub use legible::Legible;
pub use refusal::{Refusal, Unreadable, refusal_in};
pub use request::{RequestFramer, RequestHead};
pub use response::{ResponseFramer, ResponseHead};

/// Bounds of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes from the first line to the empty line, both included.
    pub head: usize,
    /// Field lines.
    pub fields: usize,
}

/// What stands at the beginning of the bytes that a framer was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<H> {
    /// A whole and valid head.
    Head(H),
    /// So many bytes of a body, its framing included; at least one.
    Body(usize),
    /// These bytes are the one empty line that may precede a request (RFC 9112 section 2.2). They
    /// mean nothing, and are taken.
    Blank,
    /// A head that has not ended yet. Nothing is taken: show the same bytes again, and more.
    Partial,
    /// What begins here is refused; there is no border to be found behind it.
    Refused(Refusal),
}

/// The methods that change how long the answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodKind {
    /// Its answers have no body.
    Head,
    /// A 2xx answer turns the connection into a tunnel.
    Connect,
    /// Any other.
    Other,
}
