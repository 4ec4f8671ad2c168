//! What bytes go through: TCP, a unix socket, or TLS on either side.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection, StreamOwned};

use super::PATIENCE;

pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    Client(Box<StreamOwned<ClientConnection, TcpStream>>),
    Server(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Stream {
    pub fn tcp(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&addr, PATIENCE);
        let stream = stream.unwrap_or_else(|error| panic!("cannot connect to {addr}: {error}"));
        stream.set_nodelay(true).unwrap();
        Self::Tcp(stream)
    }

    pub fn unix(path: &Path) -> Self {
        let stream = UnixStream::connect(path);
        let named = |error| panic!("cannot connect to {}: {error}", path.display());
        Self::Unix(stream.unwrap_or_else(named))
    }

    /// TLS as a client; the handshake is made before the first byte.
    pub fn client(addr: SocketAddr, name: &str, config: Arc<ClientConfig>) -> Self {
        let Self::Tcp(tcp) = Self::tcp(addr) else {
            unreachable!("tcp() makes Tcp")
        };
        Self::client_over(tcp, name, config)
    }

    /// The same over a connection that has begun.
    pub fn client_over(tcp: TcpStream, name: &str, config: Arc<ClientConfig>) -> Self {
        let name = ServerName::try_from(name.to_owned()).expect("a server name");
        let tls = ClientConnection::new(config, name).expect("a TLS client");
        Self::Client(Box::new(StreamOwned::new(tls, tcp)))
    }

    /// TLS as a server, over an accepted connection.
    pub fn server(tcp: TcpStream, config: Arc<ServerConfig>) -> Self {
        let tls = ServerConnection::new(config).expect("a TLS server");
        Self::Server(Box::new(StreamOwned::new(tls, tcp)))
    }

    /// Makes the handshake now. Nothing to do in cleartext.
    pub fn handshake(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(_) | Self::Unix(_) => Ok(()),
            Self::Client(tls) => tls.conn.complete_io(&mut tls.sock).map(drop),
            Self::Server(tls) => tls.conn.complete_io(&mut tls.sock).map(drop),
        }
    }

    /// What ALPN came to.
    pub fn alpn(&self) -> Option<&[u8]> {
        match self {
            Self::Client(tls) => tls.conn.alpn_protocol(),
            Self::Server(tls) => tls.conn.alpn_protocol(),
            Self::Tcp(_) | Self::Unix(_) => None,
        }
    }

    /// A second handle, to end it from elsewhere.
    pub fn ender(&self) -> io::Result<Ender> {
        if let Self::Unix(stream) = self {
            return stream.try_clone().map(Ender::Unix);
        }
        self.socket()
            .expect("TCP below")
            .try_clone()
            .map(Ender::Tcp)
    }

    pub fn read_timeout(&self, patience: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(patience),
            _ => self.socket().expect("TCP below").set_read_timeout(patience),
        }
    }

    /// Ends it with RST, so that what is under way is lost.
    pub fn reset(&self) -> io::Result<()> {
        match self.socket() {
            // Disconnecting sends RST at once, however many handles there are.
            Some(socket) => Ok(rustix::net::connect_unspec(socket)?),
            None => self.end(),
        }
    }

    /// Ends both directions; with TLS, after close_notify.
    pub fn close(&mut self) -> io::Result<()> {
        match self {
            Self::Client(tls) => tls.conn.send_close_notify(),
            Self::Server(tls) => tls.conn.send_close_notify(),
            Self::Tcp(_) | Self::Unix(_) => {}
        }
        self.flush()?;
        self.end()
    }

    /// Ends the sending direction only.
    pub fn half_close(&self) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
            _ => self.socket().expect("TCP below").shutdown(Shutdown::Write),
        }
    }

    fn end(&self) -> io::Result<()> {
        self.ender().map(|ender| ender.end())
    }

    fn socket(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(stream) => Some(stream),
            Self::Client(tls) => Some(&tls.sock),
            Self::Server(tls) => Some(&tls.sock),
            Self::Unix(_) => None,
        }
    }
}

/// Ends a connection that somebody else reads.
pub enum Ender {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Ender {
    pub fn end(&self) {
        // It may have ended by itself.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
            Self::Client(stream) => stream.read(into),
            Self::Server(stream) => stream.read(into),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Client(stream) => stream.write(bytes),
            Self::Server(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.flush(),
            Self::Unix(stream) => stream.flush(),
            Self::Client(stream) => stream.flush(),
            Self::Server(stream) => stream.flush(),
        }
    }
}
