//! What an exchange may ask of the HTTP/1 connection that it came in on.

use bytes::Bytes;

/// The connection under an exchange; HTTP/1 only.
pub trait Wire: Send + Sync {
    /// The exchange is over: its answer was handed over whole, or dropped.
    fn answered(&self);

    /// Sends the bytes of a 1xx answer now; false: it could not be done cleanly, nothing was sent.
    fn informational(&self, head: Bytes) -> bool;

    /// An upgrade is agreed on: what follows the request is no HTTP.
    fn tunnel(&self);

    /// No upgrade: what follows the request is the next one.
    fn stay(&self);
}
