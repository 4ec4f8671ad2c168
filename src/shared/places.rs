//! Where things lie in the second tier. Names are hashes, so that no URL is too long or too odd
//! for one, and all begin with a version: instances of different versions do not meet.

use bytes::Bytes;

use crate::cache::key::{Selector, Url};
use crate::cache::store::Entry;
use crate::cache::wire::Fork;
use crate::codec::Coding;

/// The clock of purges, and when which URLs were purged last: one hash, kept or lost as a whole.
pub(super) const JOURNAL: &str = "thinwire:1:journal";
/// The latest purges of many.
pub(super) const PURGES: &str = "thinwire:1:purges";
/// Where purges are told.
pub(super) const CHANNEL: &str = "thinwire:1:purge";

/// URLs share so many fields of the journal; one that shares its field with a purged one is
/// fetched anew.
const SLOTS: u64 = 1 << 14;

/// The field of the journal that says when this URL was purged last.
pub(super) fn slot(url: &Url) -> String {
    let hash = blake3::hash(url.as_str().as_bytes());
    let [a, b, c, d, ..] = *hash.as_bytes();
    let slot = u64::from(u32::from_le_bytes([a, b, c, d])) % SLOTS;
    format!("u{slot}")
}

/// Where a URL's answer lies, or the fork that leads to it.
pub(super) fn page(url: &Url, route: &str) -> String {
    named("p", &[url.as_str().as_bytes(), route.as_bytes()])
}

/// Where an answer lies whose URL has a fork.
pub(super) fn leaf(url: &Url, route: &str, fork: &Fork, selector: &Selector) -> String {
    let (names, values) = selector.parts();
    let names: Vec<_> = names.iter().map(|name| name.as_str()).collect();
    let parts = [
        url.as_str().as_bytes(),
        route.as_bytes(),
        &fork.generation.to_be_bytes(),
        names.join(",").as_bytes(),
        values,
    ]
    .map(<[u8]>::to_vec);
    named("l", &parts.each_ref().map(Vec::as_slice))
}

/// Names an object's plain bytes under its key: coded forms hang on it, so that those of other
/// bytes can never be sent for them, nor those of another route or host.
pub(super) fn bytes_of(entry: &Entry) -> [u8; 32] {
    let (names, values) = entry.selector.parts();
    let names: Vec<_> = names.iter().map(|name| name.as_str()).collect();
    let body: &Bytes = entry.object.body();
    *hash(&[
        entry.url.as_str().as_bytes(),
        entry.route.as_bytes(),
        names.join(",").as_bytes(),
        values,
        body,
    ])
    .as_bytes()
}

/// Where a coded form lies.
pub(super) fn coded(of: &[u8; 32], coding: Coding) -> String {
    let of = blake3::Hash::from_bytes(*of);
    format!("thinwire:1:c:{coding}:{of}")
}

fn named(kind: &str, parts: &[&[u8]]) -> String {
    format!("thinwire:1:{kind}:{}", hash(parts))
}

/// Of all parts, with their lengths.
fn hash(parts: &[&[u8]]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::QueryKey;

    fn url(text: &str) -> Url {
        Url::parse(text, &QueryKey::All).expect("a URL")
    }

    #[test]
    fn schemes_hosts_routes_and_queries_lie_apart() {
        let pages = [
            page(&url("http://a/x"), "r"),
            page(&url("https://a/x"), "r"),
            page(&url("http://b/x"), "r"),
            page(&url("http://a/x?"), "r"),
            page(&url("http://a/xr"), ""),
            page(&url("http://a/x"), "s"),
        ];
        for (at, page) in pages.iter().enumerate() {
            assert!(!pages[..at].contains(page), "{at}");
        }
    }

    #[test]
    fn a_new_generation_leads_elsewhere() {
        let selector = Selector::by(Vec::new(), &http::HeaderMap::new()).expect("a selector");
        let leaf = |generation| {
            let fork = Fork {
                names: Vec::new(),
                generation,
            };
            leaf(&url("http://a/x"), "r", &fork, &selector)
        };
        assert_eq!(leaf(1), leaf(1));
        assert_ne!(leaf(1), leaf(2));
    }
}
