//! Host and :authority (RFC 9110 section 7.2, RFC 3986 section 3.2), read strictly.
//!
//! What two readers could take for different hosts is none: userinfo, percent-encoding, empty
//! labels, anything but letters, digits, `-`, `.` and `_` in a name.

use std::borrow::Cow;
use std::net::Ipv6Addr;

/// A host and perhaps a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority<'a> {
    /// Lower case, without a trailing dot; an IPv6 address in its shortest form, in brackets.
    pub host: Cow<'a, str>,
    /// 1..=65535; absent where nothing follows the colon.
    pub port: Option<u16>,
}

impl<'a> Authority<'a> {
    /// Reads `host[:port]`; `None` is worth a 400, as is an empty text where a host is needed.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(bracketed) => {
                let (address, port) = bracketed.split_once(']')?;
                let as_written = &text[..address.len() + 2];
                (ipv6(address.parse().ok()?, as_written), port)
            }
            None => {
                let end = text.find(':').unwrap_or(text.len());
                (name(&text[..end])?, &text[end..])
            }
        };
        let port = match port.strip_prefix(':') {
            Some(digits) => port_number(digits)?,
            None if port.is_empty() => None,
            None => return None,
        };
        Some(Self { host, port })
    }
}

/// The host of an authority as routes compare it: see [`Authority::host`].
#[must_use]
pub fn host(authority: &str) -> Option<Cow<'_, str>> {
    Authority::parse(authority).map(|authority| authority.host)
}

fn ipv6(address: Ipv6Addr, as_written: &str) -> Cow<'_, str> {
    let shortest = format!("[{address}]");
    if shortest == as_written {
        Cow::Borrowed(as_written)
    } else {
        Cow::Owned(shortest)
    }
}

fn name(text: &str) -> Option<Cow<'_, str>> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let mut before = b'.';
    let mut upper = false;
    for &byte in text.as_bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => {}
            b'A'..=b'Z' => upper = true,
            b'.' if before != b'.' => {}
            _ => return None,
        }
        before = byte;
    }
    // Also where the text is empty.
    if before == b'.' {
        return None;
    }
    Some(if upper {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    })
}

/// `Some(None)`: no digits, which RFC 3986 allows.
fn port_number(digits: &str) -> Option<Option<u16>> {
    if digits.is_empty() {
        return Some(None);
    }
    if digits.len() > 5 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let port: u16 = digits.parse().ok()?;
    (port != 0).then_some(Some(port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hosts_are_compared_in_one_form() {
        for (text, expected, port) in [
            ("example.com", "example.com", None),
            ("EXAMPLE.com", "example.com", None),
            ("example.com.", "example.com", None),
            ("example.com:8080", "example.com", Some(8080)),
            ("Example.COM.:65535", "example.com", Some(65535)),
            ("example.com:", "example.com", None),
            ("under_score.x-y", "under_score.x-y", None),
            ("127.0.0.1:80", "127.0.0.1", Some(80)),
            ("[::1]", "[::1]", None),
            ("[0:0:0:0:0:0:0:1]:443", "[::1]", Some(443)),
            ("[2001:DB8::A]", "[2001:db8::a]", None),
        ] {
            let host = Cow::Borrowed(expected);
            assert_eq!(
                Authority::parse(text),
                Some(Authority { host, port }),
                "{text}"
            );
        }
        assert!(matches!(host("plain.example:80"), Some(Cow::Borrowed(_))));
        assert!(matches!(host("[::1]:80"), Some(Cow::Borrowed(_))));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_no_authority() {
        for text in [
            "",
            ".",
            "..",
            ":80",
            "a..b",
            ".a",
            "a..",
            "user@host",
            "a:b@host",
            "a b",
            "a\t",
            "a\r\n",
            "a\0",
            "a/b",
            "a?b",
            "a#b",
            "a\\b",
            "a,b",
            "a%2eb",
            "ex\u{e4}mple",
            "a:80:80",
            "a:x",
            "a:+80",
            "a:0",
            "a:65536",
            "a:000080",
            "::1",
            "[::1",
            "[::1]x",
            "[::1]x:80",
            "[fe80::1%25eth0]",
            "[v1.x]",
            "[]",
            "[127.0.0.1]",
            "\"a\"",
            "a;b",
        ] {
            assert_eq!(Authority::parse(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn one_form_is_its_own_form(text in "\\PC{0,30}|[a-zA-Z.:\\[\\]0-9]{0,20}") {
            if let Some(authority) = Authority::parse(&text) {
                let again = host(&authority.host);
                prop_assert_eq!(again.as_deref(), Some(&*authority.host));
            }
        }
    }
}
