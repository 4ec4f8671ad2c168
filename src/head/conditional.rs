//! Conditional requests (RFC 9110 section 13) across a coding that only the client sees.
//!
//! The client holds `"a-gzip"` where the app knows `"a"`. Toward the app each coded form gets its
//! base put beside it; toward the client a 304 gets the form back that the client holds.
//!
//! Both forms are kept, in If-None-Match and in If-Match, because an app's own tag may end like one
//! of ours (Apache's `"x-gzip"`) and nothing in the request tells the two apart. A list holds if any
//! member does, so the form that the app does not know is idle: it could only match in an app
//! that uses `"x"` and `"x-gzip"` for different states of one resource.
//!
//! Ranges are never mapped: the app's ranges are of plain bytes, the client's part may be of coded
//! ones, and joined they would be neither.

use http::HeaderValue;
use http::header::{ETAG, Entry, HeaderMap, HeaderName, IF_MATCH, IF_NONE_MATCH, IF_RANGE, RANGE};

use super::etag::{self, EntityTag};
use super::vary;

/// What the client said in If-None-Match, where it named a coded form; else nothing.
///
/// Kept over the exchange, for a 304. The usual request holds nothing and allocates nothing.
#[derive(Debug, Clone, Default)]
pub struct Held(Vec<HeaderValue>);

/// Maps the conditionals of a request toward the app.
///
/// `takes_coded`: whether this client takes a coding of the route, and so may hold a part of a
/// coded body.
pub fn toward_app(headers: &mut HeaderMap, takes_coded: bool) -> Held {
    settle_if_range(headers, takes_coded);
    // Strong comparison: a weak tag in If-Match never holds, whatever its form.
    add_bases(headers, IF_MATCH, |tag| !tag.weak);
    // Weak comparison: `W/"a-gzip"` is our form too, weakened by a cache on the way.
    Held(add_bases(headers, IF_NONE_MATCH, |_| true))
}

impl Held {
    /// Gives the app's 304 the tag form that the client holds, and the Vary that goes with it.
    ///
    /// A tag that the client listed as it is stays; so does one that it never listed.
    pub fn toward_client(&self, headers: &mut HeaderMap) {
        let Some(form) = headers.get(ETAG).and_then(|value| self.form_of(value)) else {
            return;
        };
        headers.insert(ETAG, form);
        vary::add_accept_encoding(headers);
    }

    fn form_of(&self, value: &HeaderValue) -> Option<HeaderValue> {
        if self.0.is_empty() {
            return None;
        }
        let own = EntityTag::parse(value.as_bytes()).filter(|tag| !tag.weak)?;
        let listed = || {
            self.0
                .iter()
                .flat_map(|line| etag::tags(line.as_bytes()))
                .flatten()
        };
        if listed().any(|tag| tag.opaque == own.opaque) {
            return None;
        }
        listed().find_map(|tag| {
            let (base, coding) = tag.base()?;
            (base.opaque == own.opaque).then(|| etag::coded_form(own, coding))?
        })
    }
}

/// Drops Range and If-Range, so that the whole is sent, unless If-Range is sure to mean plain bytes.
///
/// Sure is a strong tag that is no coded form. A date (and what is no tag at all) is the same for
/// the plain and the coded body: it passes only from a client that takes no coding.
fn settle_if_range(headers: &mut HeaderMap, takes_coded: bool) {
    let Some(value) = headers.get(IF_RANGE) else {
        return;
    };
    let means_plain = match EntityTag::parse(value.as_bytes()) {
        Some(tag) => !tag.weak && tag.base().is_none(),
        None => !takes_coded,
    };
    if !means_plain {
        headers.remove(RANGE);
        headers.remove(IF_RANGE);
    }
}

/// Puts the base before each coded form that `compared` lets through; a line that is not a list of
/// tags (`*` is none) stays as it is. Returns all lines as they were, or nothing if nothing changed.
fn add_bases(
    headers: &mut HeaderMap,
    name: HeaderName,
    compared: fn(EntityTag<'_>) -> bool,
) -> Vec<HeaderValue> {
    let Entry::Occupied(mut lines) = headers.entry(name) else {
        return Vec::new();
    };
    let is_coded = |tag: EntityTag<'_>| compared(tag) && tag.base().is_some();
    let mapped = |line: &HeaderValue| {
        let mut tags = etag::tags(line.as_bytes()).flatten();
        tags.any(is_coded)
            .then(|| with_bases(line.as_bytes(), compared))?
    };
    if !lines.iter().any(|line| mapped(line).is_some()) {
        return Vec::new();
    }
    let before = lines.iter().cloned().collect();
    for line in lines.iter_mut() {
        if let Some(longer) = mapped(line) {
            *line = longer;
        }
    }
    before
}

/// `None` where the line is malformed.
fn with_bases(line: &[u8], compared: fn(EntityTag<'_>) -> bool) -> Option<HeaderValue> {
    let mut out = Vec::with_capacity(line.len() * 2);
    for tag in etag::tags(line) {
        let tag = tag?;
        let base = tag.base().filter(|_| compared(tag)).map(|(base, _)| base);
        for tag in base.into_iter().chain([tag]) {
            if !out.is_empty() {
                out.extend_from_slice(b", ");
            }
            tag.write(&mut out);
        }
    }
    HeaderValue::from_maybe_shared(bytes::Bytes::from(out)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::VARY;
    use proptest::prelude::*;

    fn head(fields: &[(HeaderName, &str)]) -> HeaderMap {
        let fields = fields.iter();
        fields
            .map(|(name, value)| (name.clone(), value.parse().expect("a field value")))
            .collect()
    }

    fn mapped(name: &HeaderName, value: &str) -> String {
        let mut headers = head(&[(name.clone(), value)]);
        let _held = toward_app(&mut headers, true);
        let value = headers.get(name).expect("still there");
        String::from_utf8_lossy(value.as_bytes()).into_owned()
    }

    #[test]
    fn the_app_is_asked_with_a_tag_it_knows() {
        for (client, app) in [
            (r#""a-gzip""#, r#""a", "a-gzip""#),
            (r#""a-br""#, r#""a", "a-br""#),
            (r#""a-zstd""#, r#""a", "a-zstd""#),
            (r#""x-gzip-br""#, r#""x-gzip", "x-gzip-br""#),
            (
                r#""b", "a-gzip" ,"c,d-br""#,
                r#""b", "a", "a-gzip", "c,d", "c,d-br""#,
            ),
        ] {
            assert_eq!(mapped(&IF_NONE_MATCH, client), app);
            assert_eq!(mapped(&IF_MATCH, client), app);
        }
    }

    #[test]
    fn what_is_not_our_form_passes_as_it_is() {
        for value in [
            r#""a""#,
            r#""a" ,W/"b""#,
            "*",
            r#""gzip""#,
            r#""a-deflate""#,
            r#""a-GZIP""#,
            r#"a-gzip"#,
            r#""a-gzip", b"#,
            r#""a-gzip"#,
            "",
        ] {
            assert_eq!(mapped(&IF_NONE_MATCH, value), value);
            assert_eq!(mapped(&IF_MATCH, value), value);
        }
    }

    #[test]
    fn a_form_that_a_cache_weakened_revalidates_but_guards_no_write() {
        assert_eq!(
            mapped(&IF_NONE_MATCH, r#"W/"a-gzip""#),
            r#"W/"a", W/"a-gzip""#
        );
        assert_eq!(mapped(&IF_MATCH, r#"W/"a-gzip""#), r#"W/"a-gzip""#);
    }

    #[test]
    fn each_line_is_mapped_on_its_own() {
        let mut headers = head(&[
            (IF_NONE_MATCH, "malformed"),
            (IF_NONE_MATCH, r#""a-gzip""#),
            (IF_NONE_MATCH, r#""b""#),
        ]);
        let _held = toward_app(&mut headers, true);
        let lines: Vec<_> = headers.get_all(IF_NONE_MATCH).iter().collect();
        assert_eq!(lines, ["malformed", r#""a", "a-gzip""#, r#""b""#]);
    }

    /// The client sends `listed`, the app answers 304 with `tag`: the client sees the result.
    fn revalidated(listed: &[&str], tag: &str) -> HeaderMap {
        let listed: Vec<_> = listed.iter().map(|line| (IF_NONE_MATCH, *line)).collect();
        let held = toward_app(&mut head(&listed), true);
        let mut answer = head(&[(ETAG, tag)]);
        held.toward_client(&mut answer);
        answer
    }

    #[test]
    fn a_304_has_the_form_that_the_client_holds() {
        for (listed, tag, seen) in [
            (&[r#""a-gzip""#][..], r#""a""#, r#""a-gzip""#),
            (&[r#""b", "a-br""#], r#""a""#, r#""a-br""#),
            (&[r#""b""#, r#""a-zstd""#], r#""a""#, r#""a-zstd""#),
            (&[r#"W/"a-gzip""#], r#""a""#, r#""a-gzip""#),
            (&[r#""x-gzip-br""#], r#""x-gzip""#, r#""x-gzip-br""#),
        ] {
            let answer = revalidated(listed, tag);
            assert_eq!(answer[ETAG], seen);
            assert_eq!(answer[VARY], "Accept-Encoding");
        }
    }

    #[test]
    fn a_304_keeps_a_tag_that_the_client_listed_itself_or_never() {
        for (listed, tag) in [
            (&[r#""a""#][..], r#""a""#),
            (&[r#""a-gzip", "a""#], r#""a""#),
            (&[r#""x-gzip""#], r#""x-gzip""#),
            (&[r#""b-gzip""#], r#""a""#),
            (&[r#""a-gzip""#], r#"W/"a""#),
            (&["*"], r#""a""#),
            (&[], r#""a""#),
        ] {
            let answer = revalidated(listed, tag);
            assert_eq!(answer[ETAG], tag);
            assert!(!answer.contains_key(VARY));
        }
        let mut bare = HeaderMap::new();
        toward_app(&mut head(&[(IF_NONE_MATCH, r#""a-gzip""#)]), true).toward_client(&mut bare);
        assert!(bare.is_empty());
    }

    #[test]
    fn if_range_passes_only_where_it_is_sure_to_mean_plain_bytes() {
        const DATE: &str = "Sat, 29 Oct 1994 19:43:31 GMT";
        for (if_range, takes_coded, passes) in [
            (r#""a""#, true, true),
            (r#""a""#, false, true),
            (r#""a-gzip""#, true, false),
            (r#""a-br""#, false, false),
            (r#"W/"a""#, true, false),
            (r#"W/"a""#, false, false),
            (DATE, true, false),
            (DATE, false, true),
            ("a", true, false),
            ("a", false, true),
        ] {
            let mut headers = head(&[(RANGE, "bytes=5-"), (IF_RANGE, if_range)]);
            let before = headers.clone();
            let _held = toward_app(&mut headers, takes_coded);
            let expected = if passes { before } else { HeaderMap::new() };
            assert_eq!(headers, expected, "If-Range: {if_range}, {takes_coded}");
        }
    }

    #[test]
    fn a_range_alone_passes() {
        let mut headers = head(&[(RANGE, "bytes=5-")]);
        let _held = toward_app(&mut headers, true);
        assert_eq!(headers[RANGE], "bytes=5-");
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_mapped_and_are_never_lost(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            list in r#"((W/)?"[a-c]{0,2}(-gzip|-br)?",? ?){0,4}"#,
        ) {
            for bytes in [&bytes[..], list.as_bytes()] {
                let Ok(value) = HeaderValue::from_bytes(bytes) else { continue };
                let mut headers = HeaderMap::new();
                headers.insert(IF_NONE_MATCH, value.clone());
                let held = toward_app(&mut headers, true);
                let app: Vec<_> = etag::tags(headers[IF_NONE_MATCH].as_bytes()).collect();
                for tag in etag::tags(value.as_bytes()) {
                    prop_assert!(app.contains(&tag));
                }
                let mut answer = head(&[(ETAG, r#""a""#)]);
                held.toward_client(&mut answer);
                prop_assert!(EntityTag::parse(answer[ETAG].as_bytes()).is_some());
            }
        }
    }
}
