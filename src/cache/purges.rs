//! What was purged lately: an answer that the app gave before a purge must not be stored after it.

use std::collections::VecDeque;

use super::key::Url;
use super::tags::Tags;

/// A moment in the order of purges; taken before the app is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

/// What a purge speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Purge {
    /// One URL, in each of its stored forms.
    Url(Url),
    /// All keys that start so.
    Prefix(Box<str>),
    /// All responses that carry the tag.
    Tag(Box<str>),
}

impl Purge {
    fn means(&self, url: &Url, tags: &Tags) -> bool {
        match self {
            Self::Url(purged) => purged == url,
            Self::Prefix(prefix) => url.as_str().starts_with(&**prefix),
            Self::Tag(purged) => tags.iter().any(|tag| *tag == **purged),
        }
    }
}

/// The latest purges, a bounded number.
#[derive(Debug, Default)]
pub(super) struct Purges {
    latest: VecDeque<Purge>,
    /// Of all that ever were.
    count: u64,
}

impl Purges {
    const REMEMBERED: usize = 1024;

    pub(super) fn add(&mut self, purge: Purge) {
        if self.latest.len() == Self::REMEMBERED {
            self.latest.pop_front();
        }
        self.latest.push_back(purge);
        self.count += 1;
    }

    pub(super) const fn now(&self) -> Moment {
        Moment(self.count)
    }

    /// Whether a purge since then meant this; also where too many came to know.
    pub(super) fn meant_since(&self, then: Moment, url: &Url, tags: &Tags) -> bool {
        let since = usize::try_from(self.count - then.0.min(self.count)).unwrap_or(usize::MAX);
        if since > self.latest.len() {
            return true;
        }
        let later = self.latest.iter().rev().take(since);
        later.into_iter().any(|purge| purge.means(url, tags))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::QueryKey;

    #[test]
    fn only_purges_since_then_that_mean_it_count() {
        let url = Url::parse("http://a/x/y", &QueryKey::All).expect("a URL");
        let tags = Tags::collect(["t"].into_iter().map(Some)).expect("tags");
        let mut purges = Purges::default();
        purges.add(Purge::Url(url.clone()));
        let then = purges.now();
        assert!(!purges.meant_since(then, &url, &tags));
        purges.add(Purge::Prefix("http://b/".into()));
        purges.add(Purge::Tag("u".into()));
        assert!(!purges.meant_since(then, &url, &tags));
        for purge in [
            Purge::Url(url.clone()),
            Purge::Prefix("http://a/x/".into()),
            Purge::Tag("t".into()),
        ] {
            let then = purges.now();
            purges.add(purge);
            assert!(purges.meant_since(then, &url, &tags));
            assert!(!purges.meant_since(purges.now(), &url, &tags));
        }
    }

    #[test]
    fn after_more_purges_than_are_remembered_nothing_older_is_stored() {
        let url = Url::parse("http://a/", &QueryKey::All).expect("a URL");
        let mut purges = Purges::default();
        let then = purges.now();
        for _ in 0..Purges::REMEMBERED {
            purges.add(Purge::Tag("other".into()));
        }
        assert!(!purges.meant_since(then, &url, &Tags::default()));
        purges.add(Purge::Tag("other".into()));
        assert!(purges.meant_since(then, &url, &Tags::default()));
    }
}
