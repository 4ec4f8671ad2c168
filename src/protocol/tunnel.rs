//! A connection that changed its protocol: bytes both ways, untouched, until either side ends.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{
    AsyncRead, AsyncWrite, AsyncWriteExt as _, ReadBuf, copy_bidirectional_with_sizes,
};
use tokio::time::{Instant, sleep_until};

use crate::body::{EndedBy, Ledger};

/// Bytes that a direction holds at most.
const BUFFER: usize = 16 * 1024;

/// A tunnel that is agreed on but does not run yet.
pub struct Tunnel {
    /// The application's side; ready once its 101 was read.
    pub app: hyper::upgrade::OnUpgrade,
    /// The record of the exchange.
    pub ledger: Box<Ledger>,
    /// Silence after which it is closed.
    pub idle: Duration,
}

impl Tunnel {
    /// Runs until both sides have ended, one fails, or both are silent for too long.
    ///
    /// `early` is what the client sent behind its request.
    pub async fn run<C>(mut self, client: C, early: Bytes)
    where
        C: AsyncRead + AsyncWrite + Unpin,
    {
        let mut app = match self.app.await {
            Ok(upgraded) => TokioIo::new(upgraded),
            Err(error) => return self.ledger.broken(EndedBy::Upstream, error.to_string()),
        };
        let heard = Arc::new(Mutex::new(Instant::now()));
        let mut client = Watched {
            inner: client,
            heard: Arc::clone(&heard),
        };
        if let Err(error) = app.write_all(&early).await {
            return self.ledger.broken(EndedBy::Upstream, error.to_string());
        }
        let mut copy = pin!(copy_bidirectional_with_sizes(
            &mut client,
            &mut app,
            BUFFER,
            BUFFER
        ));
        loop {
            let silent_until = *heard.lock() + self.idle;
            tokio::select! {
                copied = &mut copy => {
                    return match copied {
                        Ok((_, to_client)) => {
                            let bytes = usize::try_from(to_client).unwrap_or(usize::MAX);
                            self.ledger.plain(bytes);
                            self.ledger.sent(bytes);
                            self.ledger.complete();
                        }
                        Err(error) => self.ledger.broken(EndedBy::Client, error.to_string()),
                    };
                }
                () = sleep_until(silent_until) => {
                    if *heard.lock() + self.idle <= Instant::now() {
                        return self.ledger.broken(EndedBy::Proxy, "silent for too long");
                    }
                }
            }
        }
    }
}

/// Notes when the client's side last moved; both directions pass through it.
struct Watched<C> {
    inner: C,
    heard: Arc<Mutex<Instant>>,
}

impl<C: AsyncRead + Unpin> AsyncRead for Watched<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        *self.heard.lock() = Instant::now();
        Poll::Ready(Ok(()))
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Watched<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.inner).poll_write(cx, bytes))?;
        *self.heard.lock() = Instant::now();
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
