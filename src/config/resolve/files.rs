//! Certificates, keys and roots: whatever cannot be used when serving is a fault of the file.

use std::path::{Path, PathBuf};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, RootCertStore};

use crate::config::kind::FILE;
use crate::config::section::Section;
use crate::config::settings::KeyPair;

/// `{ chain: FILE, key: FILE }`, both readable and made for each other.
pub(super) fn key_pair(s: &mut Section<'_>) -> Option<KeyPair> {
    let about = "PEM file of the certificate chain, the leaf first.";
    let chain = s
        .required("chain", &FILE, about)
        .map(|path| s.base_dir.join(path));
    let about = "PEM file of the private key: PKCS#8, SEC1 or PKCS#1.";
    let key = s
        .required("key", &FILE, about)
        .map(|path| s.base_dir.join(path));
    let certificates = chain
        .as_ref()
        .and_then(|path| certificates(s, "chain", path));
    let private_key = key.as_ref().and_then(|path| private_key(s, path));
    if let (Some(certificates), Some(private_key)) = (certificates, private_key) {
        check_match(s, certificates, private_key);
    }
    Some(KeyPair {
        chain: chain?,
        key: key?,
    })
}

/// A PEM file of certificates to trust.
pub(super) fn roots(s: &mut Section<'_>, name: &'static str, about: &str) -> Option<PathBuf> {
    let path = s.base_dir.join(s.optional(name, &FILE, about)?);
    let mut store = RootCertStore::empty();
    for certificate in certificates(s, name, &path)? {
        if let Err(error) = store.add(certificate) {
            let shown = path.display();
            s.fault(
                name,
                &format!("{shown} holds no usable CA certificate ({error})"),
            );
            break;
        }
    }
    Some(path)
}

fn certificates(
    s: &mut Section<'_>,
    name: &'static str,
    path: &Path,
) -> Option<Vec<CertificateDer<'static>>> {
    let read = || -> Result<Vec<_>, PemError> {
        let certificates: Vec<_> =
            CertificateDer::pem_file_iter(path)?.collect::<Result<_, _>>()?;
        if certificates.is_empty() {
            Err(PemError::NoItemsFound)
        } else {
            Ok(certificates)
        }
    };
    let certificates = read().map_err(|error| {
        s.fault(
            name,
            &unusable(path, &error, "a PEM file with CERTIFICATE sections"),
        );
    });
    let certificates = certificates.ok()?;
    for certificate in &certificates {
        if let Err(error) = ParsedCertificate::try_from(certificate) {
            let shown = path.display();
            s.fault(
                name,
                &format!("{shown} holds something that is no certificate ({error})"),
            );
            return None;
        }
    }
    Some(certificates)
}

fn private_key(s: &mut Section<'_>, path: &Path) -> Option<PrivateKeyDer<'static>> {
    let key = PrivateKeyDer::from_pem_file(path);
    key.map_err(|error| {
        s.fault(
            "key",
            &unusable(path, &error, "a PEM file with a PRIVATE KEY section"),
        );
    })
    .ok()
}

fn unusable(path: &Path, error: &PemError, expected: &str) -> String {
    let path = path.display();
    match error {
        PemError::Io(error) => format!("{path} cannot be read ({error}), name {expected}"),
        error => format!("{path} cannot be used ({error}), name {expected}"),
    }
}

fn check_match(
    s: &mut Section<'_>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) {
    match CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider()) {
        Ok(_) => {}
        Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
            s.fault(
                "key",
                "this key does not belong to the first certificate of the chain",
            );
        }
        Err(error) => s.fault("key", &format!("this key cannot be used ({error})")),
    }
}
