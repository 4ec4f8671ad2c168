//! A listening address: bound once, accepted on by every network thread.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use rustls::ServerConfig;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tokio::sync::watch;

use super::inherited::Inherited;
use super::stream::Stream;
use super::tls;
use crate::config::settings::{Address, Listen};
use crate::proxy::{Client, Listening};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 4096;

/// A bound address.
pub struct Port {
    /// What exchanges know of it; swapped by a reload.
    pub listening: ArcSwap<Listening>,
    /// Absent: cleartext. Swapped by a reload.
    pub tls: ArcSwapOption<ServerConfig>,
    /// Taken out when the port closes: connections outlive it, and the kernel must not go on
    /// queueing clients for as long as one of them lives.
    bound: Mutex<Option<Bind>>,
    /// As people write it; the kernel's choice where the port was 0.
    name: String,
    closing: watch::Sender<bool>,
}

/// What an address is to become.
pub struct Prepared {
    listening: Arc<Listening>,
    tls: Option<Arc<ServerConfig>>,
}

/// A socket that listens.
pub(super) enum Bind {
    /// TCP.
    Tcp(std::net::TcpListener),
    /// A unix socket.
    Unix(std::os::unix::net::UnixListener),
}

/// One thread's hold on a listening socket.
pub(super) enum Acceptor {
    Tcp(tokio::net::TcpListener),
    Unix(tokio::net::UnixListener),
}

impl Port {
    /// Binds the address of `listen`, or takes the socket that was handed over for it.
    ///
    /// # Errors
    /// The address cannot be bound, or its certificates cannot be used.
    pub fn open(listen: &Listen, inherited: &Inherited) -> io::Result<Arc<Self>> {
        let Prepared { listening, tls } = Self::prepare(listen)?;
        let bound = match (inherited.socket(&listen.address), &listen.address) {
            (Some(socket), _) => socket?,
            (None, Address::Tcp(address)) => Bind::Tcp(bind_tcp(*address)?),
            (None, Address::Unix(path)) => Bind::Unix(bind_unix(path)?),
        };
        Ok(Arc::new(Self {
            listening: ArcSwap::new(listening),
            tls: ArcSwapOption::from(tls),
            name: bound.name()?,
            bound: Mutex::new(Some(bound)),
            closing: watch::Sender::new(false),
        }))
    }

    /// What a reload says of this address, ready to be taken over.
    ///
    /// # Errors
    /// The new certificates cannot be used.
    pub fn prepare(listen: &Listen) -> io::Result<Prepared> {
        let tls = listen.tls.as_ref().map(tls::server_config).transpose()?;
        Ok(Prepared {
            listening: Arc::new(describe(listen)),
            tls,
        })
    }

    /// Takes it over; running connections keep what they began with.
    pub fn update(&self, prepared: Prepared) {
        self.tls.store(prepared.tls);
        self.listening.store(prepared.listening);
    }

    /// Accepts no more; the address is free once every thread has seen it.
    pub fn close(&self) {
        self.bound.lock().take();
        self.closing.send_replace(true);
    }

    pub(super) fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    /// The address as people write it.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = match (&self.listening.load().address, self.tls.load().is_some()) {
            (Address::Unix(_), _) => "",
            (Address::Tcp(_), true) => "https://",
            (Address::Tcp(_), false) => "http://",
        };
        format!("{scheme}{}", self.name)
    }

    /// For one network thread, within its runtime. None: the port has closed.
    pub(super) fn acceptor(&self) -> io::Result<Option<Acceptor>> {
        let bound = self.bound.lock();
        bound.as_ref().map(Bind::acceptor).transpose()
    }
}

impl Bind {
    fn name(&self) -> io::Result<String> {
        Ok(match self {
            Self::Tcp(listener) => listener.local_addr()?.to_string(),
            Self::Unix(listener) => match listener.local_addr()?.as_pathname() {
                Some(path) => format!("unix:{}", path.display()),
                None => "unix:?".to_owned(),
            },
        })
    }

    fn acceptor(&self) -> io::Result<Acceptor> {
        Ok(match self {
            Self::Tcp(listener) => {
                Acceptor::Tcp(tokio::net::TcpListener::from_std(listener.try_clone()?)?)
            }
            Self::Unix(listener) => {
                Acceptor::Unix(tokio::net::UnixListener::from_std(listener.try_clone()?)?)
            }
        })
    }
}

impl Bind {
    /// The same socket once more.
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(listener) => Self::Tcp(listener.try_clone()?),
            Self::Unix(listener) => Self::Unix(listener.try_clone()?),
        })
    }
}

impl Acceptor {
    pub(super) async fn accept(&self) -> io::Result<(Stream, Client)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                stream.set_nodelay(true)?;
                Ok((
                    Stream::Tcp(stream),
                    Client {
                        address: Some(address),
                    },
                ))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Stream::Unix(stream), Client::default()))
            }
        }
    }
}

fn describe(listen: &Listen) -> Listening {
    Listening {
        address: listen.address.clone(),
        tls: listen.tls.is_some(),
        trust: listen.trust_forwarded_from.clone(),
        proxy_protocol: listen.proxy_protocol,
    }
}

fn bind_tcp(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // `[::]` means IPv6; `0.0.0.0` beside it means IPv4.
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// A socket file that a dead process left is replaced; one that is alive is in use.
fn bind_unix(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    let stale = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
        && std::os::unix::net::UnixStream::connect(path)
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if stale {
        std::fs::remove_file(path)?;
    }
    let listener = std::os::unix::net::UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
