//! A client that ended its side: it may still read, or be gone.
//!
//! `shutdown(SHUT_WR)` and `close` send the same FIN; only a peer that is gone answers what it is
//! sent with a reset. hyper takes the end for a farewell and drops the exchange, so it is not
//! told before the answer is out. An answer that is on its way finds out by itself. Before one,
//! after a while, the client is sent 100 Continue: whoever still reads discards it (RFC 9110
//! section 15.2.1), and the app does not compute for nobody.

use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::Gate;
use super::alarm::Alarm;

/// An answer that comes within this is not preceded by anything.
const GRACE: Duration = Duration::from_secs(1);

/// Knows whether the other end has reset the connection.
pub trait Peer {
    /// The error that waits on the socket, if there is one.
    fn failure(&self) -> Option<io::Error>;
}

impl<IO: Peer> Gate<IO> {
    /// Ready when hyper may be told that the client has ended its side, or that it is gone.
    pub(super) fn poll_left(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.framer.is_in_body() || !self.shared.owes() {
                return Poll::Ready(Ok(()));
            }
            if let Some(failure) = self.io.failure() {
                return Poll::Ready(Err(failure));
            }
            let alarm = self.left.get_or_insert_with(Box::<Alarm>::default);
            ready!(alarm.poll(cx, GRACE));
            alarm.clear();
            self.shared.probe();
        }
    }
}
