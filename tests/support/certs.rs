//! A certificate authority of the test's own, and what it signs.

use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::folder;

/// An authority, its certificate in a file.
pub struct Ca {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
    folder: PathBuf,
}

/// A certificate chain and its key, as PEM files and in memory.
#[derive(Debug)]
pub struct Pair {
    pub chain: PathBuf,
    pub key: PathBuf,
    certificate: CertificateDer<'static>,
    secret: Vec<u8>,
}

impl Ca {
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "Thinwire tests");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        let issuer = Issuer::new(params, key);
        Self {
            certificate,
            issuer,
            folder: folder("certs"),
        }
    }

    /// A certificate for these names and addresses.
    pub fn issue(&self, names: &[&str]) -> Pair {
        self.sign(names, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A client's certificate.
    pub fn issue_client(&self, name: &str) -> Pair {
        self.sign(&[name], ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(&self, names: &[&str], usage: ExtendedKeyUsagePurpose) -> Pair {
        let owned: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(owned).expect("names");
        params.distinguished_name.push(DnType::CommonName, names[0]);
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.issuer).expect("a certificate");
        let own = folder("pair");
        let (chain, secret) = (own.join("tls.crt"), own.join("tls.key"));
        std::fs::write(&chain, signed.pem()).unwrap();
        std::fs::write(&secret, key.serialize_pem()).unwrap();
        Pair {
            chain,
            key: secret,
            certificate: signed.der().clone(),
            secret: key.serialize_der(),
        }
    }

    /// Its own certificate as a PEM file.
    pub fn file(&self) -> PathBuf {
        let file = self.folder.join("ca.pem");
        std::fs::write(&file, self.certificate.pem()).unwrap();
        file
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).expect("a root");
        roots
    }

    /// A client that trusts this authority alone.
    pub fn client(&self, alpn: &[&str]) -> Arc<ClientConfig> {
        let config = client()
            .with_root_certificates(self.roots())
            .with_no_client_auth();
        offering(config, alpn)
    }

    /// The same, showing a certificate.
    pub fn client_showing(&self, pair: &Pair, alpn: &[&str]) -> Arc<ClientConfig> {
        let config = client()
            .with_root_certificates(self.roots())
            .with_client_auth_cert(vec![pair.certificate.clone()], pair.secret());
        offering(config.expect("a client certificate"), alpn)
    }
}

impl Default for Ca {
    fn default() -> Self {
        Self::new()
    }
}

impl Pair {
    /// A server that shows this certificate.
    pub fn server(&self, alpn: &[&str]) -> Arc<ServerConfig> {
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("protocol versions")
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], self.secret());
        let mut config = config.expect("a server certificate");
        config.alpn_protocols = protocols(alpn);
        Arc::new(config)
    }

    fn secret(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.secret.clone()).expect("a PKCS#8 key")
    }

    /// Its certificate.
    pub fn der(&self) -> &[u8] {
        &self.certificate
    }

    /// As the configuration writes it.
    pub fn yaml(&self) -> String {
        format!(
            "{{ chain: \"{}\", key: \"{}\" }}",
            self.chain.display(),
            self.key.display()
        )
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

fn client() -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("protocol versions")
}

fn offering(mut config: ClientConfig, alpn: &[&str]) -> Arc<ClientConfig> {
    config.alpn_protocols = protocols(alpn);
    Arc::new(config)
}

fn protocols(alpn: &[&str]) -> Vec<Vec<u8>> {
    alpn.iter().map(|name| name.as_bytes().to_vec()).collect()
}
