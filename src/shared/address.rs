//! Where the second tier is, and a stream to it. What may be a password never leaves this file.

use std::fmt;
use std::io;
use std::sync::Arc;

use redis::{ConnectionAddr, IntoConnectionInfo, ProtocolVersion, RedisConnectionInfo};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Why an address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// It is no URL of a tier.
    #[error("cache.shared.url names no server and database")]
    Url,
    /// No certificate could name this host.
    #[error("cache.shared.url: {0} is no name for TLS")]
    Name(String),
    /// There are no roots of the system's to trust.
    #[error("the system has no trusted roots, which rediss:// needs")]
    NoRoots,
    /// TLS refuses its setup.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
}

/// A server, and what is said to it first.
pub(super) struct Address {
    host: String,
    port: u16,
    login: RedisConnectionInfo,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

/// A stream of either kind.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

impl Address {
    /// Reads `redis://` and `rediss://`.
    pub(super) fn parse(url: &str) -> Result<Self, AddressError> {
        // The crate reads the secure scheme only where it brings TLS of its own.
        let (secure, plain) = match url.split_once("://") {
            Some(("rediss", rest)) => (true, format!("redis://{rest}")),
            Some(("redis", _)) => (false, url.to_owned()),
            _ => return Err(AddressError::Url),
        };
        let info = plain
            .into_connection_info()
            .map_err(|_| AddressError::Url)?;
        let ConnectionAddr::Tcp(host, port) = info.addr().clone() else {
            return Err(AddressError::Url);
        };
        let tls = if secure {
            let name = ServerName::try_from(host.clone());
            let name = name.map_err(|_| AddressError::Name(host.clone()))?;
            Some((connector()?, name))
        } else {
            None
        };
        // Purges arrive on the connection that everything else runs on, which RESP2 cannot do.
        let login = info.redis_settings().clone();
        Ok(Self {
            host,
            port,
            login: login.set_protocol(ProtocolVersion::RESP3),
            tls,
        })
    }

    /// The database, the user and the password.
    pub(super) const fn login(&self) -> &RedisConnectionInfo {
        &self.login
    }

    /// Connects.
    pub(super) async fn stream(&self) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        stream.set_nodelay(true)?;
        match &self.tls {
            None => Ok(Box::new(stream)),
            Some((connector, name)) => Ok(Box::new(connector.connect(name.clone(), stream).await?)),
        }
    }
}

/// Scheme, host and port alone.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() {
            "rediss"
        } else {
            "redis"
        };
        write!(f, "{scheme}://{}:{}", self.host, self.port)
    }
}

/// Trusts the system's roots.
fn connector() -> Result<TlsConnector, AddressError> {
    let mut roots = RootCertStore::empty();
    let (added, _) =
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if added == 0 {
        return Err(AddressError::NoRoots);
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(AddressError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_an_address_holds_no_password() {
        for (url, shown) in [
            ("redis://127.0.0.1", "redis://127.0.0.1:6379"),
            ("redis://:hidden@h:7000/3", "redis://h:7000"),
            ("redis://me:hid%40den@h", "redis://h:6379"),
            (
                "rediss://me:hidden@cache.example:6380",
                "rediss://cache.example:6380",
            ),
        ] {
            let address = Address::parse(url).expect("an address");
            assert_eq!(address.to_string(), shown);
        }
        let address = Address::parse("redis://me:hid%40den@h/3").expect("an address");
        assert_eq!(address.login().password(), Some("hid@den"));
        assert_eq!(
            (address.login().username(), address.login().db()),
            (Some("me"), 3)
        );
    }

    #[test]
    fn what_is_no_address_is_refused_without_being_shown() {
        for url in ["http://h", "redis://:hidden@h/x", "rediss://:hidden@h/x"] {
            let Err(error) = Address::parse(url) else {
                panic!("{url}");
            };
            assert!(!error.to_string().contains("hidden"), "{error}");
        }
    }
}
