//! One GET, asking for plain bytes: no redirects, no retries, nothing kept.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Method, Request, Uri, header};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// For all of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why there are no bytes.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("not a URL that can be fetched")]
    Url,
    #[error("cannot connect: {0}")]
    Connect(#[from] std::io::Error),
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
    #[error("{0}")]
    Http(#[from] hyper::Error),
    #[error("it answers {0}")]
    Status(http::StatusCode),
    #[error("it answers in {0:?} although plain bytes were asked for; measure what it codes")]
    Coded(String),
    #[error("it took longer than {PATIENCE:?}")]
    Slow,
}

/// The first `most` bytes of what the URL answers.
pub(super) fn fetch(url: &str, most: usize) -> Result<Bytes, FetchError> {
    let url: Uri = url.parse().map_err(|_| FetchError::Url)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        tokio::time::timeout(PATIENCE, get(&url, most))
            .await
            .map_err(|_| FetchError::Slow)?
    })
}

async fn get(url: &Uri, most: usize) -> Result<Bytes, FetchError> {
    let host = url.host().ok_or(FetchError::Url)?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_tls = url.scheme_str() == Some("https");
    let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let stream = TcpStream::connect((bare, port)).await?;
    if !is_tls {
        return exchange(stream, url, most).await;
    }
    let name = ServerName::try_from(bare.to_owned()).map_err(|_| FetchError::Url)?;
    let stream = TlsConnector::from(Arc::new(trusting_the_system()?))
        .connect(name, stream)
        .await?;
    exchange(stream, url, most).await
}

fn trusting_the_system() -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    url: &Uri,
    most: usize,
) -> Result<Bytes, FetchError> {
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    // Its faults are the sender's too.
    let connection = tokio::spawn(connection);
    let host = url.authority().map_or("", |authority| authority.as_str());
    let request = Request::builder()
        .method(Method::GET)
        .uri(url.path_and_query().map_or("/", |target| target.as_str()))
        .header(header::HOST, host)
        .header(header::ACCEPT_ENCODING, "identity")
        .header(header::USER_AGENT, "thinwire-measure")
        .body(Empty::<Bytes>::new())
        .map_err(|_| FetchError::Url)?;
    let answer = sender.send_request(request).await?;
    if !answer.status().is_success() {
        return Err(FetchError::Status(answer.status()));
    }
    if let Some(coding) = answer.headers().get(header::CONTENT_ENCODING)
        && !coding.as_bytes().eq_ignore_ascii_case(b"identity")
    {
        let coding = String::from_utf8_lossy(coding.as_bytes()).into_owned();
        return Err(FetchError::Coded(coding));
    }
    let mut body = answer.into_body();
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        if let Some(data) = frame?.data_ref() {
            let room = most - bytes.len();
            bytes.extend_from_slice(&data[..data.len().min(room)]);
        }
        if bytes.len() == most {
            break;
        }
    }
    connection.abort();
    Ok(bytes.freeze())
}
