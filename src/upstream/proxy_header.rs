//! The PROXY header that tells a server who the client is; v1 and v2 of the haproxy specification.
//!
//! It speaks for a whole connection, which then serves this client only.

use std::net::{IpAddr, SocketAddr};

use crate::config::settings::ProxyProtocol;

/// What begins a v2 header.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// The bytes to send ahead of everything else; none for [`ProxyProtocol::None`].
///
/// `client` is absent where it has no address (unix sockets, our own checks): the header then says
/// UNKNOWN, or UNSPEC. An absent `local` is written as the unspecified address.
pub(super) fn encode(
    version: ProxyProtocol,
    client: Option<SocketAddr>,
    local: Option<SocketAddr>,
) -> Vec<u8> {
    match (version, client) {
        (ProxyProtocol::None, _) => Vec::new(),
        (ProxyProtocol::V1, None) => b"PROXY UNKNOWN\r\n".to_vec(),
        (ProxyProtocol::V2, None) => [&SIGNATURE[..], &[0x20, 0x00, 0, 0]].concat(),
        (ProxyProtocol::V1, Some(client)) => v1(one_family(client, local)),
        (ProxyProtocol::V2, Some(client)) => v2(one_family(client, local)),
    }
}

type Pair = (SocketAddr, SocketAddr);

/// Both as IPv4 if both are, else both as IPv6.
fn one_family(client: SocketAddr, local: Option<SocketAddr>) -> Pair {
    let plain = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let client = plain(client);
    let local = local.map_or_else(
        || match client {
            SocketAddr::V4(_) => SocketAddr::from(([0; 4], 0)),
            SocketAddr::V6(_) => SocketAddr::from(([0; 16], 0)),
        },
        plain,
    );
    if client.is_ipv4() == local.is_ipv4() {
        return (client, local);
    }
    let mapped = |address: SocketAddr| match address.ip() {
        IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
        IpAddr::V6(_) => address,
    };
    (mapped(client), mapped(local))
}

fn v1((client, local): Pair) -> Vec<u8> {
    let family = if client.is_ipv4() { "TCP4" } else { "TCP6" };
    let (from, to) = (client.ip(), local.ip());
    format!(
        "PROXY {family} {from} {to} {} {}\r\n",
        client.port(),
        local.port()
    )
    .into_bytes()
}

fn v2((client, local): Pair) -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    match (client.ip(), local.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            header.extend([0x21, 0x11, 0, 12]);
            header.extend(from.octets());
            header.extend(to.octets());
        }
        (from, to) => {
            header.extend([0x21, 0x21, 0, 36]);
            for ip in [from, to] {
                header.extend(match ip {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                    IpAddr::V6(ip) => ip.octets(),
                });
            }
        }
    }
    header.extend(client.port().to_be_bytes());
    header.extend(local.port().to_be_bytes());
    header
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn header(version: ProxyProtocol, client: &str, local: &str) -> Vec<u8> {
        encode(version, client.parse().ok(), local.parse().ok())
    }

    #[test]
    fn v1_lines() {
        let table = [
            (
                "192.0.2.1:40000",
                "192.0.2.9:443",
                "TCP4 192.0.2.1 192.0.2.9 40000 443",
            ),
            (
                "[2001:db8::1]:40000",
                "[2001:db8::9]:443",
                "TCP6 2001:db8::1 2001:db8::9 40000 443",
            ),
            (
                "[::ffff:192.0.2.1]:1",
                "192.0.2.9:2",
                "TCP4 192.0.2.1 192.0.2.9 1 2",
            ),
            (
                "192.0.2.1:1",
                "[2001:db8::9]:2",
                "TCP6 ::ffff:192.0.2.1 2001:db8::9 1 2",
            ),
            ("192.0.2.1:1", "", "TCP4 192.0.2.1 0.0.0.0 1 0"),
            ("[2001:db8::1]:1", "", "TCP6 2001:db8::1 :: 1 0"),
            ("", "192.0.2.9:2", "UNKNOWN"),
        ];
        for (client, local, expected) in table {
            let line = String::from_utf8(header(ProxyProtocol::V1, client, local)).unwrap();
            assert_eq!(line, format!("PROXY {expected}\r\n"));
            assert!(line.len() <= 107);
        }
    }

    #[test]
    fn v2_of_ipv4() {
        let bytes = header(ProxyProtocol::V2, "192.0.2.1:40000", "192.0.2.9:443");
        let rest = [
            0x21, 0x11, 0, 12, 192, 0, 2, 1, 192, 0, 2, 9, 0x9c, 0x40, 0x01, 0xbb,
        ];
        assert_eq!(bytes, [&SIGNATURE[..], &rest].concat());
    }

    #[test]
    fn v2_of_ipv6() {
        let bytes = header(ProxyProtocol::V2, "192.0.2.1:1", "[2001:db8::9]:2");
        assert_eq!(bytes[12..16], [0x21, 0x21, 0, 36]);
        assert_eq!(bytes.len(), 16 + 36);
        assert_eq!(bytes[26..32], [0xff, 0xff, 192, 0, 2, 1]);
        assert_eq!(bytes[47..], [9, 0, 1, 0, 2]);
    }

    #[test]
    fn a_client_without_an_address() {
        let bytes = header(ProxyProtocol::V2, "", "");
        assert_eq!(bytes, [&SIGNATURE[..], &[0x20, 0, 0, 0]].concat());
        assert!(header(ProxyProtocol::None, "192.0.2.1:1", "192.0.2.9:2").is_empty());
    }
}
