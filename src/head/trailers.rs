//! Trailer fields (RFC 9110 section 6.5): which may pass, and over which HTTP.
//!
//! HTTP/2 carries all that may be trailers at all. Over HTTP/1 only those pass that the head
//! announced in Trailer, to a client that sent `TE: trailers`.

use http::header::{HeaderMap, HeaderName, TRAILER};

use super::list;

/// Removes what frames, routes, authenticates or describes a message: a recipient that merged it
/// into the head would be fooled (RFC 9110 section 6.5.1).
pub fn retain_allowed(trailers: &mut HeaderMap) {
    retain(trailers, is_allowed);
}

/// The names in the Trailer field of a head.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Announced(Vec<HeaderName>);

impl Announced {
    /// Names that may not be trailers do not count.
    #[must_use]
    pub fn of(head: &HeaderMap) -> Self {
        let names =
            list::tokens(head, TRAILER).filter_map(|name| HeaderName::from_bytes(name).ok());
        Self(names.filter(is_allowed).collect())
    }

    /// Removes what was not announced: for HTTP/1.
    pub fn retain(&self, trailers: &mut HeaderMap) {
        retain(trailers, |name| self.0.contains(name));
    }
}

fn retain(fields: &mut HeaderMap, keep: impl Fn(&HeaderName) -> bool) {
    let doomed: Vec<_> = fields.keys().filter(|name| !keep(name)).cloned().collect();
    for name in doomed {
        fields.remove(name);
    }
}

fn is_allowed(name: &HeaderName) -> bool {
    let name = name.as_str();
    let forbidden = name.starts_with("if-")
        || name.starts_with("proxy-")
        || name.starts_with("x-forwarded-")
        || matches!(
            name,
            // How the message is framed and routed.
            "connection" | "keep-alive" | "transfer-encoding" | "content-length" | "trailer" | "te"
                | "upgrade" | "http2-settings" | "host" | "via" | "forwarded" | "client-cert"
                | "client-cert-chain"
                // What modifies a request or guards it.
                | "expect" | "max-forwards" | "range" | "cache-control" | "pragma"
                | "authorization" | "www-authenticate" | "cookie" | "set-cookie"
                // What controls a response and says what its body is.
                | "age" | "date" | "expires" | "location" | "retry-after" | "vary" | "warning"
                | "content-encoding" | "content-type" | "content-range" | "thinwire-compress"
        );
    !forbidden
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn fields(names: &[&'static str]) -> HeaderMap {
        let pairs = names
            .iter()
            .map(|name| (HeaderName::from_static(name), HeaderValue::from_static("x")));
        pairs.collect()
    }

    #[test]
    fn what_would_change_the_message_is_no_trailer() {
        let mut trailers = fields(&[
            "grpc-status",
            "grpc-message",
            "status-details-bin",
            "content-digest",
            "server-timing",
            "content-length",
            "transfer-encoding",
            "host",
            "authorization",
            "set-cookie",
            "content-encoding",
            "content-type",
            "trailer",
            "if-match",
            "x-forwarded-for",
            "cache-control",
            "connection",
            "client-cert",
            "proxy-authorization",
        ]);
        retain_allowed(&mut trailers);
        let kept = fields(&[
            "grpc-status",
            "grpc-message",
            "status-details-bin",
            "content-digest",
            "server-timing",
        ]);
        assert_eq!(trailers, kept);
    }

    #[test]
    fn http_1_gets_what_was_announced() {
        let mut head = HeaderMap::new();
        head.append(TRAILER, HeaderValue::from_static("X-Sum, host"));
        head.append(TRAILER, HeaderValue::from_static("x-more,,bad name"));
        let announced = Announced::of(&head);
        let mut trailers = fields(&["x-sum", "x-more", "host", "x-silent"]);
        announced.retain(&mut trailers);
        assert_eq!(trailers, fields(&["x-sum", "x-more"]));

        let mut trailers = fields(&["x-sum"]);
        Announced::of(&HeaderMap::new()).retain(&mut trailers);
        assert!(trailers.is_empty());
    }
}
