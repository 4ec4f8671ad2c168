//! Media types and the patterns that match them (RFC 9110 section 8.3.1).
//!
//! Types are compared by their essence: `type/subtype` in any letter case, parameters ignored.

use std::fmt;

use http::header::{CONTENT_TYPE, HeaderMap};

/// A pattern of `compress.types`: `type/subtype` with `*` as a wildcard anywhere, lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaPattern(String);

/// Why a pattern cannot be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MediaPatternError {
    /// No slash, two of them, or nothing on one side.
    #[error("not of the form type/subtype, such as text/* or application/json")]
    Shape,
    /// A semicolon.
    #[error("parameters are ignored when types are compared, so a pattern has none")]
    Parameters,
    /// Something that no media type has.
    #[error("{0:?} cannot stand in a media type")]
    Character(char),
}

impl MediaPattern {
    /// Reads a pattern; surrounding blanks and letter case do not matter.
    ///
    /// # Errors
    /// What is not `type/subtype` made of token characters and `*`.
    pub fn parse(text: &str) -> Result<Self, MediaPatternError> {
        let text = text.trim();
        if text.contains(';') {
            return Err(MediaPatternError::Parameters);
        }
        match text.split_once('/') {
            Some((kind, subtype))
                if !kind.is_empty() && !subtype.is_empty() && !subtype.contains('/') => {}
            _ => return Err(MediaPatternError::Shape),
        }
        let stranger = |c: &char| !(*c == '/' || c.is_ascii() && is_token(*c as u8));
        match text.chars().find(stranger) {
            Some(stranger) => Err(MediaPatternError::Character(stranger)),
            None => Ok(Self(text.to_ascii_lowercase())),
        }
    }

    /// Whether a Content-Type value is covered.
    #[must_use]
    pub fn matches(&self, content_type: &str) -> bool {
        self.covers(MediaType::new(content_type.as_bytes()))
    }

    /// Whether a media type is covered.
    #[must_use]
    pub fn covers(&self, media: MediaType<'_>) -> bool {
        glob(self.0.as_bytes(), media.0)
    }

    /// As it is compared: lower case.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MediaPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The essence of a Content-Type, borrowed, in the letter case it came in.
#[derive(Debug, Clone, Copy)]
pub struct MediaType<'a>(&'a [u8]);

impl<'a> MediaType<'a> {
    /// Of a head; `None` where it does not say.
    #[must_use]
    pub fn of(headers: &'a HeaderMap) -> Option<Self> {
        let media = Self::new(headers.get(CONTENT_TYPE)?.as_bytes());
        (!media.0.is_empty()).then_some(media)
    }

    /// Of a Content-Type value.
    #[must_use]
    pub fn new(value: &'a [u8]) -> Self {
        let end = memchr::memchr(b';', value).unwrap_or(value.len());
        Self(value[..end].trim_ascii())
    }

    /// gRPC over HTTP/2: `application/grpc` and `application/grpc+*`. Not gRPC-Web.
    #[must_use]
    pub fn is_grpc(self) -> bool {
        self.is(b"application/grpc") || self.starts_with(b"application/grpc+")
    }

    /// gRPC-Web, and whether it is in base64 (`application/grpc-web-text`).
    #[must_use]
    pub fn grpc_web(self) -> Option<bool> {
        let plain = self.is(b"application/grpc-web") || self.starts_with(b"application/grpc-web+");
        let text = self.is(b"application/grpc-web-text")
            || self.starts_with(b"application/grpc-web-text+");
        (plain || text).then_some(text)
    }

    /// A stream of the Connect protocol: `application/connect+*`.
    #[must_use]
    pub fn is_connect_stream(self) -> bool {
        self.starts_with(b"application/connect+")
    }

    /// Whether its messages carry their own compression, so that an HTTP coding would break it.
    #[must_use]
    pub fn is_never_coded(self) -> bool {
        self.is_grpc() || self.is_connect_stream()
    }

    /// A stream of records that a client reads as they come: not worth waiting for its end.
    #[must_use]
    pub fn is_stream(self) -> bool {
        const STREAMS: [&[u8]; 5] = [
            b"text/event-stream",
            b"application/x-ndjson",
            b"application/ndjson",
            b"application/jsonl",
            b"application/json-seq",
        ];
        STREAMS.iter().any(|stream| self.is(stream))
    }

    /// Whether it is this type, written in lower case; parameters do not count.
    #[must_use]
    pub fn is(self, lower: &[u8]) -> bool {
        self.0.eq_ignore_ascii_case(lower)
    }

    fn starts_with(self, lower: &[u8]) -> bool {
        self.0
            .get(..lower.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(lower))
    }
}

impl PartialEq for MediaType<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.is(other.0)
    }
}

impl Eq for MediaType<'_> {}

/// `tchar` of RFC 9110 section 5.6.2, which has the `*`.
const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// Matches `text`, in any letter case, against a lower-case pattern; `*` is any run of bytes.
///
/// After a mismatch only the last star is tried longer, so it takes at most pattern times text.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t].to_ascii_lowercase()) {
            (p, t) = (p + 1, t + 1);
        } else if let Some((star_p, star_t)) = star {
            (p, t) = (star_p + 1, star_t + 1);
            star = Some((star_p, star_t + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn pattern(text: &str) -> MediaPattern {
        MediaPattern::parse(text).expect("a pattern")
    }

    #[test]
    fn patterns_cover_types_in_any_case_and_with_any_parameters() {
        for (text, content_type, covered) in [
            ("image/svg+xml", "Image/SVG+XML; charset=utf-8", true),
            ("IMAGE/svg+xml", "image/svg+xml", true),
            ("text/*", "text/html;charset=utf-8", true),
            ("text/*", "text/html ; charset=utf-8", true),
            ("text/*", " text/event-stream", true),
            ("text/*", "application/text", false),
            ("text/*", "text", false),
            ("application/*+json", "application/problem+json", true),
            ("application/*+json", "application/a+b+json", true),
            ("application/*+json", "application/json", false),
            ("application/*+json", "application/problem+jsonx", false),
            ("application/grpc-web*", "application/grpc-web", true),
            (
                "application/grpc-web*",
                "application/grpc-web-text+proto",
                true,
            ),
            ("application/grpc-web*", "application/grpc", false),
            (
                "application/json",
                "application/json; profile=\"a;b\"",
                true,
            ),
            ("application/json", "application/jsonp", false),
            ("*/*", "image/png", true),
            ("*/*+xml", "image/svg+xml", true),
            ("font/*t*f", "font/ttf", true),
            ("font/*t*f", "font/otx", false),
            ("text/*", "", false),
        ] {
            assert_eq!(
                pattern(text).matches(content_type),
                covered,
                "{text} {content_type}"
            );
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused_with_its_reason() {
        for (text, error) in [
            ("json", MediaPatternError::Shape),
            ("*", MediaPatternError::Shape),
            ("", MediaPatternError::Shape),
            ("text/", MediaPatternError::Shape),
            ("/html", MediaPatternError::Shape),
            ("a/b/c", MediaPatternError::Shape),
            ("text/html; charset=utf-8", MediaPatternError::Parameters),
            ("text/ht ml", MediaPatternError::Character(' ')),
            ("text/é", MediaPatternError::Character('é')),
            ("text/[a-z]", MediaPatternError::Character('[')),
        ] {
            assert_eq!(MediaPattern::parse(text), Err(error), "{text}");
        }
        assert_eq!(pattern(" Text/* ").to_string(), "text/*");
    }

    #[test]
    fn grpc_is_told_from_grpc_web() {
        for (content_type, never) in [
            ("application/grpc", true),
            ("application/grpc;x=y", true),
            ("Application/GRPC+proto", true),
            ("application/grpc+json", true),
            ("application/connect+proto", true),
            ("application/grpc-web", false),
            ("application/grpc-web-text", false),
            ("application/grpcx", false),
            ("application/connect", false),
            ("application/proto", false),
        ] {
            let media = MediaType::new(content_type.as_bytes());
            assert_eq!(media.is_never_coded(), never, "{content_type}");
        }
    }

    #[test]
    fn streams_of_records_are_known() {
        let is_stream = |value: &str| MediaType::new(value.as_bytes()).is_stream();
        assert!(is_stream("text/event-stream; charset=utf-8"));
        assert!(is_stream("application/X-NDJSON"));
        assert!(!is_stream("application/json"));
        assert!(!is_stream("text/event-streams"));
    }

    #[test]
    fn a_head_may_say_nothing() {
        let mut headers = HeaderMap::new();
        assert_eq!(MediaType::of(&headers), None);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(" ;charset=utf-8"));
        assert_eq!(MediaType::of(&headers), None);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("TEXT/html"));
        assert_eq!(
            MediaType::of(&headers),
            Some(MediaType::new(b"text/html; x=y"))
        );
    }

    proptest! {
        #[test]
        fn globs_agree_with_trying_every_split(p in "[ab*]{0,6}", t in "[ab]{0,8}") {
            fn naive(p: &[u8], t: &[u8]) -> bool {
                match p {
                    [] => t.is_empty(),
                    [b'*', rest @ ..] => (0..=t.len()).any(|n| naive(rest, &t[n..])),
                    [c, rest @ ..] => t.first() == Some(c) && naive(rest, &t[1..]),
                }
            }
            prop_assert_eq!(glob(p.as_bytes(), t.as_bytes()), naive(p.as_bytes(), t.as_bytes()));
        }

        #[test]
        fn any_text_parses_or_is_refused(text in ".{0,40}") {
            if let Ok(pattern) = MediaPattern::parse(&text) {
                prop_assert_eq!(MediaPattern::parse(pattern.as_str()), Ok(pattern));
            }
        }
    }
}
