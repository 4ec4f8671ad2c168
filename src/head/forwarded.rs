//! Who asked: X-Forwarded-For, -Proto, -Host, and Forwarded (RFC 7239), which clients cannot forge.
//!
//! From a peer that is not trusted every `X-Forwarded-*` and Forwarded goes and ours take their
//! place; from a trusted one they stay and grow. X-Forwarded-Port is never added (X-Forwarded-Host
//! has the port where there is one). `Client-Cert` and `Client-Cert-Chain` (RFC 9440) go whoever
//! sent them: only a handshake here asserts them.
//!
//! CGI-like interfaces (WSGI among them) fold `-` and `_` into one, so that `X_Forwarded_For` would
//! reach an app under the name of ours. Fields with an underscore whose folded name is one that
//! we assert are removed, from trusted peers too.

use std::net::{IpAddr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use http::header::{Entry, FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const CLIENT_CERT: HeaderName = HeaderName::from_static("client-cert");

/// The other end of a connection: made once, used for each of its requests.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Absent on a unix socket.
    address: Option<HeaderValue>,
    proto: HeaderValue,
    /// `for=192.0.2.1;proto=https`.
    element: String,
    trusted: bool,
    certificate: Option<HeaderValue>,
}

impl Peer {
    /// `secure`: it speaks TLS to us. `trusted`: it is one of `trust_forwarded_from`.
    #[must_use]
    pub fn new(address: Option<IpAddr>, secure: bool, trusted: bool) -> Self {
        let address = address.map(|address| address.to_canonical());
        let node = match address {
            Some(IpAddr::V4(v4)) => v4.to_string(),
            Some(IpAddr::V6(v6)) => format!("\"[{v6}]\""),
            None => "unknown".to_owned(),
        };
        let proto = if secure { "https" } else { "http" };
        Self {
            address: address.and_then(|address| HeaderValue::try_from(address.to_string()).ok()),
            proto: HeaderValue::from_static(proto),
            element: format!("for={node};proto={proto}"),
            trusted,
            certificate: None,
        }
    }

    /// It showed this certificate (DER) in the handshake: `Client-Cert` says so to the app, as a byte
    /// sequence of structured fields (RFC 9440 section 2.2, RFC 9651 section 3.3.5).
    #[must_use]
    pub fn with_certificate(mut self, certificate: Option<&[u8]>) -> Self {
        self.certificate = certificate.and_then(|der| {
            let mut value = HeaderValue::try_from(format!(":{}:", BASE64.encode(der))).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        self
    }

    /// The client address that a trusted peer names: of the chain in X-Forwarded-For, or else in
    /// Forwarded, the last that is not itself trusted. None: the peer is not trusted, or says nothing
    /// legible.
    pub fn origin(&self, headers: &HeaderMap, trusts: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
        if !self.trusted {
            return None;
        }
        let x = nodes(headers, &X_FORWARDED_FOR);
        let chain = if x.is_empty() {
            nodes(headers, &FORWARDED)
        } else {
            x
        };
        let mut seen = None;
        for address in chain.into_iter().rev().map_while(|address| address) {
            seen = Some(address);
            if !trusts(address) {
                break;
            }
        }
        seen
    }

    /// Removes what the peer may not say and says who it is; Host has to be there already.
    pub fn announce(&self, headers: &mut HeaderMap) {
        remove_forgeries(headers, self.trusted);
        if let Some(certificate) = self.certificate.clone() {
            headers.insert(CLIENT_CERT, certificate);
        }
        let host = headers.get(HOST).filter(|host| !host.is_empty()).cloned();
        let element = self.element_for(host.as_ref());
        // A chain that a trusted peer keeps in one of the two fields is not begun anew in the
        // other: who reads that one would take the peer for the client.
        let has_x = headers.contains_key(&X_FORWARDED_FOR);
        let has_forwarded = headers.contains_key(FORWARDED);
        if has_forwarded || !has_x {
            extend(headers, FORWARDED, element);
        }
        if has_forwarded && !has_x {
            return;
        }
        if let Some(address) = self.address.clone() {
            extend(headers, X_FORWARDED_FOR, Some(address));
        }
        headers
            .entry(X_FORWARDED_PROTO)
            .or_insert_with(|| self.proto.clone());
        if let Some(host) = host {
            headers.entry(X_FORWARDED_HOST).or_insert(host);
        }
    }

    /// A host needs quotes where it has a colon; it has been checked and holds no quote itself.
    fn element_for(&self, host: Option<&HeaderValue>) -> Option<HeaderValue> {
        let Some(host) = host.and_then(|host| host.to_str().ok()) else {
            return HeaderValue::from_str(&self.element).ok();
        };
        let mut element = String::with_capacity(self.element.len() + host.len() + 8);
        element.push_str(&self.element);
        element.push_str(";host=");
        if host.contains([':', '[']) {
            element.push('"');
            element.push_str(host);
            element.push('"');
        } else {
            element.push_str(host);
        }
        HeaderValue::from_maybe_shared(bytes::Bytes::from(element)).ok()
    }
}

/// Appends to the list in one line: some applications read only the first line, some the last.
fn extend(headers: &mut HeaderMap, name: HeaderName, more: Option<HeaderValue>) {
    let Some(more) = more else { return };
    match headers.entry(name) {
        Entry::Vacant(vacant) => {
            vacant.insert(more);
        }
        Entry::Occupied(mut lines) => {
            let parts = lines.iter().chain([&more]);
            let parts: Vec<_> = parts
                .map(HeaderValue::as_bytes)
                .filter(|part| !part.trim_ascii().is_empty())
                .collect();
            if let Ok(joined) = HeaderValue::from_bytes(&parts.join(&b", "[..])) {
                lines.insert(joined);
            }
        }
    }
}

/// The addresses in a chain, oldest first; `None` where one is hidden or illegible.
fn nodes(headers: &HeaderMap, name: &HeaderName) -> Vec<Option<IpAddr>> {
    let lines = headers.get_all(name).iter();
    let elements = lines.flat_map(|line| line.to_str().unwrap_or_default().split(','));
    let node = |element: &str| {
        if name != FORWARDED {
            return address(element);
        }
        let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
        let (_, node) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
        address(node)
    };
    elements
        .filter(|element| !element.trim().is_empty())
        .map(node)
        .collect()
}

/// `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `"[2001:db8::1]:80"`.
fn address(node: &str) -> Option<IpAddr> {
    let node = node.trim().trim_matches('"');
    let plain = node.parse().ok();
    let with_port = || node.parse().ok().map(|address: SocketAddr| address.ip());
    let bracketed = || node.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    let address: Option<IpAddr> = plain.or_else(with_port).or_else(bracketed);
    address.map(|address| address.to_canonical())
}

fn remove_forgeries(headers: &mut HeaderMap, trusted: bool) {
    let forged: Vec<_> = headers
        .keys()
        .filter(|name| is_forgery(name.as_str(), trusted))
        .cloned()
        .collect();
    for name in forged {
        headers.remove(name);
    }
}

/// Of a lower-case name.
fn is_forgery(name: &str, trusted: bool) -> bool {
    if memchr::memchr(b'_', name.as_bytes()).is_some() {
        return is_asserted_here(&name.replace('_', "-"));
    }
    match name {
        "client-cert" | "client-cert-chain" => true,
        "forwarded" => !trusted,
        _ => !trusted && name.starts_with("x-forwarded-"),
    }
}

/// Names whose value the app takes from us, or that frame its messages.
fn is_asserted_here(name: &str) -> bool {
    name.starts_with("x-forwarded-")
        || matches!(
            name,
            "client-cert"
                | "client-cert-chain"
                | "accept-encoding"
                | "content-encoding"
                | "content-length"
                | "transfer-encoding"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: &str = "192.0.2.7";

    fn announced(peer: &Peer, fields: &[(&'static str, &'static str)]) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        peer.announce(&mut headers);
        let mut seen: Vec<_> = headers
            .iter()
            .filter(|(name, _)| **name != HOST)
            .map(|(name, value)| {
                (
                    name.to_string(),
                    String::from_utf8_lossy(value.as_bytes()).into(),
                )
            })
            .collect();
        seen.sort();
        seen
    }

    fn peer(address: &str, secure: bool, trusted: bool) -> Peer {
        Peer::new(Some(address.parse().expect("an address")), secure, trusted)
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn a_chain_is_read_from_its_end_as_far_as_it_is_trusted() {
        let trusts = |ip: IpAddr| ip.to_string().starts_with("10.");
        let table: [(&'static str, &'static str, Option<&str>); 11] = [
            ("x-forwarded-for", "192.0.2.1", Some("192.0.2.1")),
            (
                "x-forwarded-for",
                "6.6.6.6, 192.0.2.1, 10.0.0.2",
                Some("192.0.2.1"),
            ),
            ("x-forwarded-for", "10.0.0.3, 10.0.0.2", Some("10.0.0.3")),
            (
                "x-forwarded-for",
                "6.6.6.6, unknown, 10.0.0.2",
                Some("10.0.0.2"),
            ),
            ("x-forwarded-for", "192.0.2.1:5000", Some("192.0.2.1")),
            ("x-forwarded-for", "::ffff:192.0.2.1", Some("192.0.2.1")),
            ("x-forwarded-for", "rubbish", None),
            (
                "forwarded",
                "for=192.0.2.1;proto=https, for=10.1.1.1",
                Some("192.0.2.1"),
            ),
            (
                "forwarded",
                "proto=http;For=\"[2001:db8::7]:80\"",
                Some("2001:db8::7"),
            ),
            ("forwarded", "for=_hidden", None),
            ("x-real-ip", "192.0.2.1", None),
        ];
        for (name, value, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            let origin = |trusted| peer(CLIENT, false, trusted).origin(&headers, trusts);
            let expected = expected.map(|address| address.parse().expect("an address"));
            assert_eq!(origin(true), expected, "{name}: {value}");
            assert_eq!(origin(false), None, "{name}: {value}");
        }
    }

    #[test]
    fn a_certificate_is_told_and_cannot_be_forged() {
        let forged = [("client-cert", ":AAAA:"), ("client-cert-chain", ":AAAA:")];
        let told = |peer: &Peer| {
            let fields = announced(peer, &forged).into_iter();
            let fields = fields.filter(|(name, _)| name.starts_with("client-cert"));
            fields.collect::<Vec<_>>()
        };
        let bare = peer(CLIENT, true, true);
        assert_eq!(told(&bare), pairs(&[]));
        let shown = bare.with_certificate(Some(b"\x30\x03abc"));
        assert_eq!(told(&shown), pairs(&[("client-cert", ":MANhYmM=:")]));
    }

    #[test]
    fn the_app_learns_who_asked() {
        assert_eq!(
            announced(&peer(CLIENT, true, false), &[("host", "example.com")]),
            pairs(&[
                ("forwarded", "for=192.0.2.7;proto=https;host=example.com"),
                ("x-forwarded-for", "192.0.2.7"),
                ("x-forwarded-host", "example.com"),
                ("x-forwarded-proto", "https"),
            ])
        );
        assert_eq!(
            announced(
                &peer("2001:db8::1", false, false),
                &[("host", "example.com:8080")]
            ),
            pairs(&[
                (
                    "forwarded",
                    "for=\"[2001:db8::1]\";proto=http;host=\"example.com:8080\""
                ),
                ("x-forwarded-for", "2001:db8::1"),
                ("x-forwarded-host", "example.com:8080"),
                ("x-forwarded-proto", "http"),
            ])
        );
    }

    #[test]
    fn an_ipv4_client_on_an_ipv6_socket_is_an_ipv4_client() {
        let seen = announced(&peer("::ffff:192.0.2.7", false, false), &[]);
        assert_eq!(
            seen,
            pairs(&[
                ("forwarded", "for=192.0.2.7;proto=http"),
                ("x-forwarded-for", "192.0.2.7"),
                ("x-forwarded-proto", "http"),
            ])
        );
    }

    #[test]
    fn a_unix_socket_has_no_address() {
        let seen = announced(
            &Peer::new(None, false, false),
            &[("x-forwarded-for", "203.0.113.1")],
        );
        assert_eq!(
            seen,
            pairs(&[
                ("forwarded", "for=unknown;proto=http"),
                ("x-forwarded-proto", "http")
            ])
        );
    }

    #[test]
    fn what_a_stranger_claims_is_replaced() {
        let seen = announced(
            &peer(CLIENT, false, false),
            &[
                ("host", "a"),
                ("x-forwarded-for", "203.0.113.1"),
                ("x-forwarded-for", "203.0.113.2"),
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", "evil.test"),
                ("x-forwarded-port", "1"),
                ("x-forwarded-prefix", "/evil"),
                ("forwarded", "for=203.0.113.1"),
                ("x-other", "stays"),
            ],
        );
        assert_eq!(
            seen,
            pairs(&[
                ("forwarded", "for=192.0.2.7;proto=http;host=a"),
                ("x-forwarded-for", "192.0.2.7"),
                ("x-forwarded-host", "a"),
                ("x-forwarded-proto", "http"),
                ("x-other", "stays"),
            ])
        );
    }

    #[test]
    fn what_a_trusted_peer_says_stays_and_grows_in_one_line() {
        let seen = announced(
            &peer(CLIENT, false, true),
            &[
                ("host", "a"),
                ("x-forwarded-for", "203.0.113.1"),
                ("x-forwarded-for", "203.0.113.2, 203.0.113.3"),
                ("x-forwarded-proto", "https"),
                ("x-forwarded-prefix", "/app"),
                ("forwarded", "for=203.0.113.1;proto=https"),
            ],
        );
        assert_eq!(
            seen,
            pairs(&[
                (
                    "forwarded",
                    "for=203.0.113.1;proto=https, for=192.0.2.7;proto=http;host=a"
                ),
                (
                    "x-forwarded-for",
                    "203.0.113.1, 203.0.113.2, 203.0.113.3, 192.0.2.7"
                ),
                ("x-forwarded-host", "a"),
                ("x-forwarded-prefix", "/app"),
                ("x-forwarded-proto", "https"),
            ])
        );
    }

    #[test]
    fn a_chain_in_one_field_is_not_begun_anew_in_the_other() {
        let trusted = peer(CLIENT, false, true);
        assert_eq!(
            announced(&trusted, &[("x-forwarded-for", "203.0.113.1")]),
            pairs(&[
                ("x-forwarded-for", "203.0.113.1, 192.0.2.7"),
                ("x-forwarded-proto", "http"),
            ])
        );
        assert_eq!(
            announced(&trusted, &[("forwarded", "for=203.0.113.1")]),
            pairs(&[("forwarded", "for=203.0.113.1, for=192.0.2.7;proto=http")])
        );
        assert_eq!(announced(&trusted, &[]).len(), 3);
    }

    #[test]
    fn nobody_forges_a_certificate_or_a_twin_of_our_names() {
        for trusted in [false, true] {
            let seen = announced(
                &peer(CLIENT, false, trusted),
                &[
                    ("client-cert", ":AA==:"),
                    ("client-cert-chain", ":AA==:"),
                    ("client_cert", ":AA==:"),
                    ("client-cert_chain", ":AA==:"),
                    ("x_forwarded_for", "203.0.113.1"),
                    ("x-forwarded_proto", "https"),
                    ("content_length", "7"),
                    ("transfer_encoding", "chunked"),
                    ("accept_encoding", "gzip"),
                    ("my_field", "stays"),
                ],
            );
            assert_eq!(
                seen,
                pairs(&[
                    ("forwarded", "for=192.0.2.7;proto=http"),
                    ("my_field", "stays"),
                    ("x-forwarded-for", "192.0.2.7"),
                    ("x-forwarded-proto", "http"),
                ])
            );
        }
    }
}
