//! The PROXY header that begins a connection: whom a load balancer accepted it from.
//!
//! Read to its last byte and no further: what follows is the client's, TLS or HTTP.

use std::io;
use std::net::SocketAddr;

use ppp::{v1, v2};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Version 2's signature; no line of version 1 is shorter.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// The longest line of version 1, its end included.
const LONGEST_LINE: usize = 107;

/// What version 2 may carry beyond the addresses, with room for certificates' names.
const LONGEST: usize = 4 << 10;

/// Why a connection is not served.
#[derive(Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("it ended, or failed, within the header")]
    Read(#[from] io::Error),
    #[error("it was late")]
    Late(#[from] tokio::time::error::Elapsed),
    #[error("no header of version 1: {0}")]
    V1(#[from] v1::BinaryParseError),
    #[error("no header of version 2: {0}")]
    V2(#[from] v2::ParseError),
    #[error("the header is too long")]
    Long,
}

/// The client that the header names; `None`: the balancer speaks for itself (LOCAL), or does not
/// know (UNKNOWN, a unix socket), and the socket's address holds.
pub(super) async fn read(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<Option<SocketAddr>, Fault> {
    let mut header = vec![0; SIGNATURE.len()];
    stream.read_exact(&mut header).await?;
    if &header[..] == SIGNATURE {
        return binary(stream, header).await;
    }
    // Byte by byte, once a connection: there is no other way not to read too far.
    while !header.ends_with(b"\r\n") {
        if header.len() == LONGEST_LINE || !header.starts_with(b"PROXY ") {
            return Err(v1::Header::try_from(&header[..])
                .err()
                .map_or(Fault::Long, Into::into));
        }
        header.push(stream.read_u8().await?);
    }
    let addresses = v1::Header::try_from(&header[..])?.addresses;
    Ok(match addresses {
        v1::Addresses::Tcp4(ends) => Some((ends.source_address, ends.source_port).into()),
        v1::Addresses::Tcp6(ends) => Some((ends.source_address, ends.source_port).into()),
        v1::Addresses::Unknown => None,
    })
}

async fn binary(
    stream: &mut (impl AsyncRead + Unpin),
    mut header: Vec<u8>,
) -> Result<Option<SocketAddr>, Fault> {
    let start = header.len() + 4;
    header.resize(start, 0);
    stream.read_exact(&mut header[start - 4..]).await?;
    let length = usize::from(u16::from_be_bytes([header[start - 2], header[start - 1]]));
    if length > LONGEST {
        return Err(Fault::Long);
    }
    header.resize(start + length, 0);
    stream.read_exact(&mut header[start..]).await?;
    let parsed = v2::Header::try_from(&header[..])?;
    if parsed.command == v2::Command::Local {
        return Ok(None);
    }
    Ok(match parsed.addresses {
        v2::Addresses::IPv4(ends) => Some((ends.source_address, ends.source_port).into()),
        v2::Addresses::IPv6(ends) => Some((ends.source_address, ends.source_port).into()),
        v2::Addresses::Unix(_) | v2::Addresses::Unspecified => None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const V2: [u8; 28] =
        *b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x7f\0\0\x01\x13\x88\0\x50";

    async fn of(bytes: &[u8]) -> (Result<Option<SocketAddr>, Fault>, Vec<u8>) {
        let mut stream = bytes;
        let read = read(&mut stream).await;
        (read, stream.to_vec())
    }

    #[tokio::test]
    async fn what_follows_is_left_for_others() {
        let client = Some("192.0.2.7:5000".parse().unwrap());
        let local = [&V2[..12], b"\x20\0\0\0"].concat();
        for (header, expected) in [
            (&b"PROXY TCP4 192.0.2.7 127.0.0.1 5000 80\r\n"[..], client),
            (
                b"PROXY TCP6 2001:db8::7 ::1 5000 80\r\n",
                Some("[2001:db8::7]:5000".parse().unwrap()),
            ),
            (b"PROXY UNKNOWN\r\n", None),
            (b"PROXY UNKNOWN 1 2 3 4\r\n", None),
            (&V2, client),
            (&local, None),
        ] {
            let sent = [header, b"GET / HTTP/1.1\r\n"].concat();
            let (read, rest) = of(&sent).await;
            assert_eq!(read.unwrap(), expected, "{}", header.escape_ascii());
            assert_eq!(rest, b"GET / HTTP/1.1\r\n");
        }
    }

    #[tokio::test]
    async fn what_is_no_header_is_refused() {
        let long_line = format!("PROXY TCP4 {} \r\n", "1".repeat(200));
        let mut long = V2.to_vec();
        long[14] = 0xff;
        let mut version = V2.to_vec();
        version[12] = 0x31;
        for bytes in [
            &b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..],
            b"PROXY TCP4 192.0.2.7 127.0.0.1 5000\r\n",
            b"PROXY TCP4 192.0.2.777 127.0.0.1 5000 80\r\n",
            b"PROXY TCP4 192.0.2.7 127.0.0.1 50",
            b"",
            long_line.as_bytes(),
            &V2[..20],
            &long,
            &version,
        ] {
            let (read, _) = of(bytes).await;
            assert!(read.is_err(), "{}: {read:?}", bytes.escape_ascii());
        }
    }
}
