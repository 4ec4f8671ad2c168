//! Conditional requests (RFC 9110 section 13) answered from a copy, as a cache may (RFC 9111
//! section 4.3.2).
//!
//! The request's head is the one that the app would get: [`super::conditional::toward_app`] has put
//! the app's own tags beside our forms. If-Match and If-Unmodified-Since are the app's to judge.

use http::header::{
    DATE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    IF_UNMODIFIED_SINCE, LAST_MODIFIED,
};

use httpdate::HttpDate;

use super::etag::{self, EntityTag};

/// Whether only the app may judge a condition of this request.
#[must_use]
pub fn is_for_the_app(request: &HeaderMap) -> bool {
    request.contains_key(IF_MATCH) || request.contains_key(IF_UNMODIFIED_SINCE)
}

/// Whether the client has what is kept under this head: a 304 says so.
#[must_use]
pub fn is_not_modified(request: &HeaderMap, kept: &HeaderMap) -> bool {
    if request.contains_key(IF_NONE_MATCH) {
        // Section 13.1.3: then If-Modified-Since does not count.
        return any_matches(request, kept.get(ETAG));
    }
    let Some(since) = date(request, IF_MODIFIED_SINCE) else {
        return false;
    };
    let modified = date(kept, LAST_MODIFIED).or_else(|| date(kept, DATE));
    modified.is_some_and(|modified| modified <= since)
}

/// Section 8.8.3.2, the weak comparison.
fn any_matches(request: &HeaderMap, kept: Option<&HeaderValue>) -> bool {
    let own = kept.and_then(|value| EntityTag::parse(value.as_bytes()));
    request.get_all(IF_NONE_MATCH).iter().any(|line| {
        let is = |tag: EntityTag<'_>| own.is_some_and(|own| own.opaque == tag.opaque);
        line.as_bytes().trim_ascii() == b"*" || etag::tags(line.as_bytes()).flatten().any(is)
    })
}

fn date(headers: &HeaderMap, name: HeaderName) -> Option<HttpDate> {
    headers.get(name)?.to_str().ok()?.parse().ok()
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

    const OLD: &str = "Sat, 29 Oct 1994 19:43:31 GMT";
    const NEW: &str = "Sun, 30 Oct 1994 19:43:31 GMT";

    #[test]
    fn tags_are_compared_weakly_and_count_before_dates() {
        for (asked, kept, expected) in [
            (r#""a""#, r#""a""#, true),
            (r#"W/"a""#, r#""a""#, true),
            (r#""a""#, r#"W/"a""#, true),
            (r#""b", "a""#, r#""a""#, true),
            ("*", r#""a""#, true),
            (r#""b""#, r#""a""#, false),
            (r#""a-br""#, r#""a""#, false),
            ("a", r#""a""#, false),
        ] {
            let asked = head(&[("if-none-match", asked), ("if-modified-since", NEW)]);
            let kept = head(&[("etag", kept), ("last-modified", OLD)]);
            assert_eq!(is_not_modified(&asked, &kept), expected, "{asked:?}");
        }
        let lines = head(&[("if-none-match", "\"b\""), ("if-none-match", "\"a\"")]);
        assert!(is_not_modified(&lines, &head(&[("etag", "\"a\"")])));
    }

    #[test]
    fn dates_count_where_no_tag_is_asked_for() {
        for (since, modified, expected) in [
            (OLD, OLD, true),
            (NEW, OLD, true),
            (OLD, NEW, false),
            ("yesterday", OLD, false),
        ] {
            let asked = head(&[("if-modified-since", since)]);
            let kept = head(&[("last-modified", modified)]);
            assert_eq!(is_not_modified(&asked, &kept), expected, "{since}");
        }
        let asked = head(&[("if-modified-since", OLD)]);
        assert!(is_not_modified(&asked, &head(&[("date", OLD)])));
        assert!(!is_not_modified(&asked, &head(&[])));
        assert!(!is_not_modified(&head(&[]), &head(&[("date", OLD)])));
    }

    #[test]
    fn what_guards_a_write_is_the_apps_to_judge() {
        assert!(is_for_the_app(&head(&[("if-match", "\"a\"")])));
        assert!(is_for_the_app(&head(&[("if-unmodified-since", OLD)])));
        assert!(!is_for_the_app(&head(&[("if-none-match", "\"a\"")])));
    }
}
