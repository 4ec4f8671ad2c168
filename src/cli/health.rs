//! Asks the admin address whether the proxy is ready, for container checks.
//!
//! Plain blocking sockets: a check that runs every few seconds starts no runtime. It never waits
//! longer than [`PATIENCE`] for any one step.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// For the connection, and for each read and write.
const PATIENCE: Duration = Duration::from_secs(2);

/// Why the proxy is not ready.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotReady {
    /// Nobody answers there.
    #[error("{address} does not answer: {error}")]
    Silent {
        address: SocketAddr,
        error: io::Error,
    },
    /// It says so, or is something else.
    #[error("{address} answers {status:?}")]
    Refused { address: SocketAddr, status: String },
}

/// `GET /ready`.
pub(super) fn ask(address: SocketAddr) -> Result<(), NotReady> {
    let address = reachable(address);
    let head = exchange(address).map_err(|error| NotReady::Silent { address, error })?;
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) == Some("200") {
        return Ok(());
    }
    Err(NotReady::Refused {
        address,
        status: status.to_owned(),
    })
}

/// Who listens on every address is asked on the loopback one.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    address
}

/// The beginning of the answer; its first line suffices.
fn exchange(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let request = format!("GET /ready HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut head = Vec::new();
    let mut buffer = [0; 256];
    while !head.contains(&b'\n') && head.len() < 1024 {
        match stream.read(&mut buffer)? {
            0 => break,
            count => head.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// What `ask` makes of an admin address that answers so.
    fn asked(answer: &'static [u8]) -> Result<(), NotReady> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let admin = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let mut request = [0; 512];
            let count = client.read(&mut request).unwrap();
            assert!(request[..count].starts_with(b"GET /ready HTTP/1.1\r\n"));
            client.write_all(answer).unwrap();
        });
        let result = ask(address);
        admin.join().unwrap();
        result
    }

    #[test]
    fn a_200_is_ready() {
        asked(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    }

    #[test]
    fn a_503_is_not_ready() {
        let refused = asked(b"HTTP/1.1 503 Service Unavailable\r\n\r\n").unwrap_err();
        assert!(
            refused
                .to_string()
                .ends_with("answers \"HTTP/1.1 503 Service Unavailable\"")
        );
    }

    #[test]
    fn something_that_closes_is_not_ready() {
        assert!(matches!(asked(b""), Err(NotReady::Refused { .. })));
    }

    #[test]
    fn nobody_there_is_not_ready() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert!(matches!(ask(address), Err(NotReady::Silent { .. })));
    }

    #[test]
    fn an_unspecified_address_is_asked_on_loopback() {
        let on = |text: &str| reachable(text.parse().unwrap()).to_string();
        assert_eq!(on("0.0.0.0:9900"), "127.0.0.1:9900");
        assert_eq!(on("[::]:9900"), "[::1]:9900");
        assert_eq!(on("10.0.0.1:9900"), "10.0.0.1:9900");
    }
}
