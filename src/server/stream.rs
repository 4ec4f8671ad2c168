//! A client's byte stream, whatever it runs over.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::gate::Peer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

/// One type for all, so that hyper's machinery is compiled once.
#[derive(Debug)]
pub(super) enum Stream {
    /// Cleartext over TCP.
    Tcp(TcpStream),
    /// Cleartext over a unix socket.
    Unix(UnixStream),
    /// TLS over either.
    Tls(Box<TlsStream<Self>>),
}

impl Stream {
    /// Makes the coming close a reset, so that a cut body cannot look complete to a peer that
    /// takes the end of the connection for the end of the body.
    pub(super) fn reset_on_close(&self) {
        match self {
            Self::Tcp(stream) => {
                // Closing will look clean only if the socket is gone already.
                let _ = socket2::SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO));
            }
            Self::Unix(_) => {}
            Self::Tls(stream) => stream.get_ref().0.reset_on_close(),
        }
    }
}

impl Peer for Stream {
    fn failure(&self) -> Option<io::Error> {
        match self {
            Self::Tcp(stream) => stream.take_error().unwrap_or_else(Some),
            Self::Unix(stream) => stream.take_error().unwrap_or_else(Some),
            Self::Tls(stream) => stream.get_ref().0.failure(),
        }
    }
}

/// Runs one method on whichever stream it is.
macro_rules! on {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Stream::Tcp($stream) => $call,
            Stream::Unix($stream) => $call,
            Stream::Tls($stream) => $call,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        on!(self, stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        on!(self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on!(self, stream => Pin::new(stream).poll_write_vectored(cx, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
