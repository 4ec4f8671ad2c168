//! Ranges (RFC 9110 section 14) of a whole that is at hand.
//!
//! One range of bytes is answered; several, and what cannot be read, get the whole, as section 14.2
//! allows. `super::conditional` has taken away an If-Range that could mean coded bytes.

use std::ops::Range;

use http::header::{DATE, ETAG, HeaderMap, HeaderName, IF_RANGE, LAST_MODIFIED, RANGE};

use httpdate::HttpDate;

use super::etag::EntityTag;

/// What a request wants of a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// All of it: 200.
    Whole,
    /// These bytes, at least one: 206.
    Part(Range<u64>),
    /// What is beyond its end: 416.
    Nothing,
}

/// Reads Range and If-Range, for a whole of `length` bytes that is kept under this head.
#[must_use]
pub fn wanted(request: &HeaderMap, kept: &HeaderMap, length: u64) -> Wanted {
    let mut lines = request.get_all(RANGE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Wanted::Whole;
    };
    if !still_holds(request, kept) {
        return Wanted::Whole;
    }
    let text = line.to_str().ok().and_then(|text| text.split_once('='));
    let range = text.and_then(|(unit, set)| {
        let range = set.trim().split_once('-')?;
        unit.eq_ignore_ascii_case("bytes").then_some(range)
    });
    match range {
        Some(("", last)) => suffix(last, length),
        Some((first, last)) => bounded(first, last, length),
        None => Wanted::Whole,
    }
}

/// `-500`: the last 500.
fn suffix(count: &str, length: u64) -> Wanted {
    match number(count) {
        None => Wanted::Whole,
        Some(0) => Wanted::Nothing,
        Some(_) if length == 0 => Wanted::Nothing,
        Some(count) => Wanted::Part(length.saturating_sub(count)..length),
    }
}

/// `500-999` and `500-`.
fn bounded(first: &str, last: &str, length: u64) -> Wanted {
    let last = if last.is_empty() {
        Some(u64::MAX)
    } else {
        number(last)
    };
    match (number(first), last) {
        (Some(first), Some(last)) if first > last => Wanted::Whole,
        (Some(first), Some(_)) if first >= length => Wanted::Nothing,
        (Some(first), Some(last)) => Wanted::Part(first..last.saturating_add(1).min(length)),
        _ => Wanted::Whole,
    }
}

/// Digits alone; more than fit are very many.
fn number(digits: &str) -> Option<u64> {
    let only_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    only_digits.then(|| digits.parse().unwrap_or(u64::MAX))
}

/// Section 13.1.5: strong validators only.
fn still_holds(request: &HeaderMap, kept: &HeaderMap) -> bool {
    let Some(condition) = request.get(IF_RANGE) else {
        return true;
    };
    if let Some(tag) = EntityTag::parse(condition.as_bytes()) {
        let own = kept.get(ETAG);
        let own = own.and_then(|value| EntityTag::parse(value.as_bytes()));
        return !tag.weak && own == Some(tag);
    }
    // A date is strong where nothing changed within the second that it names (section 8.8.2.2).
    let strong = matches!((date(kept, LAST_MODIFIED), date(kept, DATE)),
        (Some(modified), Some(date)) if modified < date);
    strong && kept.get(LAST_MODIFIED) == Some(condition)
}

/// To the second.
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

    #[test]
    fn one_range_is_a_part_of_what_is_there() {
        for (asked, expected) in [
            ("bytes=0-0", Wanted::Part(0..1)),
            ("bytes=2-4", Wanted::Part(2..5)),
            ("Bytes=2-4", Wanted::Part(2..5)),
            ("bytes=8-", Wanted::Part(8..10)),
            ("bytes=8-99999999999999999999", Wanted::Part(8..10)),
            ("bytes=-3", Wanted::Part(7..10)),
            ("bytes=-30", Wanted::Part(0..10)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=99999999999999999999-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=4-2", Wanted::Whole),
            ("bytes=0-1, 3-4", Wanted::Whole),
            ("bytes=a-b", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("lines=1-2", Wanted::Whole),
            ("bytes", Wanted::Whole),
        ] {
            let found = wanted(&head(&[("range", asked)]), &head(&[]), 10);
            assert_eq!(found, expected, "{asked}");
        }
        assert_eq!(wanted(&head(&[]), &head(&[]), 10), Wanted::Whole);
        let empty = wanted(&head(&[("range", "bytes=-5")]), &head(&[]), 0);
        assert_eq!(empty, Wanted::Nothing);
    }

    #[test]
    fn a_part_is_only_joined_to_the_same_bytes() {
        let modified = "Sat, 29 Oct 1994 19:43:31 GMT";
        let later = "Sat, 29 Oct 1994 19:43:32 GMT";
        let kept = head(&[
            ("etag", "\"a\""),
            ("last-modified", modified),
            ("date", later),
        ]);
        let same_second = head(&[("last-modified", modified), ("date", modified)]);
        let weak = head(&[("etag", "W/\"a\"")]);
        for (condition, kept, part) in [
            ("\"a\"", &kept, true),
            ("\"b\"", &kept, false),
            ("W/\"a\"", &kept, false),
            ("W/\"a\"", &weak, false),
            (modified, &kept, true),
            (later, &kept, false),
            (modified, &same_second, false),
        ] {
            let asked = head(&[("range", "bytes=0-1"), ("if-range", condition)]);
            let found = wanted(&asked, kept, 10);
            assert_eq!(found == Wanted::Part(0..2), part, "{condition}");
        }
    }
}
