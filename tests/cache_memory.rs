//! `cache.memory` as the allocator sees it. Alone in its process: the count is of everything.

use std::alloc::System;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};
use thinwire::cache::freshness::Freshness;
use thinwire::cache::key::{Selector, Url};
use thinwire::cache::object::Object;
use thinwire::cache::store::{Entry, Found, Gauges, Store};
use thinwire::codec::Coding;
use thinwire::config::settings::QueryKey;

#[global_allocator]
static ALLOCATOR: cap::Cap<System> = cap::Cap::new(System, usize::MAX);

const FRESHNESS: Freshness = Freshness {
    born: SystemTime::UNIX_EPOCH,
    lifetime: Duration::from_secs(60),
    validate: false,
    strict: false,
    while_revalidate: Duration::ZERO,
    if_error: Duration::ZERO,
    authorized: false,
};

fn url(n: usize) -> Url {
    let text = format!("http://example.com/some/path/of/usual/length/{n}?query={n}");
    Url::parse(&text, &QueryKey::All).expect("a URL")
}

fn entry(n: usize, size: usize) -> Entry {
    let mut head = HeaderMap::new();
    for (name, value) in [
        ("content-type", "application/json"),
        ("cache-control", "max-age=60"),
        ("etag", "\"0123456789abcdef\""),
        ("vary", "accept-language"),
        ("x-request-id", "0123456789abcdef0123456789abcdef"),
        ("surrogate-key", "one two three"),
    ] {
        head.append(name, HeaderValue::from_static(value));
    }
    let tag = HeaderValue::try_from(format!("tag-{n}")).expect("a field value");
    head.append("surrogate-key", tag);
    let body = [Bytes::from(vec![b'x'; size])];
    let object =
        Object::new(StatusCode::OK, &head, FRESHNESS.born, &body, FRESHNESS).expect("an object");
    Entry {
        url: url(n),
        route: "route".into(),
        selector: Selector::read(&head, &HeaderMap::new()).expect("a selector"),
        object: Arc::new(object),
    }
}

/// What one test does holds for the other only after it: they run in one.
#[test]
fn a_stream_of_100_000_objects_stays_within_the_memory() {
    const MEMORY: usize = 32 << 20;
    let mut peaks = Vec::new();
    // Tiny ones, where tables weigh most; usual ones; then large ones into the tables of many tiny.
    for (count, sizes) in [(40_000, 0..40), (100_000, 0..20_000), (2_000, 0..2_000_000)] {
        let before = ALLOCATOR.allocated();
        let store = Store::new(MEMORY as u64, Gauges::default());
        let mut peak = fill(&store, count, &sizes, before);
        if sizes.end == 40 {
            peak = peak.max(fill(&store, 2_000, &(0..1_000_000), before));
        }
        assert!(store.weight() <= MEMORY && store.weight() > MEMORY / 2);
        peaks.push((sizes, peak));
    }
    for (sizes, peak) in peaks {
        assert!(peak <= MEMORY / 100 * 105, "{sizes:?}: {peak}");
    }
}

/// Returns the most that was held after an insertion.
fn fill(store: &Store, count: usize, sizes: &std::ops::Range<usize>, before: usize) -> usize {
    let mut peak = 0;
    for n in 0..count {
        let entry = entry(n, sizes.start + n * 7919 % (sizes.end - sizes.start));
        let id = entry.object.id();
        store.insert(entry, store.moment());
        if n % 3 == 0 {
            let coded = Bytes::from(vec![1; sizes.end / 8]);
            let _ = store.put_variant(id, Coding::Gzip, &[coded], false);
        }
        let hot = store.find(&url(n / 2), "route", &HeaderMap::new());
        drop(hot);
        peak = peak.max(ALLOCATOR.allocated() - before);
    }
    let found = store.find(&url(count - 1), "route", &HeaderMap::new());
    assert!(matches!(found, Found::Object(_)), "the newest is there");
    peak
}
