//! One new connection to a server: its address, the socket, the PROXY header, TLS.
//!
//! Time is bounded by the caller; a connect that is dropped closes its socket.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::Instant;

use super::error::ConnectError;
use super::gate::Place;
use super::io::{Io, Stream};
use super::proxy_header;
use super::resolve::Resolver;
use super::strict::Strict;
use super::tls::Tls;
use crate::config::settings::ProxyProtocol;

/// A silent peer is probed after this, so that a vanished server ends its connections.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// How one server is reached.
pub(super) struct Connector {
    pub(super) target: Target,
    pub(super) proxy_protocol: ProxyProtocol,
    /// For one attempt.
    pub(super) timeout: Duration,
}

/// Where a server is.
pub(super) enum Target {
    Tcp(Arc<Resolver>),
    Tls(Arc<Resolver>, Tls, ServerName<'static>),
    Unix(PathBuf),
}

/// For whom a connection is made: what a PROXY header says.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ends {
    pub(super) client: Option<SocketAddr>,
    pub(super) local: Option<SocketAddr>,
}

/// What HTTP/1 runs on: THE place where the stream is held to the strict grammar.
pub(super) type Http1Io = Strict<Io>;

/// Wraps the stream for HTTP/1.
pub(super) fn held_to_grammar(io: Io) -> Http1Io {
    Strict::new(io)
}

impl Connector {
    pub(super) fn is_tls(&self) -> bool {
        matches!(self.target, Target::Tls(..))
    }

    pub(super) async fn connect(&self, ends: Ends, place: Place) -> Result<Io, ConnectError> {
        let header = proxy_header::encode(self.proxy_protocol, ends.client, ends.local);
        let stream = match &self.target {
            Target::Unix(path) => {
                let mut stream = UnixStream::connect(path)
                    .await
                    .map_err(ConnectError::Socket)?;
                stream
                    .write_all(&header)
                    .await
                    .map_err(ConnectError::Socket)?;
                Stream::Unix(stream)
            }
            Target::Tcp(resolver) => Stream::Tcp(self.tcp(resolver, &header).await?),
            Target::Tls(resolver, tls, name) => {
                let stream = self.tcp(resolver, &header).await?;
                Stream::Tls(Box::new(tls.connect(name.clone(), stream).await?))
            }
        };
        Ok(Io::new(stream, place))
    }

    /// Tries the addresses one after the other; each gets its share of the time that is left.
    async fn tcp(
        &self,
        resolver: &Arc<Resolver>,
        header: &[u8],
    ) -> Result<TcpStream, ConnectError> {
        let deadline = Instant::now() + self.timeout;
        let addresses = resolver
            .addresses()
            .await
            .map_err(|source| ConnectError::Resolve {
                name: Arc::clone(resolver.host()),
                source,
            })?;
        let mut failure = None;
        for (index, address) in addresses.iter().enumerate() {
            let left = deadline.saturating_duration_since(Instant::now());
            let share = left / u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
            match tokio::time::timeout(share, TcpStream::connect(address)).await {
                Ok(Ok(mut stream)) => {
                    prepare(&stream).map_err(ConnectError::Socket)?;
                    stream
                        .write_all(header)
                        .await
                        .map_err(ConnectError::Socket)?;
                    return Ok(stream);
                }
                Ok(Err(error)) => failure = Some(ConnectError::Socket(error)),
                Err(_) => failure = Some(ConnectError::Late),
            }
        }
        Err(failure.unwrap_or(ConnectError::Late))
    }
}

fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE)
        .with_interval(KEEPALIVE / 4);
    SockRef::from(stream).set_tcp_keepalive(&keepalive)
}
