//! https servers: whom the proxy believes, as whom it comes, what is agreed on.

use std::path::PathBuf;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair as Key};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::origin::{Origin, Peer};
use super::*;
use crate::config::settings::KeyPair;
use crate::upstream::{BuildError, ConnectError, TlsError};

/// An authority and what it signed, as files; removed at the end.
struct Pki {
    folder: PathBuf,
    issuer: CertifiedIssuer<'static, Key>,
}

impl Pki {
    fn new(story: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("thinwire-{story}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, Key::generate().unwrap()).unwrap();
        std::fs::write(folder.join("ca.pem"), issuer.pem()).unwrap();
        Self { folder, issuer }
    }

    fn ca(&self) -> PathBuf {
        self.folder.join("ca.pem")
    }

    fn pair(&self, name: &str) -> KeyPair {
        let key = Key::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let pair = KeyPair {
            chain: self.folder.join(format!("{name}.crt")),
            key: self.folder.join(format!("{name}.key")),
        };
        std::fs::write(&pair.chain, certificate.pem()).unwrap();
        std::fs::write(&pair.key, key.serialize_pem()).unwrap();
        pair
    }

    /// A server that comes as `name`; `alpn` empty: it knows no ALPN.
    fn acceptor(&self, name: &str, alpn: &[&str], asks_client: bool) -> TlsAcceptor {
        let pair = self.pair(name);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = if asks_client {
            let mut roots = RootCertStore::empty();
            roots
                .add(CertificateDer::from_pem_file(self.ca()).unwrap())
                .unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build();
            builder.with_client_cert_verifier(verifier.unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let chain = vec![CertificateDer::from_pem_file(pair.chain).unwrap()];
        let key = PrivateKeyDer::from_pem_file(pair.key).unwrap();
        let mut config = builder.with_single_cert(chain, key).unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }

    fn settings(&self, origin: &Origin, name: &str) -> settings::Upstream {
        let server = Server::Tcp {
            tls: true,
            host: "127.0.0.1".into(),
            port: origin.address.port(),
        };
        let tls = UpstreamTls {
            ca: Some(self.ca()),
            name: Some(name.into()),
            client: None,
        };
        settings::Upstream {
            tls,
            ..settings(vec![server])
        }
    }
}

impl Drop for Pki {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

async fn accept(
    origin: &Origin,
    acceptor: &TlsAcceptor,
) -> std::io::Result<Peer<TlsStream<tokio::net::TcpStream>>> {
    let peer = origin.accept().await;
    Ok(Peer::new(within(acceptor.accept(peer.stream)).await?))
}

#[tokio::test]
async fn the_right_name_is_believed_and_the_session_resumed() {
    let pki = Pki::new("right-name");
    let origin = Origin::new().await;
    let acceptor = pki.acceptor("app.internal", &["http/1.1"], false);
    let app = App::new(&pki.settings(&origin, "app.internal"));
    for resumed in [false, true] {
        let (answer, ()) = tokio::join!(app.get("/"), async {
            let mut peer = accept(&origin, &acceptor).await.unwrap();
            let session = peer.stream.get_ref().1;
            assert_eq!(session.server_name(), Some("app.internal"));
            let kind = session.handshake_kind().unwrap();
            assert_eq!(kind == rustls::HandshakeKind::Resumed, resumed, "{kind:?}");
            peer.head().await;
            let last = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
            peer.say(last).await;
        });
        assert_eq!(text(answer.unwrap()).await, "ok");
    }
}

#[tokio::test]
async fn another_name_is_not() {
    let pki = Pki::new("wrong-name");
    let origin = Origin::new().await;
    let acceptor = pki.acceptor("other.internal", &[], false);
    let app = App::new(&pki.settings(&origin, "app.internal"));
    let (answer, server) = tokio::join!(app.get("/"), accept(&origin, &acceptor));
    let error = answer.err().unwrap();
    assert!(
        matches!(
            error,
            SendError::Connect {
                source: ConnectError::Tls(_),
                ..
            }
        ),
        "{error:?}"
    );
    assert!(server.is_err());
    assert_eq!(app.counts(0).connect_failed.get(), 1);
}

#[tokio::test]
async fn a_server_that_wants_to_know_us() {
    let pki = Pki::new("client");
    let origin = Origin::new().await;
    let acceptor = pki.acceptor("app.internal", &[], true);
    let mut settings = pki.settings(&origin, "app.internal");
    settings.tls.client = Some(pki.pair("me.internal"));
    let app = App::new(&settings);
    let (answer, ()) = tokio::join!(app.get("/"), async {
        let mut peer = accept(&origin, &acceptor).await.unwrap();
        assert_eq!(
            peer.stream.get_ref().1.peer_certificates().map(<[_]>::len),
            Some(1)
        );
        peer.serve().await;
    });
    assert_eq!(text(answer.unwrap()).await, "ok");
}

#[tokio::test]
async fn http2_has_to_be_agreed_on() {
    let pki = Pki::new("alpn");
    for alpn in [&["http/1.1"][..], &[]] {
        let origin = Origin::new().await;
        let acceptor = pki.acceptor("app.internal", alpn, false);
        let app = App::new(&settings::Upstream {
            protocol: UpstreamProtocol::Http2,
            ..pki.settings(&origin, "app.internal")
        });
        let (answer, _server) = tokio::join!(app.get("/"), accept(&origin, &acceptor));
        let error = answer.err().unwrap();
        assert!(
            matches!(
                error,
                SendError::Connect {
                    source: ConnectError::Alpn { wanted: "h2" },
                    ..
                }
            ),
            "{alpn:?}: {error:?}"
        );
    }
}

#[tokio::test]
async fn http2_over_tls() {
    let pki = Pki::new("h2");
    let origin = Origin::new().await;
    let acceptor = pki.acceptor("app.internal", &["h2"], false);
    let app = App::new(&settings::Upstream {
        protocol: UpstreamProtocol::Http2,
        ..pki.settings(&origin, "app.internal")
    });
    let (answer, scheme) = tokio::join!(app.get("/"), async {
        let peer = accept(&origin, &acceptor).await.unwrap();
        let mut server = within(h2::server::handshake(peer.stream)).await.unwrap();
        let (asked, mut respond) = within(server.accept()).await.unwrap().unwrap();
        respond
            .send_response(http::Response::new(()), true)
            .unwrap();
        tokio::spawn(async move { while server.accept().await.is_some() {} });
        asked.uri().scheme_str().map(str::to_owned)
    });
    answer.unwrap();
    assert_eq!(scheme.as_deref(), Some("https"));
}

#[test]
fn unreadable_certificates_are_told_at_once() {
    let pki = Pki::new("unreadable");
    let server = Server::Tcp {
        tls: true,
        host: "localhost".into(),
        port: 1,
    };
    let of = |tls| {
        let settings = settings::Upstream {
            tls,
            ..settings(vec![server.clone()])
        };
        Upstream::new(&settings, None, None, |_| ServerMetrics::default())
            .err()
            .unwrap()
    };
    let none = UpstreamTls {
        ca: Some(pki.folder.join("none")),
        ..UpstreamTls::default()
    };
    assert!(matches!(
        of(none),
        BuildError::Tls {
            source: TlsError::Read { .. },
            ..
        }
    ));
    std::fs::write(pki.folder.join("empty"), "").unwrap();
    let empty = UpstreamTls {
        ca: Some(pki.folder.join("empty")),
        ..UpstreamTls::default()
    };
    assert!(matches!(
        of(empty),
        BuildError::Tls {
            source: TlsError::NoCertificate(_),
            ..
        }
    ));
    let (one, two) = (pki.pair("one"), pki.pair("two"));
    let mixed = UpstreamTls {
        ca: Some(pki.ca()),
        client: Some(KeyPair {
            chain: one.chain,
            key: two.key,
        }),
        ..UpstreamTls::default()
    };
    assert!(matches!(
        of(mixed),
        BuildError::Tls {
            source: TlsError::Client { .. },
            ..
        }
    ));
}

#[test]
fn settings_that_contradict_each_other() {
    let of = |settings: &settings::Upstream| {
        Upstream::new(settings, None, None, |_| ServerMetrics::default())
            .err()
            .unwrap()
    };
    assert!(matches!(
        of(&settings(vec![Server::Demo])),
        BuildError::NoDemo(_)
    ));
    let shared = settings::Upstream {
        protocol: UpstreamProtocol::Http2,
        proxy_protocol: ProxyProtocol::V2,
        ..settings(Vec::new())
    };
    assert!(matches!(of(&shared), BuildError::SharedProxyProtocol(_)));
}
