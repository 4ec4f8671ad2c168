//! What a connection becomes once it is no longer HTTP.

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};

use super::tunnel::Tunnel;
use super::websocket::Opening;

/// A change of protocol that both sides agreed to.
pub enum Switched {
    /// Bytes both ways.
    Tunnel(Tunnel),
    /// Frames, looked at.
    WebSocket(Box<Opening>),
}

impl Switched {
    /// Runs until both sides have ended. `early` is what the client sent behind its request.
    pub async fn run<C>(self, client: C, early: Bytes)
    where
        C: AsyncRead + AsyncWrite + Unpin,
    {
        // Boxed, so that neither is as large as the other.
        match self {
            Self::Tunnel(tunnel) => Box::pin(tunnel.run(client, early)).await,
            Self::WebSocket(opening) => Box::pin(opening.run(client, early)).await,
        }
    }
}
