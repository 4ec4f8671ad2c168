//! What an exchange may ask of the HTTP/1 connection that it came in on.

use std::sync::Arc;

/// The connection under one exchange; HTTP/1 only. Dropped, the exchange is over.
pub trait Wire: Send + Sync {
    /// An upgrade is agreed on: what follows the request is no HTTP. False: it was not asked for.
    fn tunnel(&self) -> bool;

    /// No upgrade: what follows the request is the next one.
    fn stay(&self);

    /// The way for 1xx answers.
    fn hints(&self) -> Arc<dyn Hints>;

    /// To be held by what may outlive the answer and still needs the connection.
    fn part(&self) -> Box<dyn Send + Sync>;
}

/// Sends 1xx answers ahead of an answer.
pub trait Hints: Send + Sync {
    /// A whole 1xx head, as bytes; false: it could not be done cleanly, nothing was sent.
    fn send(&self, head: &[u8]) -> bool;
}
