//! `POST /cache/purge`: what it may say, and who may say it.

use http::header::{self, HeaderMap, HeaderName};
use serde::Deserialize;

use crate::head::media::MediaType;
use crate::protocol::cached::Purge;

/// Bytes of a purge.
pub(super) const LONGEST: usize = 16 * 1024;

/// As it is written: one of the three.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum Written {
    Url(String),
    Prefix(String),
    Tag(String),
}

/// Whether a page of another site sent it: browsers say so, and operators' scripts do not.
pub(super) fn is_from_elsewhere(headers: &HeaderMap) -> bool {
    const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
    let site = headers.get(SEC_FETCH_SITE);
    let named = site.is_some_and(|site| !matches!(site.as_bytes(), b"same-origin" | b"none"));
    let own = |origin: &[u8]| {
        let host = headers.get(header::HOST).map(|host| host.as_bytes());
        let named = origin
            .strip_prefix(b"http://")
            .or_else(|| origin.strip_prefix(b"https://"));
        named.is_some() && named == host
    };
    let mut origins = headers.get_all(header::ORIGIN).iter();
    named || origins.any(|origin| !own(origin.as_bytes()))
}

/// Reads a purge; the error is for its sender.
pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Purge, &'static str> {
    let json = MediaType::of(headers).is_some_and(|media| media.is(b"application/json"));
    if !json {
        return Err("a purge is application/json\n");
    }
    let written: Written = serde_json::from_slice(body)
        .map_err(|_| "one of {\"url\": ...}, {\"prefix\": ...} and {\"tag\": ...}\n")?;
    let purge = match written {
        Written::Url(url) => Purge::Url(url),
        Written::Prefix(prefix) => Purge::Prefix(prefix),
        Written::Tag(tag) => Purge::Tag(tag),
    };
    let empty = matches!(&purge, Purge::Tag(tag) if tag.is_empty());
    if empty {
        return Err("a tag has a name\n");
    }
    Ok(purge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().expect("a field value"));
        }
        headers
    }

    #[test]
    fn one_of_three_things_is_purged() {
        let json = head(&[("content-type", "application/json; charset=utf-8")]);
        for (body, expected) in [
            (
                r#"{"url": "http://h/p"}"#,
                Ok(Purge::Url("http://h/p".into())),
            ),
            (
                r#"{"prefix": "http://h/"}"#,
                Ok(Purge::Prefix("http://h/".into())),
            ),
            (r#"{"tag": "t"}"#, Ok(Purge::Tag("t".into()))),
            (r#"{"tag": ""}"#, Err(())),
            (r#"{"tag": 1}"#, Err(())),
            (r#"{"tag": "t", "url": "http://h/"}"#, Err(())),
            (r#"{"tags": "t"}"#, Err(())),
            (r#"{}"#, Err(())),
            (r#""url""#, Err(())),
            ("", Err(())),
        ] {
            let found = read(&json, body.as_bytes()).map_err(|_| ());
            assert_eq!(found, expected, "{body}");
        }
        let form = head(&[("content-type", "text/plain")]);
        assert!(read(&form, br#"{"tag": "t"}"#).is_err());
    }

    #[test]
    fn pages_of_other_sites_purge_nothing() {
        for (fields, elsewhere) in [
            (&[][..], false),
            (&[("origin", "http://127.0.0.1:9900")], false),
            (&[("sec-fetch-site", "same-origin")], false),
            (&[("sec-fetch-site", "none")], false),
            (&[("origin", "https://evil.example")], true),
            (&[("origin", "http://127.0.0.1:9901")], true),
            (&[("origin", "null")], true),
            (&[("sec-fetch-site", "cross-site")], true),
            (&[("sec-fetch-site", "same-site")], true),
        ] {
            let mut headers = head(fields);
            headers.insert("host", "127.0.0.1:9900".parse().expect("a host"));
            assert_eq!(is_from_elsewhere(&headers), elsewhere, "{fields:?}");
        }
    }
}
