//! Tells systemd how far the proxy is (`sd_notify`, `Type=notify` units).
//!
//! It never keeps the proxy from anything: what cannot be told is logged, and that is all.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Names the socket; absent where nobody wants to know.
const SOCKET: &str = "NOTIFY_SOCKET";

/// What is told.
#[derive(Debug, Clone, Copy)]
pub(super) enum State {
    /// It listens on every address.
    Ready,
    /// It drains.
    Stopping,
}

impl State {
    fn message(self) -> &'static [u8] {
        match self {
            Self::Ready => b"READY=1\nSTATUS=Serving\n",
            Self::Stopping => b"STOPPING=1\nSTATUS=Draining\n",
        }
    }
}

/// Tells the service manager, if there is one that listens.
pub(super) fn tell(state: State) {
    let Some(name) = std::env::var_os(SOCKET) else {
        return;
    };
    if let Err(error) = send(&name, state.message()) {
        tracing::warn!(%error, "the service manager cannot be told: {state:?}");
    }
}

/// A name that begins with `@` is in the abstract namespace, any other is a path.
fn send(name: &OsStr, message: &[u8]) -> io::Result<()> {
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?
        .send_to_addr(message, &address)
        .map(drop)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn received(manager: &UnixDatagram) -> String {
        let mut buffer = [0; 256];
        let count = manager.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..count].to_vec()).unwrap()
    }

    #[test]
    fn abstract_names_are_reached() {
        let name = format!("thinwire-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let manager = UnixDatagram::bind_addr(&address).unwrap();
        send(OsStr::new(&format!("@{name}")), State::Ready.message()).unwrap();
        assert_eq!(received(&manager), "READY=1\nSTATUS=Serving\n");
    }

    #[test]
    fn nobody_there_is_an_error_and_no_panic() {
        assert!(send(OsStr::new("/nonexistent/notify"), b"READY=1").is_err());
    }
}
