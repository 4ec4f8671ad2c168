//! What the cache costs and saves: `cargo bench --bench cache`.
//!
//! `hit` is the store's part of one, `hash` the naming of bodies for reuse (one core), and `reuse`
//! the whole way of a reused form, naming and finding it, beside coding the same body.

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use http::{HeaderMap, HeaderValue, StatusCode};
use thinwire::cache::freshness::Freshness;
use thinwire::cache::key::{Selector, Url};
use thinwire::cache::object::Object;
use thinwire::cache::reuse::{Form, Names};
use thinwire::cache::store::{Entry, Found, Gauges, Store};
use thinwire::codec::{Coding, Recipe, whole};
use thinwire::config::settings::QueryKey;

/// JSON records with names and references, as the codecs' bench has them.
fn records(bytes: usize) -> Bytes {
    let mut dice = fastrand::Rng::with_seed(7);
    let mut text = String::from("[");
    while text.len() < bytes {
        let (id, reference) = (text.len(), dice.u64(..1 << 48));
        let _ = write!(
            text,
            r#"{{"id":{id},"email":"user{id}@example.com","ref":"{reference:012x}"}},"#
        );
    }
    Bytes::from(text)
}

fn url(number: usize) -> Url {
    let text = format!("http://example.com/path/of/usual/length/{number}?query={number}");
    Url::parse(&text, &QueryKey::All).expect("a URL")
}

fn entry(number: usize, body: &Bytes) -> Entry {
    let freshness = Freshness {
        born: SystemTime::now(),
        lifetime: Duration::from_secs(3600),
        validate: false,
        strict: false,
        while_revalidate: Duration::ZERO,
        if_error: Duration::ZERO,
        authorized: false,
    };
    let mut head = HeaderMap::new();
    for (name, value) in [
        ("content-type", "application/json"),
        ("cache-control", "max-age=3600"),
        ("etag", "\"0123456789abcdef\""),
        ("vary", "accept-language"),
    ] {
        head.append(name, HeaderValue::from_static(value));
    }
    let parts = std::slice::from_ref(body);
    let object = Object::new(StatusCode::OK, &head, freshness.born, parts, freshness);
    Entry {
        url: url(number),
        route: "route".into(),
        selector: Selector::read(&head, &HeaderMap::new()).expect("a selector"),
        object: Arc::new(object.expect("an object")),
    }
}

/// One of many copies, with a coded form of 187 KiB.
fn hit(criterion: &mut Criterion) {
    const COPIES: usize = 10_000;
    let store = Store::new(256 << 20, Gauges::default());
    let (plain, coded) = (records(2_000), Bytes::from(vec![1; 187 * 1024]));
    let mut hot = None;
    for number in 0..COPIES {
        let entry = entry(number, &plain);
        let object = entry.object.id();
        store.insert(entry, store.moment());
        if number == COPIES / 2 {
            let _ = store.put_variant(object, Coding::Gzip, std::slice::from_ref(&coded), false);
            hot = Some(number);
        }
    }
    let key = url(hot.expect("one has a coded form"));
    let request = HeaderMap::new();
    criterion.bench_function("hit/find and coded form", |bencher| {
        bencher.iter(|| {
            let Found::Object(object) = store.find(black_box(&key), "route", &request) else {
                panic!("it was stored above");
            };
            store
                .variant(object.id(), Coding::Gzip)
                .expect("kept above")
        });
    });
}

fn hash(criterion: &mut Criterion) {
    let names = Names::new().expect("random bytes");
    let mut group = criterion.benchmark_group("hash");
    for size in [16 << 10, 117 << 10, 1 << 20, 8 << 20] {
        let body = records(size).slice(..size);
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(format!("{} KiB", size >> 10), |bencher| {
            bencher.iter(|| {
                let mut naming = names.begin();
                naming.update(black_box(&body));
                naming
            });
        });
    }
    group.finish();
}

fn reuse(criterion: &mut Criterion) {
    let names = Names::new().expect("random bytes");
    let store = Store::new(256 << 20, Gauges::default());
    for (name, size) in [("117 KiB", 117 << 10), ("1.1 MB", 1_100_000)] {
        let body = records(size);
        let mut group = criterion.benchmark_group(format!("reuse {name}"));
        group.throughput(Throughput::Bytes(body.len() as u64));
        for (coding, level) in [(Coding::Gzip, 4), (Coding::Brotli, 4), (Coding::Zstd, 1)] {
            let recipe = Recipe::new(coding, level);
            let pieces = [body.clone()];
            let digest = || {
                let mut naming = names.begin();
                naming.update(black_box(&body));
                naming.finish(Form {
                    coding,
                    effort: recipe.effort,
                    only: None,
                })
            };
            let code = || whole(recipe, &pieces, body.len(), 0).expect("any bytes encode");
            store.put_reused(digest(), &[code()]);
            group.bench_function(format!("{coding} {level} coded"), |bencher| {
                bencher.iter(code);
            });
            group.bench_function(format!("{coding} {level} reused"), |bencher| {
                bencher.iter(|| store.reused(&digest()).expect("kept above"));
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .without_plots()
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_millis(800))
        .sample_size(20);
    targets = hit, hash, reuse
}
criterion_main!(benches);
