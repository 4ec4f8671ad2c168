//! Sockets that a service manager opened before the proxy ran (systemd's socket activation:
//! `LISTEN_PID`, `LISTEN_FDS`).
//!
//! They belong to the manager. They stay open for the life of the process, so that an address that
//! a reload takes away and another brings back is still there.

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use listenfd::ListenFd;

use super::port::Bind;
use crate::config::settings::Address;

/// The sockets that were handed over.
#[derive(Default)]
pub struct Inherited {
    sockets: Vec<(Address, Bind)>,
}

impl Inherited {
    /// Takes what the environment says is ours; nothing, mostly.
    #[must_use]
    pub fn from_env() -> Self {
        let mut handed = ListenFd::from_env();
        let sockets = (0..handed.len())
            .filter_map(|index| {
                let socket = take(&mut handed, index);
                if socket.is_none() {
                    tracing::warn!("socket {index} that was handed over does not listen");
                }
                socket
            })
            .collect();
        Self { sockets }
    }

    /// The addresses of these sockets.
    pub fn addresses(&self) -> impl Iterator<Item = &Address> {
        self.sockets.iter().map(|(address, _)| address)
    }

    /// The socket of `address`, if it was handed over.
    pub(super) fn socket(&self, address: &Address) -> Option<io::Result<Bind>> {
        let mut sockets = self.sockets.iter();
        let (_, bound) = sockets.find(|(of, _)| of == address)?;
        Some(bound.try_clone())
    }
}

fn take(handed: &mut ListenFd, index: usize) -> Option<(Address, Bind)> {
    if let Ok(Some(listener)) = handed.take_tcp_listener(index) {
        return tcp(listener);
    }
    handed
        .take_unix_listener(index)
        .ok()
        .flatten()
        .and_then(unix)
}

fn tcp(listener: TcpListener) -> Option<(Address, Bind)> {
    listener.set_nonblocking(true).ok()?;
    let address = Address::Tcp(listener.local_addr().ok()?);
    Some((address, Bind::Tcp(listener)))
}

fn unix(listener: UnixListener) -> Option<(Address, Bind)> {
    listener.set_nonblocking(true).ok()?;
    let address = Address::Unix(listener.local_addr().ok()?.as_pathname()?.to_owned());
    Some((address, Bind::Unix(listener)))
}
