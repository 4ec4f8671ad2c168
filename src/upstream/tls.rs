//! TLS towards `https` servers: whom we trust, as whom we come, and what is spoken inside.
//!
//! Files are read when an upstream is built, never while a request waits.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::error::{ConnectError, TlsError};
use crate::config::settings::{KeyPair, UpstreamProtocol, UpstreamTls};

/// Makes TLS connections to the servers of one upstream; sessions are resumed.
#[derive(Clone)]
pub(super) struct Tls {
    connector: TlsConnector,
    alpn: &'static str,
    required: bool,
}

/// The name to verify and to send, made when the upstream is built.
pub(super) fn server_name(tls: &UpstreamTls, host: &str) -> Result<ServerName<'static>, TlsError> {
    let name = tls.name.as_deref().unwrap_or(host);
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))
}

impl Tls {
    pub(super) fn new(tls: &UpstreamTls, protocol: UpstreamProtocol) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let roots = match &tls.ca {
            Some(path) => roots_of(path)?,
            None => system_roots()?,
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Provider)?
            .with_root_certificates(roots);
        let mut config = match &tls.client {
            None => builder.with_no_client_auth(),
            Some(pair) => builder
                .with_client_auth_cert(certificates(&pair.chain)?, key(pair)?)
                .map_err(|source| TlsError::Client {
                    chain: pair.chain.clone(),
                    source,
                })?,
        };
        // A server without ALPN speaks HTTP/1.1; HTTP/2 has to be agreed on (RFC 9113 section 3.2).
        let (alpn, required) = match protocol {
            UpstreamProtocol::Http1 => ("http/1.1", false),
            UpstreamProtocol::Http2 => ("h2", true),
        };
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
            alpn,
            required,
        })
    }

    pub(super) async fn connect(
        &self,
        name: ServerName<'static>,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, ConnectError> {
        let stream = self
            .connector
            .connect(name, stream)
            .await
            .map_err(|error| {
                // rustls' name for "no protocol in common", whichever side found out.
                let refused = error
                    .get_ref()
                    .and_then(|inner| inner.downcast_ref::<rustls::Error>());
                match refused {
                    Some(rustls::Error::AlertReceived(
                        rustls::AlertDescription::NoApplicationProtocol,
                    )) => ConnectError::Alpn { wanted: self.alpn },
                    _ => ConnectError::Tls(error),
                }
            })?;
        let agreed = stream.get_ref().1.alpn_protocol();
        if agreed != Some(self.alpn.as_bytes()) && (self.required || agreed.is_some()) {
            return Err(ConnectError::Alpn { wanted: self.alpn });
        }
        Ok(stream)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = |source| TlsError::Read {
        path: path.to_owned(),
        source,
    };
    let certificates = CertificateDer::pem_file_iter(path)
        .map_err(read)?
        .collect::<Result<Vec<_>, _>>()
        .map_err(read)?;
    if certificates.is_empty() {
        return Err(TlsError::NoCertificate(path.to_owned()));
    }
    Ok(certificates)
}

fn key(pair: &KeyPair) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(&pair.key).map_err(|source| TlsError::Read {
        path: pair.key.clone(),
        source,
    })
}

fn roots_of(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|source| TlsError::Root {
            path: path.to_owned(),
            source,
        })?;
    }
    Ok(roots)
}

/// Those of the system's that parse; a machine may keep odd ones among them.
fn system_roots() -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let (added, _) =
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if added == 0 {
        Err(TlsError::NoSystemRoots)
    } else {
        Ok(roots)
    }
}
