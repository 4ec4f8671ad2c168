//! What was purged lately: an answer that the app gave before a purge must not be stored after it.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use super::key::Url;
use super::tags::Tags;

/// A moment in the order of purges; taken before the app is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

/// What is purged, here and elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meant {
    /// All that is stored under this key.
    Url(Url),
    /// All whose key starts so.
    Prefix(Url),
    /// All that carries this tag.
    Tag(Box<str>),
}

impl Meant {
    /// Whether a response of this key with these tags is meant.
    #[must_use]
    pub fn means(&self, url: &Url, tags: &Tags) -> bool {
        match self {
            Self::Url(meant) => meant == url,
            Self::Prefix(prefix) => url.as_str().starts_with(prefix.as_str()),
            Self::Tag(meant) => tags.iter().any(|tag| *tag == **meant),
        }
    }
}

/// What a purge of many speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Purge {
    /// All keys that start so.
    Prefix(Box<str>),
    /// All responses that carry the tag.
    Tag(Box<str>),
}

/// The latest purges, in bounded memory. Where that is too small to tell, the answer is yes: then
/// something is not stored that could have been.
#[derive(Debug)]
pub(super) struct Purges {
    /// When a URL of this hash was purged last. Every unsafe request purges URLs, so there are many.
    urls: Box<[u64]>,
    hasher: RandomState,
    latest: VecDeque<(u64, Purge)>,
    /// When the latest that is no longer in there was.
    forgotten: u64,
    count: u64,
}

impl Default for Purges {
    fn default() -> Self {
        Self {
            urls: vec![0; Self::URLS].into(),
            hasher: RandomState::new(),
            latest: VecDeque::new(),
            forgotten: 0,
            count: 0,
        }
    }
}

impl Purges {
    const URLS: usize = 1 << 14;
    const REMEMBERED: usize = 1024;

    pub(super) fn add(&mut self, purge: Purge) {
        self.count += 1;
        if self.latest.len() == Self::REMEMBERED
            && let Some((at, _)) = self.latest.pop_front()
        {
            self.forgotten = at;
        }
        self.latest.push_back((self.count, purge));
    }

    pub(super) fn add_url(&mut self, url: &Url) {
        self.count += 1;
        self.urls[self.place(url)] = self.count;
    }

    /// Something was purged that is not remembered: all answers from before it are meant.
    pub(super) fn add_unknown(&mut self) {
        self.count += 1;
        self.forgotten = self.count;
    }

    pub(super) const fn now(&self) -> Moment {
        Moment(self.count)
    }

    /// Whether a purge since then meant this.
    pub(super) fn meant_since(&self, then: Moment, url: &Url, tags: &Tags) -> bool {
        if self.urls[self.place(url)] > then.0 || self.forgotten > then.0 {
            return true;
        }
        let later = self.latest.iter().rev();
        let mut later = later.take_while(|(at, _)| *at > then.0);
        later.any(|(_, purge)| match purge {
            Purge::Prefix(prefix) => url.as_str().starts_with(&**prefix),
            Purge::Tag(purged) => tags.iter().any(|tag| *tag == **purged),
        })
    }

    fn place(&self, url: &Url) -> usize {
        // The remainder is less than a usize.
        (self.hasher.hash_one(url) % Self::URLS as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::QueryKey;

    fn url() -> Url {
        Url::parse("http://a/x/y", &QueryKey::All).expect("a URL")
    }

    #[test]
    fn only_purges_since_then_that_mean_it_count() {
        let tags = Tags::collect(["t"].into_iter().map(Some)).expect("tags");
        let mut purges = Purges::default();
        purges.add_url(&url());
        let then = purges.now();
        assert!(!purges.meant_since(then, &url(), &tags));
        purges.add(Purge::Prefix("http://b/".into()));
        purges.add(Purge::Tag("u".into()));
        assert!(!purges.meant_since(then, &url(), &tags));
        let purge: [&dyn Fn(&mut Purges); 3] = [
            &|purges| purges.add_url(&url()),
            &|purges| purges.add(Purge::Prefix("http://a/x/".into())),
            &|purges| purges.add(Purge::Tag("t".into())),
        ];
        for purge in purge {
            let then = purges.now();
            purge(&mut purges);
            assert!(purges.meant_since(then, &url(), &tags));
            assert!(!purges.meant_since(purges.now(), &url(), &tags));
        }
    }

    #[test]
    fn what_is_no_longer_remembered_may_have_meant_it() {
        let mut purges = Purges::default();
        let then = purges.now();
        for _ in 0..Purges::REMEMBERED {
            purges.add(Purge::Tag("other".into()));
        }
        assert!(!purges.meant_since(then, &url(), &Tags::default()));
        purges.add(Purge::Tag("other".into()));
        assert!(purges.meant_since(then, &url(), &Tags::default()));
        assert!(!purges.meant_since(purges.now(), &url(), &Tags::default()));
    }

    #[test]
    fn many_writes_elsewhere_keep_few_things_from_being_stored() {
        let mut purges = Purges::default();
        let then = purges.now();
        for n in 0..1500 {
            let text = format!("http://a/{n}");
            purges.add_url(&Url::parse(&text, &QueryKey::All).expect("a URL"));
        }
        let others = (0..1000).map(|n| format!("http://b/{n}"));
        let kept_out = others.filter(|text| {
            let url = Url::parse(text, &QueryKey::All).expect("a URL");
            purges.meant_since(then, &url, &Tags::default())
        });
        // 1500 of 16384 places: about 88.
        assert!(kept_out.count() < 200);
    }
}
