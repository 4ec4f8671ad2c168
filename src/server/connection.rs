//! One client connection, from accept to close: TLS, then whichever HTTP the client speaks.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use tokio::io::AsyncReadExt as _;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;

use super::port::Port;
use super::stream::Stream;
use super::threads::Server;
use super::{http1, http2, proxy_protocol};
use crate::frame::http2::PREFACE;
use crate::proxy::{Client, Listening};

/// What a connection is known to be.
pub(super) struct Accepted {
    pub(super) stream: Stream,
    pub(super) listening: Arc<Listening>,
    pub(super) client: Client,
    /// Read already.
    pub(super) early: Bytes,
    /// When the first of that came.
    pub(super) begun: Option<Instant>,
    /// What the client showed in the handshake (DER).
    pub(super) certificate: Option<CertificateDer<'static>>,
}

/// Serves one connection to its end.
///
/// What only some connections go through is boxed: a future is as large as its largest part, and
/// an idle connection should hold what it needs.
pub(super) async fn serve(server: &Arc<Server>, port: &Port, stream: Stream, client: Client) {
    let listening = port.listening.load_full();
    let named = if listening.proxy_protocol {
        Box::pin(named(server, stream, client)).await
    } else {
        Some((stream, client))
    };
    let Some((stream, client)) = named else {
        return;
    };
    let Some(_place) = server.place_for(client) else {
        return;
    };
    let (stream, shaken) = match port.tls.load_full() {
        None => (stream, Shaken::default()),
        Some(config) => match Box::pin(handshake(server, config, stream)).await {
            Ok(shaken) => shaken,
            Err(error) => {
                return tracing::debug!(%error, client = ?client.address, "no TLS handshake");
            }
        },
    };
    let Shaken {
        agreed,
        certificate,
    } = shaken;
    let mut accepted = Accepted {
        stream,
        listening,
        client,
        early: Bytes::new(),
        begun: None,
        certificate,
    };
    let is_http2 = match agreed.as_deref() {
        Some(b"h2") => true,
        Some(_) => false,
        None => match accepted.sniff(server).await {
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

/// What a handshake brought.
#[derive(Default)]
struct Shaken {
    agreed: Option<Vec<u8>>,
    certificate: Option<CertificateDer<'static>>,
}

/// Whom a PROXY header names; `None`: it is none, or late.
async fn named(server: &Server, mut stream: Stream, client: Client) -> Option<(Stream, Client)> {
    let patience = server.network().tls_handshake;
    let mut draining = server.draining.clone();
    let read = tokio::select! {
        read = timeout(patience, proxy_protocol::read(&mut stream)) => read,
        _ = draining.wait_for(|draining| *draining) => return None,
    };
    let fault = match read {
        Ok(Ok(None)) => return Some((stream, client)),
        Ok(Ok(address)) => return Some((stream, Client { address })),
        Ok(Err(fault)) => fault,
        Err(late) => late.into(),
    };
    server.shared.metrics.refused("proxy_protocol").inc();
    tracing::debug!(%fault, peer = ?client.address, "no PROXY header");
    None
}

/// TLS, and the protocol that was agreed on. A client that is not through it is idle: nothing of
/// it is lost when the process leaves.
async fn handshake(
    server: &Server,
    config: Arc<ServerConfig>,
    stream: Stream,
) -> io::Result<(Stream, Shaken)> {
    let patience = server.network().tls_handshake;
    let mut draining = server.draining.clone();
    let tls = tokio::select! {
        shaken = timeout(patience, TlsAcceptor::from(config).accept(stream)) => shaken??,
        _ = draining.wait_for(|draining| *draining) => {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "draining"));
        }
    };
    let session = tls.get_ref().1;
    let shown = session.peer_certificates();
    let shaken = Shaken {
        agreed: session.alpn_protocol().map(<[u8]>::to_vec),
        certificate: shown.and_then(<[_]>::first).cloned(),
    };
    Ok((Stream::Tls(Box::new(tls)), shaken))
}

impl Accepted {
    /// Whether the client begins with HTTP/2's preface. A client that says nothing is idle, not
    /// late; one that stops within it is left to HTTP/1, which refuses what is late.
    async fn sniff(&mut self, server: &Server) -> io::Result<bool> {
        let mut draining = server.draining.clone();
        let mut patience = server.network().keep_alive;
        let mut seen = BytesMut::new();
        while seen.len() < PREFACE.len() && PREFACE[..].starts_with(&seen) {
            seen.reserve(PREFACE.len());
            let read = tokio::select! {
                read = timeout(patience, self.stream.read_buf(&mut seen)) => read,
                _ = draining.wait_for(|draining| *draining) => Ok(Ok(0)),
            };
            match read {
                Ok(Ok(1..)) => {}
                Err(_) if self.begun.is_some() => break,
                _ => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
            let begun = *self.begun.get_or_insert_with(Instant::now);
            let head = server.head_timeout();
            if !head.is_zero() {
                patience = (begun + head).saturating_duration_since(Instant::now());
            }
        }
        let is_http2 = seen.starts_with(PREFACE);
        self.early = seen.freeze();
        Ok(is_http2)
    }
}
