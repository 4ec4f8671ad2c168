//! What concerns one connection only and never passes (RFC 9110 section 7.6.1), and Via, which
//! says that it passed here.
//!
//! Connection may name fields to remove, but a peer that names what others rely on (Host, lengths,
//! credentials, cache keys, what we assert ourselves) is not obeyed: such a field is for all.

use http::Version;
use http::header::{
    CONNECTION, COOKIE, Entry, HeaderMap, HeaderName, HeaderValue, TE, UPGRADE, VIA,
};

use super::list;

/// What the connection-specific fields of a request said, before they went.
#[derive(Debug, Clone, Default)]
pub struct RequestHop {
    /// `TE: trailers`: the client takes trailers.
    pub takes_trailers: bool,
    /// The protocols the client would change to.
    pub upgrade: Upgrade,
}

/// The protocols of an Upgrade field that Connection names; empty for most requests.
#[derive(Debug, Clone, Default)]
pub struct Upgrade(Vec<HeaderValue>);

/// Removes what must not reach the app. HTTP/1.0 and HTTP/2 have no Upgrade: it is ignored there.
pub fn strip_request(headers: &mut HeaderMap, version: Version) -> RequestHop {
    let hop = RequestHop {
        takes_trailers: list::tokens(headers, TE).any(|member| is(member, "trailers")),
        upgrade: Upgrade::of(headers, version),
    };
    strip(headers);
    hop
}

/// Removes what must not reach the client.
pub fn strip_response(headers: &mut HeaderMap) {
    strip(headers);
}

/// Adds this hop to Via; `received` is the version of the message that passes.
pub fn via(headers: &mut HeaderMap, received: Version) {
    let entry = match received {
        Version::HTTP_10 => "1.0 thinwire",
        Version::HTTP_2 => "2 thinwire",
        _ => "1.1 thinwire",
    };
    headers.append(VIA, HeaderValue::from_static(entry));
}

/// Joins the Cookie fields that HTTP/2 may split, for an app that speaks HTTP/1 (RFC 9113 section
/// 8.2.3).
pub fn join_cookies(headers: &mut HeaderMap) {
    let Entry::Occupied(mut crumbs) = headers.entry(COOKIE) else {
        return;
    };
    if crumbs.iter().nth(1).is_none() {
        return;
    }
    let joined = crumbs.iter().map(HeaderValue::as_bytes).collect::<Vec<_>>();
    // What several fields held, one can hold.
    if let Ok(whole) = HeaderValue::from_bytes(&joined.join(&b"; "[..])) {
        crumbs.insert(whole);
    }
}

impl Upgrade {
    /// The first of the client's protocols that is allowed; the others are as if never named.
    #[must_use]
    pub fn choose<'a>(&self, allowed: &'a [String]) -> Option<&'a str> {
        let mut wanted = self.0.iter().flat_map(|line| list::split(line.as_bytes()));
        wanted.find_map(|protocol| {
            let known = allowed.iter().find(|known| is(protocol, known))?;
            Some(known.as_str())
        })
    }

    fn of(headers: &HeaderMap, version: Version) -> Self {
        let named = version == Version::HTTP_11
            && headers.contains_key(UPGRADE)
            && list::tokens(headers, CONNECTION).any(|option| is(option, "upgrade"));
        if !named {
            return Self::default();
        }
        Self(headers.get_all(UPGRADE).iter().cloned().collect())
    }
}

fn strip(headers: &mut HeaderMap) {
    let doomed: Vec<_> = headers
        .keys()
        .filter(|name| is_connection_specific(name))
        .cloned()
        .chain(list::tokens(headers, CONNECTION).filter_map(named_by_connection))
        .collect();
    for name in doomed {
        headers.remove(name);
    }
}

/// The field that a connection option removes beyond those that go anyway.
fn named_by_connection(option: &[u8]) -> Option<HeaderName> {
    if is(option, "keep-alive") || is(option, "close") || is(option, "upgrade") {
        return None;
    }
    let name = HeaderName::from_bytes(option).ok()?;
    (!is_for_all(&name)).then_some(name)
}

/// Proxy-Authenticate and Proxy-Authorization are between a proxy and who chose it (RFC 9110
/// section 11.7): the app is not that proxy, so its challenge and a client's answer end here.
fn is_connection_specific(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "keep-alive"
            | "proxy-connection"
            | "te"
            | "transfer-encoding"
            | "upgrade"
            | "http2-settings"
            | "proxy-authenticate"
            | "proxy-authorization"
    )
}

/// Fields that every recipient needs: no connection option takes them away.
fn is_for_all(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.starts_with("content-")
        || name.starts_with("if-")
        || name.starts_with("x-forwarded-")
        || name.starts_with("sec-")
        || matches!(
            name,
            "host"
                | "authorization"
                | "www-authenticate"
                | "cookie"
                | "set-cookie"
                | "origin"
                | "cache-control"
                | "vary"
                | "etag"
                | "date"
                | "expires"
                | "age"
                | "last-modified"
                | "location"
                | "range"
                | "accept-encoding"
                | "expect"
                | "trailer"
                | "forwarded"
                | "via"
                | "client-cert"
                | "client-cert-chain"
                | "thinwire-compress"
        )
}

fn is(token: &[u8], lower: &str) -> bool {
    token.eq_ignore_ascii_case(lower.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_connections_own_fields_end_here() {
        let mut headers = head(&[
            ("host", "a"),
            ("connection", "keep-alive, X-Hop"),
            ("connection", "close,x-other"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMAAABkAAQAAP__"),
            ("proxy-authorization", "Basic eA=="),
            ("x-hop", "1"),
            ("x-hop", "2"),
            ("x-other", "1"),
            ("x-stays", "1"),
        ]);
        let hop = strip_request(&mut headers, Version::HTTP_11);
        assert_eq!(names(&headers), ["host", "x-stays"]);
        assert!(hop.takes_trailers);
        assert_eq!(hop.upgrade.choose(&["h2c".to_owned()]), None);

        let mut headers = head(&[
            ("connection", "x-hop"),
            ("proxy-authenticate", "Basic"),
            ("x-hop", "1"),
            ("server", "a"),
        ]);
        strip_response(&mut headers);
        assert_eq!(names(&headers), ["server"]);
    }

    #[test]
    fn connection_cannot_take_away_what_others_rely_on() {
        let fields = [
            ("host", "a"),
            ("content-length", "3"),
            ("authorization", "Bearer x"),
            ("cookie", "a=b"),
            ("x-forwarded-for", "192.0.2.1"),
            ("forwarded", "for=192.0.2.1"),
            ("via", "1.1 a"),
            ("client-cert", ":AA==:"),
            ("if-match", "\"a\""),
        ];
        let mut headers = head(&fields);
        let options = fields.map(|(name, _)| name).join(", ");
        headers.insert(CONNECTION, options.parse().expect("a field value"));
        strip_request(&mut headers, Version::HTTP_11);
        assert_eq!(headers, head(&fields));
    }

    #[test]
    fn odd_connection_options_are_no_names() {
        let mut headers = head(&[
            ("connection", "(), a b, \"x, \u{20}, x-hop"),
            ("x-hop", "1"),
        ]);
        strip_response(&mut headers);
        assert!(headers.is_empty());
    }

    #[test]
    fn trailers_are_taken_by_those_who_say_so() {
        let takes =
            |value| strip_request(&mut head(&[("te", value)]), Version::HTTP_11).takes_trailers;
        assert!(takes("Trailers"));
        assert!(takes("deflate;q=0.5, trailers"));
        assert!(!takes("gzip"));
        assert!(!strip_request(&mut HeaderMap::new(), Version::HTTP_2).takes_trailers);
    }

    #[test]
    fn an_upgrade_counts_if_connection_names_it_over_http_1_1() {
        let allowed = ["websocket".to_owned(), "x-tunnel/2".to_owned()];
        let chosen = |connection, upgrade, version| {
            let mut headers = head(&[("connection", connection), ("upgrade", upgrade)]);
            let hop = strip_request(&mut headers, version);
            assert!(headers.is_empty());
            hop.upgrade.choose(&allowed).map(str::to_owned)
        };
        let h1 = Version::HTTP_11;
        let websocket = Some("websocket".to_owned());
        assert_eq!(chosen("Upgrade", "WebSocket", h1), websocket);
        assert_eq!(
            chosen("keep-alive, upgrade", "h2c, websocket", h1),
            websocket
        );
        assert_eq!(
            chosen("upgrade", "X-Tunnel/2, websocket", h1),
            Some("x-tunnel/2".to_owned())
        );
        assert_eq!(chosen("upgrade", "h2c", h1), None);
        assert_eq!(chosen("upgrade", "websocket/13", h1), None);
        assert_eq!(chosen("keep-alive", "websocket", h1), None);
        assert_eq!(chosen("upgrade", "websocket", Version::HTTP_10), None);
        assert_eq!(chosen("upgrade", "websocket", Version::HTTP_2), None);
    }

    #[test]
    fn via_grows_by_this_hop() {
        let mut headers = head(&[("via", "1.0 fred")]);
        for version in [Version::HTTP_11, Version::HTTP_2, Version::HTTP_10] {
            via(&mut headers, version);
        }
        let lines: Vec<_> = headers.get_all(VIA).iter().collect();
        assert_eq!(
            lines,
            ["1.0 fred", "1.1 thinwire", "2 thinwire", "1.0 thinwire"]
        );
    }

    #[test]
    fn cookie_crumbs_become_one_cookie() {
        let mut headers = head(&[("cookie", "a=b"), ("cookie", "c=d"), ("cookie", "e=f")]);
        join_cookies(&mut headers);
        let lines: Vec<_> = headers.get_all(COOKIE).iter().collect();
        assert_eq!(lines, ["a=b; c=d; e=f"]);
        join_cookies(&mut headers);
        assert_eq!(headers[COOKIE], "a=b; c=d; e=f");
        let mut none = HeaderMap::new();
        join_cookies(&mut none);
        assert!(none.is_empty());
    }

    proptest! {
        #[test]
        fn any_connection_value_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let Ok(value) = HeaderValue::from_bytes(&bytes) else { return Ok(()) };
            let mut headers = head(&[("host", "a"), ("content-length", "3")]);
            headers.insert(CONNECTION, value.clone());
            headers.insert(TE, value.clone());
            headers.insert(UPGRADE, value);
            strip_request(&mut headers, Version::HTTP_11);
            prop_assert_eq!(names(&headers), ["content-length", "host"]);
        }
    }
}
