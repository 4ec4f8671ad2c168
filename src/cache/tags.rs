//! The tags that a response is purged by: `Surrogate-Key` (blanks between) and `Cache-Tag` (commas).

use http::HeaderName;
use http::header::HeaderMap;

use crate::head::list;

/// The tags of one response, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tags(Box<[Box<str>]>);

const SURROGATE_KEY: HeaderName = HeaderName::from_static("surrogate-key");
const CACHE_TAG: HeaderName = HeaderName::from_static("cache-tag");

impl Tags {
    /// More tags make a response unstorable: what cannot be purged by its tag must not be kept.
    pub const MOST: usize = 128;
    /// Bytes of one tag; longer ones make a response unstorable.
    pub const LONGEST: usize = 256;

    /// Reads both fields on all their lines; `None` beyond the bounds and for what is not text.
    #[must_use]
    pub fn read(response: &HeaderMap) -> Option<Self> {
        let keys = response.get_all(SURROGATE_KEY).into_iter();
        let keys =
            keys.flat_map(|line| line.as_bytes().split(|&byte| matches!(byte, b' ' | b'\t')));
        let tags = list::tokens(response, CACHE_TAG);
        let all = keys.chain(tags).filter(|tag| !tag.is_empty());
        Self::collect(all.map(|tag| std::str::from_utf8(tag).ok()))
    }

    pub(super) fn collect<'a>(all: impl Iterator<Item = Option<&'a str>>) -> Option<Self> {
        let mut found: Vec<Box<str>> = Vec::new();
        for tag in all {
            let tag = tag.filter(|tag| tag.len() <= Self::LONGEST)?;
            if !found.iter().any(|known| **known == *tag) {
                if found.len() == Self::MOST {
                    return None;
                }
                found.push(tag.into());
            }
        }
        Some(Self(found.into()))
    }

    /// Each tag.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|tag| &**tag)
    }

    /// With its part of the index.
    pub(super) fn weight(&self) -> usize {
        self.iter().map(|tag| 2 * tag.len() + 256).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(fields: &[(&'static str, &str)]) -> Option<Vec<String>> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(*name, value.parse().expect("a field value"));
        }
        let tags = Tags::read(&headers)?;
        Some(tags.iter().map(str::to_owned).collect())
    }

    #[test]
    fn both_fields_count_on_all_lines_and_each_tag_once() {
        let found = tags(&[
            ("surrogate-key", "a  b"),
            ("surrogate-key", "c\ta"),
            ("cache-tag", "x, y z ,b"),
        ]);
        assert_eq!(found.expect("tags"), ["a", "b", "c", "x", "y z"]);
        assert_eq!(tags(&[]), Some(vec![]));
    }

    #[test]
    fn what_could_not_be_purged_is_not_kept() {
        let many = |count: usize| (0..count).map(|n| format!("t{n} ")).collect::<String>();
        assert!(tags(&[("surrogate-key", &many(Tags::MOST))]).is_some());
        assert!(tags(&[("surrogate-key", &many(Tags::MOST + 1))]).is_none());
        assert!(tags(&[("cache-tag", &"x".repeat(Tags::LONGEST))]).is_some());
        assert!(tags(&[("cache-tag", &"x".repeat(Tags::LONGEST + 1))]).is_none());
    }
}
