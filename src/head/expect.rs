//! Expect (RFC 9110 section 10.1.1).

use http::Version;
use http::header::{EXPECT, HeaderMap};

use super::list;

/// What a request wants to hear before it sends its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expectation {
    /// Nothing.
    None,
    /// `100-continue`.
    Continue,
    /// Something that nobody defined: 417.
    Unknown,
}

impl Expectation {
    /// Of a request head. An HTTP/1.0 client cannot wait for a 100: it expects nothing.
    #[must_use]
    pub fn of(headers: &HeaderMap, version: Version) -> Self {
        let mut expectation = Self::None;
        for member in list::tokens(headers, EXPECT) {
            if !member.eq_ignore_ascii_case(b"100-continue") {
                return Self::Unknown;
            }
            if version >= Version::HTTP_11 {
                expectation = Self::Continue;
            }
        }
        expectation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &'static str, version: Version) -> Expectation {
        let mut headers = HeaderMap::new();
        headers.insert(EXPECT, http::HeaderValue::from_static(value));
        Expectation::of(&headers, version)
    }

    #[test]
    fn only_100_continue_is_known() {
        let h1 = Version::HTTP_11;
        assert_eq!(Expectation::of(&HeaderMap::new(), h1), Expectation::None);
        assert_eq!(of("100-Continue", h1), Expectation::Continue);
        assert_eq!(of("100-continue", Version::HTTP_2), Expectation::Continue);
        assert_eq!(of("100-continue", Version::HTTP_10), Expectation::None);
        assert_eq!(of("200-ok", h1), Expectation::Unknown);
        assert_eq!(of("100-continue, x=y", h1), Expectation::Unknown);
    }
}
