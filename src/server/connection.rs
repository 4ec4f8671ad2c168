//! One client connection, from accept to close: TLS, then whichever HTTP the client speaks.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::AsyncReadExt as _;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::port::Port;
use super::stream::Stream;
use super::threads::Server;
use super::{http1, http2};
use crate::proxy::{Client, Listening};

/// What an HTTP/2 client with prior knowledge sends first (RFC 9113 section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What a connection is known to be.
pub(super) struct Accepted {
    pub(super) stream: Stream,
    pub(super) listening: Arc<Listening>,
    pub(super) client: Client,
    /// Read already.
    pub(super) early: Bytes,
}

/// Serves one connection to its end.
///
/// What only some connections go through is boxed: a future is as large as its largest part, and
/// an idle connection should hold what it needs.
pub(super) async fn serve(server: &Arc<Server>, port: &Port, stream: Stream, client: Client) {
    let network = server.shared.snapshot.load().settings.network.clone();
    let listening = port.listening.load_full();
    let (stream, agreed) = match port.tls.load_full() {
        None => (stream, None),
        Some(config) => {
            let handshake = Box::pin(TlsAcceptor::from(config).accept(stream));
            match timeout(network.tls_handshake, handshake).await {
                Ok(Ok(tls)) => {
                    let agreed = tls.get_ref().1.alpn_protocol().map(<[u8]>::to_vec);
                    (Stream::Tls(Box::new(tls)), agreed)
                }
                Ok(Err(error)) => {
                    return tracing::debug!(%error, client = ?client.address, "no TLS handshake");
                }
                Err(_) => {
                    return tracing::debug!(client = ?client.address, "TLS handshake too slow");
                }
            }
        }
    };
    let mut accepted = Accepted {
        stream,
        listening,
        client,
        early: Bytes::new(),
    };
    let is_http2 = match agreed.as_deref() {
        Some(b"h2") => true,
        Some(_) => false,
        None => match accepted.sniff(server, network.keep_alive).await {
            Ok(is_http2) => is_http2,
            Err(_) => return,
        },
    };
    if is_http2 {
        Box::pin(http2::serve(server, accepted)).await;
    } else {
        Box::pin(http1::serve(server, accepted)).await;
    }
}

impl Accepted {
    /// Whether the client begins with HTTP/2's preface. A client that says nothing is idle, not late.
    async fn sniff(&mut self, server: &Server, patience: Duration) -> io::Result<bool> {
        let mut draining = server.draining.clone();
        let mut seen = BytesMut::new();
        while seen.len() < PREFACE.len() && PREFACE.starts_with(&seen) {
            seen.reserve(PREFACE.len());
            let read = tokio::select! {
                read = timeout(patience, self.stream.read_buf(&mut seen)) => read??,
                _ = draining.wait_for(|draining| *draining) => 0,
            };
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let is_http2 = seen.starts_with(PREFACE);
        self.early = seen.freeze();
        Ok(is_http2)
    }
}
