//! The application of the stories: raw sockets, every byte by hand.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::within;
use crate::config::settings::Server;

/// An answer that leaves the connection usable.
pub(super) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A listening application.
pub(super) struct Origin {
    listener: TcpListener,
    pub(super) address: SocketAddr,
}

/// One connection of it.
pub(super) struct Peer<S = TcpStream> {
    pub(super) stream: S,
    held: Vec<u8>,
}

impl Origin {
    pub(super) async fn new() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        Self { listener, address }
    }

    pub(super) fn server(&self) -> Server {
        server(self.address)
    }

    pub(super) async fn accept(&self) -> Peer {
        let (stream, _) = within(self.listener.accept()).await.expect("a connection");
        Peer::new(stream)
    }

    /// Nobody waits to be accepted.
    pub(super) async fn is_quiet(&self) -> bool {
        // A connection that was made before is in the queue already: loopback accepts at once.
        tokio::time::timeout(std::time::Duration::from_millis(20), self.listener.accept())
            .await
            .is_err()
    }
}

pub(super) fn server(address: SocketAddr) -> Server {
    Server::Tcp {
        tls: false,
        host: address.ip().to_string(),
        port: address.port(),
    }
}

/// Where nobody listens.
pub(super) async fn nobody() -> Server {
    Origin::new().await.server()
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            held: Vec::new(),
        }
    }

    /// Reads through the end of the next head.
    pub(super) async fn head(&mut self) -> String {
        self.through("\r\n\r\n").await
    }

    /// Reads through the next `end`.
    pub(super) async fn through(&mut self, end: &str) -> String {
        loop {
            let found = self
                .held
                .windows(end.len())
                .position(|part| part == end.as_bytes());
            if let Some(at) = found {
                let rest = self.held.split_off(at + end.len());
                let head = std::mem::replace(&mut self.held, rest);
                return String::from_utf8_lossy(&head).into_owned();
            }
            let mut piece = [0; 4096];
            let read = within(self.stream.read(&mut piece))
                .await
                .expect("readable");
            assert_ne!(
                read,
                0,
                "ended at {:?}",
                String::from_utf8_lossy(&self.held)
            );
            self.held.extend_from_slice(&piece[..read]);
        }
    }

    pub(super) async fn say(&mut self, bytes: impl AsRef<[u8]>) {
        within(self.stream.write_all(bytes.as_ref()))
            .await
            .expect("writable");
    }

    /// One exchange.
    pub(super) async fn serve(&mut self) -> String {
        let head = self.head().await;
        self.say(OK).await;
        head
    }

    /// Resolves when the proxy ends the connection.
    pub(super) async fn closed(mut self) {
        let mut piece = [0; 64 * 1024];
        within(async { while matches!(self.stream.read(&mut piece).await, Ok(1..)) {} }).await;
    }
}
