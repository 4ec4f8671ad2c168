//! Entity-tags (RFC 9110 section 8.8.3) and the form they take when we code a body.
//!
//! The coded form of the strong tag `"a"` is `"a-gzip"`, `"a-br"` or `"a-zstd"`. A weak tag
//! promises no equal bytes, so it stands for the coded bytes as it is.

use http::HeaderValue;
use http::header::{ETAG, HeaderMap};

use crate::codec::Coding;

/// One entity-tag, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntityTag<'a> {
    /// `W/` stands before it.
    pub weak: bool,
    /// What stands between the quotes.
    pub opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// Reads a value that is one entity-tag and nothing else.
    #[must_use]
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        match Self::leading(value.trim_ascii())? {
            (tag, []) => Some(tag),
            _ => None,
        }
    }

    /// The tag that this one is a coded form of, if it looks like one.
    #[must_use]
    pub fn base(self) -> Option<(Self, Coding)> {
        [Coding::Gzip, Coding::Brotli, Coding::Zstd]
            .into_iter()
            .find_map(|coding| {
                let opaque = self.opaque.strip_suffix(coding.token().as_bytes())?;
                let opaque = opaque.strip_suffix(b"-")?;
                Some((Self { opaque, ..self }, coding))
            })
    }

    /// Appends the tag as it is written in a field.
    pub fn write(self, out: &mut Vec<u8>) {
        if self.weak {
            out.extend_from_slice(b"W/");
        }
        out.push(b'"');
        out.extend_from_slice(self.opaque);
        out.push(b'"');
    }

    /// The tag at the start of `value`, and what follows it.
    fn leading(value: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (weak, quoted) = match value.strip_prefix(b"W/") {
            Some(rest) => (true, rest),
            None => (false, value),
        };
        let rest = quoted.strip_prefix(b"\"")?;
        let end = memchr::memchr(b'"', rest)?;
        let opaque = &rest[..end];
        let in_grammar = opaque.iter().all(|&byte| byte > b' ' && byte != 0x7f);
        in_grammar.then_some((Self { weak, opaque }, &rest[end + 1..]))
    }
}

/// The tags of one line of If-Match or If-None-Match; a `None` is what cannot be read, and the last.
pub fn tags(line: &[u8]) -> impl Iterator<Item = Option<EntityTag<'_>>> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest.take()?;
        let is_gap = |byte: &u8| matches!(byte, b',' | b' ' | b'\t');
        let start = &line[line.iter().position(|byte| !is_gap(byte))?..];
        let Some((tag, after)) = EntityTag::leading(start) else {
            return Some(None);
        };
        match after.trim_ascii_start() {
            [] => {}
            after @ [b',', ..] => rest = Some(after),
            _ => return Some(None),
        }
        Some(Some(tag))
    })
}

/// Gives a strong ETag the form of this coding; a weak or malformed one stays as it is.
pub fn code(headers: &mut HeaderMap, coding: Coding) {
    let Some(value) = headers.get_mut(ETAG) else {
        return;
    };
    let coded = match EntityTag::parse(value.as_bytes()) {
        Some(tag) if !tag.weak => coded_form(tag, coding),
        _ => None,
    };
    if let Some(coded) = coded {
        *value = coded;
    }
}

/// `"a"` becomes `"a-gzip"`.
pub(super) fn coded_form(tag: EntityTag<'_>, coding: Coding) -> Option<HeaderValue> {
    let token = coding.token().as_bytes();
    let opaque = [b"\"", tag.opaque, b"-", token, b"\""].concat();
    HeaderValue::from_maybe_shared(bytes::Bytes::from(opaque)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn coded(tag: &str, coding: Coding) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(ETAG, tag.parse().expect("a field value"));
        code(&mut headers, coding);
        let value = headers.get(ETAG).expect("still there");
        String::from_utf8_lossy(value.as_bytes()).into_owned()
    }

    #[test]
    fn a_strong_tag_says_which_coding_its_bytes_have() {
        assert_eq!(coded(r#""a""#, Coding::Gzip), r#""a-gzip""#);
        assert_eq!(coded(r#""a""#, Coding::Brotli), r#""a-br""#);
        assert_eq!(coded(r#""a""#, Coding::Zstd), r#""a-zstd""#);
        assert_eq!(coded(r#""x-gzip""#, Coding::Gzip), r#""x-gzip-gzip""#);
        assert_eq!(coded(r#""""#, Coding::Gzip), r#""-gzip""#);
    }

    #[test]
    fn weak_and_malformed_tags_stay() {
        for tag in [
            r#"W/"a""#,
            "a",
            r#""a"#,
            r#""a"b"#,
            r#""a b""#,
            "",
            r#"w/"a""#,
            r#""a", "b""#,
        ] {
            assert_eq!(coded(tag, Coding::Gzip), tag);
        }
        let mut headers = HeaderMap::new();
        code(&mut headers, Coding::Gzip);
        assert!(headers.is_empty());
    }

    #[test]
    fn a_list_is_read_to_its_first_fault() {
        let read = |line: &'static str| -> Vec<_> {
            let found = tags(line.as_bytes());
            found
                .map(|tag| {
                    tag.map(|tag| (tag.weak, String::from_utf8_lossy(tag.opaque).into_owned()))
                })
                .collect()
        };
        let tag = |weak, text: &str| Some((weak, text.to_owned()));
        assert_eq!(
            read(r#""a", W/"b,c" ,,"\d""#),
            [tag(false, "a"), tag(true, "b,c"), tag(false, "\\d")]
        );
        assert_eq!(read(r#""a" "b""#), [None]);
        assert_eq!(read(r#""a", b, "c""#), [tag(false, "a"), None]);
        assert_eq!(read("*"), [None]);
        assert_eq!(read(" , "), []);
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_looked_at(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = EntityTag::parse(&bytes);
            prop_assert!(tags(&bytes).count() <= bytes.len());
        }

        #[test]
        fn what_is_written_reads_back_and_codes_back(
            opaque in "[!#-~]{0,12}", weak: bool, which in 0..3_usize,
        ) {
            let tag = EntityTag { weak, opaque: opaque.as_bytes() };
            let mut text = Vec::new();
            tag.write(&mut text);
            prop_assert_eq!(EntityTag::parse(&text), Some(tag));

            let coding = [Coding::Gzip, Coding::Brotli, Coding::Zstd][which];
            let coded = coded_form(tag, coding).expect("a field value");
            let read = EntityTag::parse(coded.as_bytes()).expect("a tag");
            prop_assert_eq!(read.base(), Some((EntityTag { weak: false, ..tag }, coding)));
        }
    }
}
