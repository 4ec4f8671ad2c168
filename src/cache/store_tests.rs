use super::*;
use crate::cache::freshness::Freshness;
use crate::cache::reuse::{Form, Names};
use crate::config::settings::QueryKey;
use http::{HeaderValue, StatusCode};
use std::time::{Duration, SystemTime};

const FRESHNESS: Freshness = Freshness {
    born: SystemTime::UNIX_EPOCH,
    lifetime: Duration::from_secs(60),
    validate: false,
    strict: false,
    while_revalidate: Duration::ZERO,
    if_error: Duration::ZERO,
    authorized: false,
};

fn url(text: &str) -> Url {
    Url::parse(text, &QueryKey::All).expect("a URL")
}

fn head(fields: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        headers.append(*name, HeaderValue::from_str(value).expect("a field value"));
    }
    headers
}

fn store(memory: u64) -> Store {
    Store::new(memory, Gauges::default())
}

/// An answer of the app: `said` is its head, `asked` the request's.
fn entry(
    at: &str,
    asked: &[(&'static str, &str)],
    said: &[(&'static str, &str)],
    body: &[u8],
) -> Entry {
    let body = [Bytes::copy_from_slice(body)];
    let object = Object::new(
        StatusCode::OK,
        &head(said),
        FRESHNESS.born,
        &body,
        FRESHNESS,
    );
    Entry {
        url: url(at),
        route: "r".into(),
        selector: Selector::read(&head(said), &head(asked)).expect("a selector"),
        object: Arc::new(object.expect("an object")),
    }
}

fn put(store: &Store, at: &str, said: &[(&'static str, &str)], body: &[u8]) -> ObjectId {
    let entry = entry(at, &[], said, body);
    let id = entry.object.id();
    assert!(store.insert(entry, store.moment()));
    id
}

fn body(store: &Store, at: &str, asked: &[(&'static str, &str)]) -> Option<Bytes> {
    match store.find(&url(at), "r", &head(asked)) {
        Found::Object(object) => Some(object.body().clone()),
        Found::VaryMiss | Found::UriMiss => None,
    }
}

const MEMORY: u64 = 1 << 20;

#[test]
fn what_is_stored_is_found_and_replaced() {
    let store = store(MEMORY);
    put(&store, "http://h/a", &[], b"one");
    put(&store, "http://h/b", &[], b"other");
    assert_eq!(
        body(&store, "http://h/a", &[]).as_deref(),
        Some(&b"one"[..])
    );
    put(&store, "http://h/a", &[], b"two");
    assert_eq!(
        body(&store, "http://h/a", &[]).as_deref(),
        Some(&b"two"[..])
    );
    assert_eq!(store.objects(), 2);
    for elsewhere in [
        "https://h/a",
        "http://h:8080/a",
        "http://i/a",
        "http://h/a?q",
        "http://h/A",
    ] {
        assert!(matches!(
            store.find(&url(elsewhere), "r", &HeaderMap::new()),
            Found::UriMiss
        ));
    }
}

#[test]
fn routes_do_not_see_each_others_answers() {
    let store = store(MEMORY);
    put(&store, "http://h/a", &[], b"of r");
    let found = store.find(&url("http://h/a"), "beta", &HeaderMap::new());
    assert!(matches!(found, Found::UriMiss));
    let mut beta = entry("http://h/a", &[], &[], b"of beta");
    beta.route = "beta".into();
    assert!(store.insert(beta, store.moment()));
    assert_eq!(
        body(&store, "http://h/a", &[]).as_deref(),
        Some(&b"of r"[..])
    );
    assert_eq!(store.purge_url(&url("http://h/a")), 2, "a purge means both");
}

#[test]
fn vary_selects_and_the_newest_wins() {
    let store = store(MEMORY);
    let vary = [("vary", "foo")];
    for value in ["1", "2"] {
        let entry = entry("http://h/", &[("foo", value)], &vary, value.as_bytes());
        assert!(store.insert(entry, store.moment()));
    }
    assert_eq!(
        body(&store, "http://h/", &[("foo", "1")]).as_deref(),
        Some(&b"1"[..])
    );
    assert_eq!(
        body(&store, "http://h/", &[("foo", "2")]).as_deref(),
        Some(&b"2"[..])
    );
    let asked = head(&[("foo", "3")]);
    assert!(matches!(
        store.find(&url("http://h/"), "r", &asked),
        Found::VaryMiss
    ));
    let expected = store
        .expected(&url("http://h/"), "r", &asked)
        .expect("known to vary");
    assert_eq!(
        expected,
        Selector::read(&head(&vary), &asked).expect("a selector")
    );
    // The app varies no more: its newest answer is for all.
    put(&store, "http://h/", &[], b"all");
    assert_eq!(
        body(&store, "http://h/", &[("foo", "1")]).as_deref(),
        Some(&b"all"[..])
    );
}

#[test]
fn thousands_of_vary_values_do_not_push_out_other_urls() {
    let store = store(16 << 20);
    put(&store, "http://h/other", &[], b"stays");
    for n in 0..5000 {
        let value = n.to_string();
        let entry = entry("http://h/", &[("foo", &value)], &[("vary", "foo")], b"body");
        assert!(store.insert(entry, store.moment()));
    }
    assert_eq!(store.objects(), Store::MOST_PER_URL + 1);
    assert!(body(&store, "http://h/other", &[]).is_some());
    assert!(
        body(&store, "http://h/", &[("foo", "4999")]).is_some(),
        "the newest"
    );
    assert!(
        body(&store, "http://h/", &[("foo", "0")]).is_none(),
        "the oldest"
    );
}

#[test]
fn variants_belong_to_the_bytes_of_one_fetch() {
    let store = store(MEMORY);
    let first = put(&store, "http://h/", &[], b"one");
    let coded = [Bytes::from_static(b"coded "), Bytes::from_static(b"one")];
    let kept = store.put_variant(first, Coding::Brotli, &coded, false);
    assert_eq!(kept.as_deref(), Some(&b"coded one"[..]));
    assert_eq!(
        store.variant(first, Coding::Brotli).as_deref(),
        Some(&b"coded one"[..])
    );
    assert_eq!(store.variant(first, Coding::Gzip), None);

    let second = put(&store, "http://h/", &[], b"two");
    assert_eq!(store.variant(second, Coding::Brotli), None);
    assert_eq!(
        store.variant(first, Coding::Brotli),
        None,
        "gone with its object"
    );
    // An encode of the old bytes that ends now finds nobody.
    let late = store.put_variant(first, Coding::Gzip, &coded, false);
    assert_eq!(late, None);
    assert_eq!(store.variant(second, Coding::Gzip), None);
}

#[test]
fn hits_share_the_bytes() {
    let store = store(MEMORY);
    let id = put(&store, "http://h/", &[], b"plain");
    let kept = store.put_variant(id, Coding::Gzip, &[Bytes::from_static(b"gz")], false);
    let kept = kept.expect("kept");
    let one = store.variant(id, Coding::Gzip).expect("a variant");
    assert_eq!((kept.as_ptr(), kept.as_ptr()), (one.as_ptr(), one.as_ptr()));
    let plain = body(&store, "http://h/", &[]).expect("a body");
    assert_eq!(
        plain.as_ptr(),
        body(&store, "http://h/", &[]).expect("a body").as_ptr()
    );
}

#[test]
fn a_validation_keeps_bytes_and_variants() {
    let store = store(MEMORY);
    let entry = entry(
        "http://h/",
        &[],
        &[("etag", "\"a\""), ("surrogate-key", "old")],
        b"one",
    );
    let object = Arc::clone(&entry.object);
    assert!(store.insert(entry, store.moment()));
    let coded = [Bytes::from_static(b"gz")];
    assert!(
        store
            .put_variant(object.id(), Coding::Gzip, &coded, false)
            .is_some()
    );

    let new_head = head(&[("etag", "\"a\""), ("surrogate-key", "new"), ("x", "1")]);
    let validated = Arc::new(object.validated(new_head, FRESHNESS).expect("an object"));
    assert!(store.refresh(validated));
    let Found::Object(found) = store.find(&url("http://h/"), "r", &HeaderMap::new()) else {
        panic!("gone");
    };
    assert_eq!(found.head()["x"], "1");
    assert_eq!(found.body().as_ptr(), object.body().as_ptr());
    assert!(store.variant(object.id(), Coding::Gzip).is_some());
    assert_eq!(store.purge_tag("old"), 0);
    assert_eq!(store.purge_tag("new"), 1);
    assert!(!store.refresh(found), "what is gone is not brought back");
    assert_eq!((store.weight(), store.objects()), (0, 0));
}

#[test]
fn purges_take_every_coding_and_count_objects() {
    let store = store(MEMORY);
    let tagged = [("surrogate-key", "news all"), ("cache-tag", "front")];
    let a = put(&store, "http://h/x/a", &tagged, b"a");
    put(&store, "http://h/x/b", &[("cache-tag", "all")], b"b");
    put(&store, "http://h/xy", &[], b"c");
    put(&store, "http://h.evil/x/a", &[], b"d");
    for coding in [Coding::Gzip, Coding::Brotli, Coding::Zstd] {
        assert!(
            store
                .put_variant(a, coding, &[Bytes::from_static(b"z")], false)
                .is_some()
        );
    }
    assert_eq!(store.purge_url(&url("http://h/x/a")), 1);
    for coding in [Coding::Gzip, Coding::Brotli, Coding::Zstd] {
        assert_eq!(store.variant(a, coding), None);
    }
    assert_eq!(store.purge_tag("front"), 0);
    assert_eq!(store.purge_tag("all"), 1);
    put(&store, "http://h/x/a", &[], b"a");
    assert_eq!(store.purge_prefix(&url("http://h/x/")), 1);
    assert_eq!(
        store.purge_prefix(&url("http://h")),
        1,
        "not that of h.evil"
    );
    assert_eq!(store.objects(), 1);
    assert_eq!(store.purge_prefix(&url("http://h.evil/")), 1);
    assert_eq!(store.weight(), 0);
}

#[test]
fn an_answer_from_before_a_purge_is_not_stored_after_it() {
    let store = store(MEMORY);
    let tagged = [("surrogate-key", "t")];
    let asked = store.moment();
    store.purge_url(&url("http://h/other"));
    assert!(store.insert(entry("http://h/", &[], &tagged, b"old"), asked));
    for purge in [
        &(|| store.purge_url(&url("http://h/"))) as &dyn Fn() -> usize,
        &|| store.purge_prefix(&url("http://h/")),
        &|| store.purge_tag("t"),
    ] {
        let asked = store.moment();
        purge();
        assert!(!store.insert(entry("http://h/", &[], &tagged, b"old"), asked));
        assert!(store.insert(entry("http://h/", &[], &tagged, b"new"), store.moment()));
    }
}

#[test]
fn the_gauges_tell_what_is_held_in_which_coding() {
    let gauges = Gauges::default();
    let store = Store::new(MEMORY, gauges.clone());
    let id = put(&store, "http://h/", &[], &[b'x'; 10_000]);
    assert!(gauges.identity.get() >= 10_000);
    let plain = gauges.identity.get();
    assert!(
        store
            .put_variant(id, Coding::Brotli, &[Bytes::from(vec![1; 500])], false)
            .is_some()
    );
    assert!(
        store
            .put_variant(id, Coding::Zstd, &[Bytes::from(vec![1; 700])], false)
            .is_some()
    );
    assert!(gauges.brotli.get() >= 500 && gauges.zstd.get() >= 700);
    assert_eq!((gauges.identity.get(), gauges.gzip.get()), (plain, 0));
    let sum = gauges.identity.get() + gauges.brotli.get() + gauges.zstd.get();
    assert_eq!(usize::try_from(sum), Ok(store.weight()));
    store.forget(id);
    let left = [&gauges.identity, &gauges.brotli, &gauges.zstd].map(Gauge::get);
    assert_eq!(left, [0, 0, 0]);
}

#[test]
fn the_memory_is_never_exceeded_and_hot_ones_stay() {
    let store = store(MEMORY);
    put(&store, "http://h/hot", &[], &[b'h'; 4000]);
    for n in 0..2000 {
        put(
            &store,
            &format!("http://h/{n}"),
            &[],
            &vec![b'x'; n * 7 % 9000],
        );
        assert!(store.weight() <= 1 << 20);
        assert!(body(&store, "http://h/hot", &[]).is_some(), "{n}");
    }
    assert!(store.objects() > 50);
}

#[test]
fn what_was_fetched_again_outlives_what_is_asked_for_once() {
    let store = store(MEMORY);
    put(&store, "http://h/once", &[], b"body");
    for _ in 0..2 {
        put(&store, "http://h/again", &[], b"body");
    }
    for n in 0..200 {
        put(&store, &format!("http://h/{n}"), &[], &[b'x'; 8000]);
    }
    assert!(body(&store, "http://h/again", &[]).is_some());
    assert!(body(&store, "http://h/once", &[]).is_none());
}

#[test]
fn what_is_larger_than_half_the_memory_is_not_kept() {
    let store = store(100_000);
    put(&store, "http://h/a", &[], b"small");
    let large = entry("http://h/b", &[], &[], &[0; 60_000]);
    let id = large.object.id();
    assert!(!store.insert(large, store.moment()));
    assert!(store.put_variant(id, Coding::Gzip, &[], false).is_none());
    assert!(body(&store, "http://h/a", &[]).is_some());
}

#[test]
fn reused_forms_share_the_bound() {
    let store = store(MEMORY);
    let names = Names::new().expect("random bytes");
    let digest = |n: u32| {
        let mut naming = names.begin();
        naming.update(&n.to_be_bytes());
        naming.finish(Form {
            coding: Coding::Gzip,
            effort: 4,
            only: None,
        })
    };
    assert_eq!(store.reused(&digest(0)), None);
    for n in 0..500 {
        store.put_reused(digest(n), &[Bytes::from(vec![7; 8000])]);
        assert_eq!(
            store.reused(&digest(n)).map(|bytes| bytes.len()),
            Some(8000)
        );
        assert!(store.weight() <= 1 << 20);
    }
    assert_eq!(store.reused(&digest(3)), None, "given up");
}

#[test]
fn what_was_sent_again_may_be_made_denser_once() {
    let store = store(MEMORY);
    let id = put(&store, "http://h/", &[], b"plain");
    let coded = [Bytes::from_static(b"coded")];
    assert!(
        store
            .put_variant(id, Coding::Brotli, &coded, false)
            .is_some()
    );
    assert!(store.put_variant(id, Coding::Gzip, &coded, false).is_some());
    assert!(
        store.candidates().is_empty(),
        "made on demand, not asked for again"
    );
    for _ in 0..3 {
        let _ = store.variant(id, Coding::Brotli);
    }
    let found = store.candidates();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].coding, found[0].uses), (Coding::Brotli, 3));
    assert_eq!((&found[0].plain[..], found[0].object), (&b"plain"[..], id));
    assert!(
        store
            .put_variant(id, Coding::Brotli, &[Bytes::from_static(b"c")], true)
            .is_some()
    );
    let _ = store.variant(id, Coding::Brotli);
    assert!(store.candidates().is_empty(), "dense already");
}

#[test]
fn threads_that_store_and_find_keep_the_bound() {
    let store = store(MEMORY);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for n in 0..1000 {
                    let at = format!("http://h/{}", (n * 7 + thread) % 300);
                    let tagged = [("surrogate-key", "t")];
                    let entry = entry(&at, &[], &tagged, &vec![1; n % 5000]);
                    let id = entry.object.id();
                    // Not stored where another thread purges just then.
                    store.insert(entry, store.moment());
                    let _ =
                        store.put_variant(id, Coding::Gzip, &[Bytes::from(vec![2; 300])], false);
                    let _ = body(store, &at, &[]);
                    if n % 250 == 0 {
                        store.purge_tag("t");
                    }
                    assert!(store.weight() <= 1 << 20);
                }
            });
        }
    });
    store.purge_prefix(&url("http://h/"));
    assert_eq!((store.weight(), store.objects()), (0, 0));
}
