//! One POST to the collector: blocking, on the exporter's own thread, a connection each.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use http::header::{HeaderName, HeaderValue};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::ExportError;

/// What of an answer is read: its status line is among it.
const ANSWER: usize = 4096;

/// Where a signal goes.
pub(super) struct Target {
    url: String,
    host: String,
    port: u16,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    /// The head up to the length.
    head: String,
}

impl Target {
    /// `http://` or `https://`.
    pub(super) fn new(url: &str, headers: &[(String, String)]) -> Result<Self, ExportError> {
        let fault = |what: &str| ExportError::Variable {
            variable: "OTEL_EXPORTER_OTLP_ENDPOINT",
            what: format!("{url:?}: {what}"),
        };
        let uri: Uri = url.parse().map_err(|_| fault("no URL"))?;
        let host = uri.host().ok_or_else(|| fault("no URL with a host"))?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let (tls, usual) = match uri.scheme_str() {
            Some("http") => (None, 80),
            Some("https") => {
                let name = ServerName::try_from(bare.to_owned());
                let name = name.map_err(|_| fault("no name to verify"))?;
                (Some((Arc::new(trusting_the_system()?), name)), 443)
            }
            _ => return Err(fault("write http:// or https://")),
        };
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let path = uri.path_and_query().map_or("/", |target| target.as_str());
        let mut head = format!(
            "POST {path} HTTP/1.1\r\nhost: {authority}\r\ncontent-type: application/x-protobuf\r\n\
             user-agent: thinwire/{}\r\nconnection: close\r\n",
            env!("CARGO_PKG_VERSION")
        );
        for (name, value) in headers {
            let is_field = HeaderName::try_from(name.as_str()).is_ok()
                && HeaderValue::try_from(value.as_str()).is_ok();
            if !is_field {
                return Err(ExportError::Variable {
                    variable: "OTEL_EXPORTER_OTLP_HEADERS",
                    what: format!("{name:?} is no header field"),
                });
            }
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        Ok(Self {
            url: url.to_owned(),
            host: bare.to_owned(),
            port: uri.port_u16().unwrap_or(usual),
            tls,
            head,
        })
    }

    /// Each step may take `timeout`.
    pub(super) fn post(&self, body: &[u8], timeout: Duration) -> io::Result<()> {
        let addresses = (self.host.as_str(), self.port).to_socket_addrs()?;
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in addresses {
            match TcpStream::connect_timeout(&address, timeout) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(timeout))?;
                    stream.set_write_timeout(Some(timeout))?;
                    return self.over(stream, body);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn over(&self, stream: TcpStream, body: &[u8]) -> io::Result<()> {
        let Some((config, name)) = &self.tls else {
            return self.exchange(stream, body);
        };
        let session = ClientConnection::new(Arc::clone(config), name.clone());
        let session = session.map_err(io::Error::other)?;
        self.exchange(StreamOwned::new(session, stream), body)
    }

    fn exchange(&self, mut stream: impl Read + Write, body: &[u8]) -> io::Result<()> {
        let head = format!("{}content-length: {}\r\n\r\n", self.head, body.len());
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        stream.flush()?;
        let mut answer = Vec::new();
        let mut piece = [0; 512];
        while !answer.contains(&b'\n') && answer.len() < ANSWER {
            match stream.read(&mut piece)? {
                0 => break,
                count => answer.extend_from_slice(&piece[..count]),
            }
        }
        let line = answer.split(|byte| *byte == b'\r' || *byte == b'\n').next();
        let line = String::from_utf8_lossy(line.unwrap_or_default()).into_owned();
        match line.split(' ').nth(1) {
            Some(status) if status.starts_with('2') => Ok(()),
            _ => Err(io::Error::other(format!("it answers {line:?}"))),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

fn trusting_the_system() -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}
