//! Why a request got no answer, in terms that one place above turns into a status.
//!
//! Nothing here is written to a client as it is.

use std::error::Error as StdError;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem;

use crate::body::BoxError;

/// Why there is no response head.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// Every server is left out for now.
    #[error("no server of the upstream is available")]
    NoServer,
    /// `max_connections` are open, and none became free in time.
    #[error("all connections to the upstream stayed busy")]
    Saturated,
    /// No connection could be made; nothing was sent.
    #[error("no connection to {server}")]
    Connect {
        /// Its label.
        server: Arc<str>,
        /// What failed.
        source: ConnectError,
    },
    /// No connection within `timeouts.connect`; nothing was sent.
    #[error("no connection to {server} in time")]
    ConnectTimeout {
        /// Its label.
        server: Arc<str>,
    },
    /// No response head in time.
    #[error("no answer in time")]
    HeadTimeout,
    /// The connection ended before a response head.
    #[error("the connection ended without an answer")]
    Closed(#[source] hyper::Error),
    /// The answer violated HTTP.
    #[error("the answer is no HTTP")]
    Malformed(#[source] hyper::Error),
    /// The request body failed while it was being sent: the client's doing.
    #[error("the request body failed")]
    RequestBody(#[source] BoxError),
    /// The server reset the HTTP/2 stream.
    #[error("the stream was reset: {0}")]
    Reset(h2::Reason),
}

impl SendError {
    /// What hyper reports before a response head.
    pub(super) fn of_exchange(error: hyper::Error) -> Self {
        let h2 = cause::<h2::Error>(&error);
        let reset = h2.filter(|h2| h2.is_reset() && h2.is_remote());
        if let Some(reason) = reset.and_then(h2::Error::reason) {
            return Self::Reset(reason);
        }
        // What our own side of HTTP/2 or the strict grammar of HTTP/1 objects to.
        let malformed = error.is_parse()
            || h2.is_some_and(h2::Error::is_library)
            || cause::<io::Error>(&error).is_some_and(|io| io.kind() == io::ErrorKind::InvalidData);
        if malformed {
            Self::Malformed(error)
        } else {
            Self::Closed(error)
        }
    }

    /// The server failed as a whole, as opposed to one stream, the client, or ourselves.
    pub(super) fn is_the_servers(&self) -> bool {
        match self {
            Self::Connect { .. }
            | Self::ConnectTimeout { .. }
            | Self::HeadTimeout
            | Self::Closed(_)
            | Self::Malformed(_) => true,
            Self::NoServer | Self::Saturated | Self::RequestBody(_) | Self::Reset(_) => false,
        }
    }

    /// The server says that it did not begin to process the request (RFC 9113 section 8.7).
    pub(super) fn is_unprocessed(&self) -> bool {
        match self {
            Self::Reset(reason) => *reason == h2::Reason::REFUSED_STREAM,
            Self::Closed(error) => {
                cause::<h2::Error>(error).is_some_and(|h2| h2.is_go_away() && h2.is_remote())
            }
            _ => false,
        }
    }
}

/// The first cause of this type.
fn cause<E: StdError + 'static>(error: &hyper::Error) -> Option<&E> {
    let mut next = error.source();
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The name could not be resolved.
    #[error("the name {name} does not resolve")]
    Resolve {
        /// The host.
        name: Arc<str>,
        /// What the resolver said.
        source: io::Error,
    },
    /// The socket.
    #[error("the connection failed")]
    Socket(#[source] io::Error),
    /// No address accepted while there was time.
    #[error("nothing accepts")]
    Late,
    /// The TLS handshake.
    #[error("the TLS handshake failed")]
    Tls(#[source] io::Error),
    /// Over TLS the server does not speak what `protocol` says.
    #[error("the server did not agree to {wanted} (ALPN)")]
    Alpn {
        /// The protocol's ALPN name.
        wanted: &'static str,
    },
    /// HTTP could not begin.
    #[error("the HTTP connection could not begin")]
    Http(#[source] hyper::Error),
}

/// Why an upstream cannot be built from its settings.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Its certificates.
    #[error("upstream {upstream}: tls")]
    Tls {
        /// Its name.
        upstream: Arc<str>,
        /// What is wrong.
        source: TlsError,
    },
    /// `demo` without the demo application.
    #[error("upstream {0}: the demo application does not run")]
    NoDemo(Arc<str>),
    /// A PROXY header speaks for one client, an HTTP/2 connection serves many.
    #[error("upstream {0}: proxy_protocol cannot go with protocol: http2")]
    SharedProxyProtocol(Arc<str>),
}

/// Why TLS towards servers cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A PEM file cannot be read.
    #[error("{}: not readable as PEM", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: pem::Error,
    },
    /// A PEM file without a certificate.
    #[error("{}: holds no certificate", .0.display())]
    NoCertificate(PathBuf),
    /// A root that is none.
    #[error("{}: a certificate in it cannot be a root", path.display())]
    Root {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The machine trusts nobody.
    #[error("the system has no root certificates: set tls.ca")]
    NoSystemRoots,
    /// Certificate and key of ours do not fit.
    #[error("{}: not usable as client certificate", chain.display())]
    Client {
        /// The certificate's file.
        chain: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// Neither a DNS name nor an IP address.
    #[error("{0} cannot be verified: neither a name nor an address")]
    Name(String),
    /// The provider lacks what rustls needs.
    #[error("TLS cannot be set up")]
    Provider(#[source] rustls::Error),
}
