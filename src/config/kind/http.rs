//! What HTTP names: hosts, paths, methods, header fields, media types and codings.

use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method};

use super::{Text, Word};
use crate::codec::Coding;
use crate::config::settings::{HeaderPattern, HostPattern, PathPattern};
use crate::head::authority::host;
use crate::head::media::MediaPattern;
use crate::head::path;

/// Codings of HTTP bodies.
pub(in crate::config) const HTTP_CODING: Word<Coding> = Word(&[
    ("gzip", Coding::Gzip),
    ("br", Coding::Brotli),
    ("zstd", Coding::Zstd),
]);

/// Codings of gRPC messages.
pub(in crate::config) const GRPC_CODING: Word<Coding> = Word(&[
    ("gzip", Coding::Gzip),
    ("zstd", Coding::Zstd),
    ("deflate", Coding::Deflate),
]);

/// A host to match.
pub(in crate::config) const HOST: Text<HostPattern> = Text {
    expected: "a host such as api.example.com or \"*.example.com\" (a * only as the first label)",
    pattern: None,
    parse: |text| match text.strip_prefix("*.") {
        Some(name) => host(name)
            .filter(|name| !name.starts_with('['))
            .map(|name| HostPattern::Suffix(format!(".{name}"))),
        None => host(text).map(|host| HostPattern::Exact(host.into_owned())),
    },
    show: |host| match host {
        HostPattern::Exact(name) => name.clone(),
        HostPattern::Suffix(suffix) => format!("*{suffix}"),
    },
    secret: false,
};

/// A path to match.
pub(in crate::config) const PATH: Text<PathPattern> = Text {
    expected: "a path that begins with / (a prefix) or with =/ (exact), without ? and #",
    pattern: Some("^=?/"),
    parse: |text| {
        let (exact, path) = text
            .strip_prefix('=')
            .map_or((false, text), |path| (true, path));
        let fits = path.starts_with('/') && !path.contains(['?', '#']);
        let path = fits.then(|| path::normalize(path)).flatten()?.into_owned();
        Some(if exact {
            PathPattern::Exact(path)
        } else {
            PathPattern::Prefix(path)
        })
    },
    show: |path| match path {
        PathPattern::Prefix(path) => path.clone(),
        PathPattern::Exact(path) => format!("={path}"),
    },
    secret: false,
};

/// A path to ask for, query included.
pub(in crate::config) const URL_PATH: Text<String> = Text {
    expected: "a path that begins with /",
    pattern: Some("^/"),
    parse: |text| {
        let parses = text.starts_with('/') && text.parse::<PathAndQuery>().is_ok();
        parses.then(|| text.to_owned())
    },
    show: Clone::clone,
    secret: false,
};

/// A request method.
pub(in crate::config) const METHOD: Text<Method> = Text {
    expected: "a method in upper case such as GET",
    pattern: Some("^[^a-z]+$"),
    parse: |text| {
        let upper = !text.bytes().any(|byte| byte.is_ascii_lowercase());
        upper.then(|| text.parse().ok()).flatten()
    },
    show: ToString::to_string,
    secret: false,
};

/// Any field name.
pub(in crate::config) const HEADER_NAME: Text<HeaderName> = Text {
    expected: "a header name such as x-tenant",
    pattern: Some(TOKEN_PATTERN),
    parse: |text| text.parse().ok(),
    show: ToString::to_string,
    secret: false,
};

/// A field name that edits may touch: framing and hop-by-hop fields belong to the proxy.
pub(in crate::config) const FORWARDED_HEADER: Text<HeaderName> = Text {
    expected: "a header name such as x-tenant, none that frames a message or is for one hop only",
    pattern: Some(TOKEN_PATTERN),
    parse: |text| {
        let name: HeaderName = text.parse().ok()?;
        (!PER_HOP.contains(&name.as_str())).then_some(name)
    },
    show: ToString::to_string,
    secret: false,
};

const TOKEN_PATTERN: &str = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";

/// RFC 9110 section 7.6.1, RFC 9112 section 6.
const PER_HOP: [&str; 9] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];

/// A field value.
pub(in crate::config) const HEADER_VALUE: Text<HeaderValue> = Text {
    expected: "a header value of visible ASCII characters, on one line",
    pattern: None,
    parse: |text| {
        let trimmed = text.trim_matches([' ', '\t']).len() == text.len();
        let ascii = text
            .bytes()
            .all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte));
        (trimmed && ascii)
            .then(|| HeaderValue::from_str(text).ok())
            .flatten()
    },
    show: |value| String::from_utf8_lossy(value.as_bytes()).into_owned(),
    secret: false,
};

/// What a header has to be.
pub(in crate::config) const HEADER_PATTERN: Text<HeaderPattern> = Text {
    expected: "the exact header value, or \"*\" for present",
    pattern: None,
    parse: |text| match text {
        "*" => Some(HeaderPattern::Present),
        _ => (HEADER_VALUE.parse)(text).map(|_| HeaderPattern::Exact(text.to_owned())),
    },
    show: |pattern| match pattern {
        HeaderPattern::Present => "*".to_owned(),
        HeaderPattern::Exact(value) => value.clone(),
    },
    secret: false,
};

/// A media type to match.
pub(in crate::config) const MEDIA: Text<MediaPattern> = Text {
    expected: "type/subtype such as text/* or application/*+json",
    pattern: Some("^[^/ ;]+/[^/ ;]+$"),
    parse: |text| MediaPattern::parse(text).ok(),
    show: ToString::to_string,
    secret: false,
};

/// An Upgrade token.
pub(in crate::config) const UPGRADE: Text<String> = Text {
    expected: "an Upgrade token such as websocket (h2c never passes)",
    pattern: Some("^[!#$%&'*+.^_`|~0-9A-Za-z/-]+$"),
    parse: |text| {
        let token = text.to_ascii_lowercase();
        let mut parts = token.splitn(2, '/');
        let fits = parts.all(|part| part.parse::<HeaderName>().is_ok());
        (fits && token != "h2c").then_some(token)
    },
    show: Clone::clone,
    secret: false,
};
