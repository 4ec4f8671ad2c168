//! TLS towards clients: which certificate, which protocol.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{RootCertStore, ServerConfig};

use crate::config::settings::{KeyPair, ListenTls};

/// A certificate, a key or a list of authorities that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    /// The file cannot be read or holds no PEM of that kind.
    #[error("{path}: {what}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The parts do not make a TLS configuration.
    #[error("TLS cannot be set up")]
    Setup(#[source] rustls::Error),
}

/// The server side of TLS for one address: ALPN h2 and http/1.1, certificates by SNI.
///
/// # Errors
/// A file that cannot be used.
pub fn server_config(tls: &ListenTls) -> Result<Arc<ServerConfig>, TlsFault> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(TlsFault::Setup)?
        .with_client_cert_verifier(client_verifier(tls, &provider)?);
    let certificates = tls
        .certificates
        .iter()
        .map(|pair| Candidate::load(pair, &provider))
        .collect::<Result<Vec<_>, _>>()?;
    let mut config = builder.with_cert_resolver(Arc::new(BySni(certificates)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.ticketer = aws_lc_rs::Ticketer::new().map_err(TlsFault::Setup)?;
    Ok(Arc::new(config))
}

fn client_verifier(
    tls: &ListenTls,
    provider: &Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsFault> {
    let Some(path) = &tls.client_ca else {
        return Ok(WebPkiClientVerifier::no_client_auth());
    };
    let fault = |what: String| TlsFault::File {
        path: path.clone(),
        what,
    };
    let mut roots = RootCertStore::empty();
    for certificate in
        CertificateDer::pem_file_iter(path).map_err(|error| fault(error.to_string()))?
    {
        let certificate = certificate.map_err(|error| fault(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| fault(error.to_string()))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| fault(error.to_string()))
}

/// A certificate that may be chosen.
#[derive(Debug)]
struct Candidate(Arc<CertifiedKey>);

impl Candidate {
    fn load(pair: &KeyPair, provider: &rustls::crypto::CryptoProvider) -> Result<Self, TlsFault> {
        let fault = |path: &PathBuf, what: String| TlsFault::File {
            path: path.clone(),
            what,
        };
        let chain = CertificateDer::pem_file_iter(&pair.chain)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| fault(&pair.chain, error.to_string()))?;
        let key = PrivateKeyDer::from_pem_file(&pair.key)
            .map_err(|error| fault(&pair.key, error.to_string()))?;
        let certified = CertifiedKey::from_der(chain, key, provider)
            .map_err(|error| fault(&pair.key, error.to_string()))?;
        Ok(Self(Arc::new(certified)))
    }

    fn is_for(&self, name: &ServerName<'_>) -> bool {
        self.0
            .end_entity_cert()
            .and_then(ParsedCertificate::try_from)
            .is_ok_and(|parsed| verify_server_name(&parsed, name).is_ok())
    }
}

/// The first whose names fit; else the first.
#[derive(Debug)]
struct BySni(Vec<Candidate>);

impl ResolvesServerCert for BySni {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let wanted = hello
            .server_name()
            .and_then(|name| ServerName::try_from(name).ok());
        let fitting =
            wanted.and_then(|name| self.0.iter().find(|candidate| candidate.is_for(&name)));
        fitting
            .or_else(|| self.0.first())
            .map(|candidate| Arc::clone(&candidate.0))
    }
}

impl From<TlsFault> for io::Error {
    fn from(fault: TlsFault) -> Self {
        Self::new(io::ErrorKind::InvalidData, fault)
    }
}
