//! What an unsafe request makes invalid (RFC 9111 section 4.4).

use http::header::{CONTENT_LOCATION, HeaderMap, LOCATION};
use http::{HeaderName, Method, StatusCode};

use super::key::{Origin, Url};
use crate::config::settings::QueryKey;

/// A request and its answer, as far as invalidation depends on them.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// Of the request.
    pub method: &'a Method,
    /// Where it was sent.
    pub origin: &'a Origin<'a>,
    /// Its path.
    pub path: &'a str,
    /// What follows its `?`.
    pub query: Option<&'a str>,
    /// Of the answer.
    pub status: StatusCode,
    /// The head of the answer.
    pub response: &'a HeaderMap,
}

/// The URLs whose copies are invalid now, in each form that one of these rules gives them: the
/// target, and Location and Content-Location where they are of the same origin.
///
/// Empty for a safe method (RFC 9110 section 9.2.1) and for an error.
#[must_use]
pub fn invalidated(change: Change<'_>, rules: &[QueryKey]) -> Vec<Url> {
    let succeeded = change.status.is_success() || change.status.is_redirection();
    if is_safe(change.method) || !succeeded {
        return Vec::new();
    }
    let root = Url::new(change.origin, "/", None, &QueryKey::None);
    let mut found = Vec::new();
    for rule in rules {
        let mut add = |url: Url| {
            if url.as_str().starts_with(root.as_str()) && !found.contains(&url) {
                found.push(url);
            }
        };
        add(Url::new(change.origin, change.path, change.query, rule));
        for name in [LOCATION, CONTENT_LOCATION] {
            if let Some(url) = named(change, name, root.as_str(), rule) {
                add(url);
            }
        }
    }
    found
}

fn is_safe(method: &Method) -> bool {
    let known = [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE];
    known.contains(method) || matches!(method.as_str(), "PROPFIND" | "REPORT" | "SEARCH" | "QUERY")
}

/// Resolves a reference (RFC 3986 section 5.2) in a field.
fn named(change: Change<'_>, name: HeaderName, root: &str, rule: &QueryKey) -> Option<Url> {
    let text = change.response.get(name)?.to_str().ok()?;
    let reference = text.split('#').next()?;
    let root = root.trim_end_matches('/');
    if reference.starts_with("//") {
        let (scheme, _) = root.split_once("//")?;
        return Url::parse(&format!("{scheme}{reference}"), rule);
    }
    let segment = reference.split(['/', '?']).next()?;
    if segment.contains(':') {
        return Url::parse(reference, rule);
    }
    let (path, query) = match reference.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (reference, None),
    };
    let (path, query) = match path {
        "" => (change.path.to_owned(), query.or(change.query)),
        path if path.starts_with('/') => (without_dots(path), query),
        path => {
            let parent = change.path.rfind('/').map_or("", |at| &change.path[..at]);
            (without_dots(&format!("{parent}/{path}")), query)
        }
    };
    Some(Url::new(change.origin, &path, query, rule))
}

/// RFC 3986 section 5.2.4, for a path that starts with a slash.
fn without_dots(path: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    let mut segments = path.split('/').skip(1).peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | ".." => {
                if segment == ".." {
                    out.pop();
                }
                if last {
                    out.push("");
                }
            }
            segment => out.push(segment),
        }
    }
    format!("/{}", out.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::authority::Authority;

    fn invalidated_by(method: &str, status: u16, fields: &[(&'static str, &str)]) -> Vec<String> {
        let origin = Origin {
            https: true,
            authority: Authority::parse("example.com").expect("a host"),
        };
        let mut response = HeaderMap::new();
        for (name, value) in fields {
            response.append(*name, value.parse().expect("a field value"));
        }
        let change = Change {
            method: &method.parse().expect("a method"),
            origin: &origin,
            path: "/a/b",
            query: Some("q=1"),
            status: StatusCode::from_u16(status).expect("a status"),
            response: &response,
        };
        let urls = invalidated(change, &[QueryKey::All]);
        urls.iter().map(|url| url.as_str().to_owned()).collect()
    }

    const TARGET: &str = "https://example.com/a/b?q=1";

    #[test]
    fn unsafe_and_unknown_methods_that_succeed_invalidate_the_target() {
        for method in ["POST", "PUT", "DELETE", "PATCH", "M-SEARCH", "FROBNICATE"] {
            for status in [200, 201, 204, 303] {
                assert_eq!(invalidated_by(method, status, &[]), [TARGET]);
            }
            for status in [400, 404, 500, 503] {
                assert!(invalidated_by(method, status, &[]).is_empty());
            }
        }
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "QUERY"] {
            assert!(invalidated_by(method, 200, &[]).is_empty(), "{method}");
        }
    }

    #[test]
    fn locations_of_the_same_origin_go_too() {
        for (reference, expected) in [
            ("/c?x=1#f", "https://example.com/c?x=1"),
            ("c", "https://example.com/a/c"),
            ("../c/./d", "https://example.com/c/d"),
            ("../../../c/", "https://example.com/c/"),
            (".", "https://example.com/a/"),
            ("?x=2", "https://example.com/a/b?x=2"),
            ("https://EXAMPLE.com:443/c", "https://example.com/c"),
            ("//example.com/c", "https://example.com/c"),
        ] {
            for field in ["location", "content-location"] {
                let found = invalidated_by("POST", 200, &[(field, reference)]);
                assert_eq!(found, [TARGET, expected], "{reference}");
            }
        }
    }

    #[test]
    fn nobody_invalidates_what_is_somebody_elses() {
        for reference in [
            "http://example.com/c",
            "https://example.com:8443/c",
            "https://example.com.evil/c",
            "https://other.example/c",
            "//other.example/c",
            "mailto:a@example.com",
            "https://example.com@other.example/",
        ] {
            let found = invalidated_by("POST", 200, &[("location", reference)]);
            assert_eq!(found, [TARGET], "{reference}");
        }
    }

    #[test]
    fn each_rule_gives_its_form() {
        let origin = Origin {
            https: false,
            authority: Authority::parse("h:81").expect("a host"),
        };
        let change = Change {
            method: &Method::PUT,
            origin: &origin,
            path: "/p",
            query: Some("a=1&b=2"),
            status: StatusCode::OK,
            response: &HeaderMap::new(),
        };
        let rules = [
            QueryKey::All,
            QueryKey::None,
            QueryKey::Names(vec!["b".to_owned()]),
            QueryKey::None,
        ];
        let urls = invalidated(change, &rules);
        let urls: Vec<_> = urls.iter().map(Url::as_str).collect();
        assert_eq!(
            urls,
            [
                "http://h:81/p?a=1&b=2",
                "http://h:81/p",
                "http://h:81/p?b=2"
            ]
        );
    }
}
