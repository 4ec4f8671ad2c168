//! A connection that changed its protocol: bytes both ways, untouched, until either side ends.

use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
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
        let app = match self.app.await {
            Ok(upgraded) => TokioIo::new(upgraded),
            Err(error) => return self.ledger.broken(EndedBy::Upstream, error.to_string()),
        };
        let watch = Arc::new(Watch::new());
        let mut client = Watched::new(client, EndedBy::Client, &watch);
        let mut app = Watched::new(app, EndedBy::Upstream, &watch);
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
            let silent_until = watch.moved() + self.idle;
            tokio::select! {
                copied = &mut copy => {
                    return match copied {
                        Ok((_, to_client)) => {
                            let bytes = usize::try_from(to_client).unwrap_or(usize::MAX);
                            self.ledger.plain(bytes);
                            self.ledger.sent(bytes);
                            self.ledger.complete();
                        }
                        Err(error) => self.ledger.broken(watch.failed(), error.to_string()),
                    };
                }
                () = sleep_until(silent_until) => {
                    if watch.moved() + self.idle <= Instant::now() {
                        return self.ledger.broken(EndedBy::Proxy, "silent for too long");
                    }
                }
            }
        }
    }
}

/// What is known of both sides.
struct Watch(Mutex<Seen>);

struct Seen {
    moved: Instant,
    failed: Option<EndedBy>,
}

impl Watch {
    fn new() -> Self {
        Self(Mutex::new(Seen {
            moved: Instant::now(),
            failed: None,
        }))
    }

    /// When either side last took or gave something.
    fn moved(&self) -> Instant {
        self.0.lock().moved
    }

    /// Who failed first.
    fn failed(&self) -> EndedBy {
        self.0.lock().failed.unwrap_or(EndedBy::Client)
    }
}

/// One side: notes when it moves, and that it fails.
struct Watched<S> {
    inner: S,
    side: EndedBy,
    watch: Arc<Watch>,
}

impl<S> Watched<S> {
    fn new(inner: S, side: EndedBy, watch: &Arc<Watch>) -> Self {
        let watch = Arc::clone(watch);
        Self { inner, side, watch }
    }

    fn note<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &polled {
            Poll::Pending => {}
            Poll::Ready(Ok(_)) => self.watch.0.lock().moved = Instant::now(),
            Poll::Ready(Err(_)) => {
                self.watch.0.lock().failed.get_or_insert(self.side);
            }
        }
        polled
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_read(cx, buffer);
        self.note(polled)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.note(polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
