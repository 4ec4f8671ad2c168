//! Whether another site caused a request, by what browsers say of it.
//!
//! For `breach.cross_site` only: a client that is no browser can claim what it likes, and loses
//! nothing but its own compression.

use http::HeaderValue;
use http::header::{HeaderMap, HeaderName, ORIGIN, REFERER};

use super::authority;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether the request came from another site than `own`, the host that was asked.
///
/// `Sec-Fetch-Site` decides where there is one. Else it is Origin, else Referer, whose host has to
/// be `own`: a sibling domain counts as another site, and so does what cannot be read, such as
/// `Origin: null`. A request with none of them is nobody's.
#[must_use]
pub fn is_cross_site(headers: &HeaderMap, own: &str) -> bool {
    match headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes) {
        Some(b"cross-site") => return true,
        Some(b"same-origin" | b"same-site" | b"none") => return false,
        _ => {}
    }
    let source = headers.get(ORIGIN).or_else(|| headers.get(REFERER));
    source.is_some_and(|url| {
        let host = url.to_str().ok().and_then(host_of);
        host.is_none() || host != authority::host(own)
    })
}

/// The host of an absolute URL.
fn host_of(url: &str) -> Option<std::borrow::Cow<'_, str>> {
    let (_, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    // Referers carry no userinfo; if one does, the host is what follows it.
    authority::host(
        authority
            .rsplit_once('@')
            .map_or(authority, |(_, host)| host),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cross(fields: &[(&'static str, &'static str)]) -> bool {
        let fields = fields.iter().map(|&(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        is_cross_site(&fields.collect(), "Example.com:8443")
    }

    #[test]
    fn the_browsers_word_counts_first() {
        assert!(cross(&[("sec-fetch-site", "cross-site")]));
        assert!(cross(&[
            ("sec-fetch-site", "cross-site"),
            ("origin", "https://example.com")
        ]));
        for word in ["same-origin", "same-site", "none"] {
            assert!(!cross(&[
                ("sec-fetch-site", word),
                ("referer", "https://evil.test/")
            ]));
        }
        assert!(cross(&[
            ("sec-fetch-site", "new-word"),
            ("referer", "https://evil.test/")
        ]));
    }

    #[test]
    fn older_browsers_name_the_page() {
        assert!(!cross(&[]));
        assert!(cross(&[(
            "referer",
            "https://evil.test/page?x=https://example.com/"
        )]));
        assert!(cross(&[("referer", "https://example.com.evil.test/")]));
        assert!(cross(&[("referer", "https://example.com@evil.test/")]));
        assert!(cross(&[("referer", "about:blank")]));
        assert!(!cross(&[("referer", "https://EXAMPLE.com/page")]));
        assert!(!cross(&[("referer", "http://example.com:8080?q")]));
        assert!(cross(&[("origin", "https://evil.test")]));
        assert!(cross(&[("origin", "null")]));
        assert!(cross(&[
            ("origin", "https://evil.test"),
            ("referer", "https://example.com/")
        ]));
        assert!(!cross(&[
            ("origin", "https://example.com"),
            ("referer", "https://evil.test/")
        ]));
    }
}
