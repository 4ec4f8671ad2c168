//! Codecs on the two JSON bodies of the peers' bench: `cargo bench --bench codec`.
//!
//! The bodies are made here by the shape of `users()` in its payloads: 10,000 records, and the
//! leading ones of 117 KiB. Bytes out are printed once a candidate, time is criterion's.

use std::fmt::Write as _;
use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use thinwire::codec::{CodecError, Coding, Decoder, Encoder, Recipe, Step, sample, whole};

const FIRST: [&str; 16] = [
    "ada", "alan", "barbara", "brian", "carol", "dennis", "edsger", "frances", "grace", "hedy",
    "ida", "james", "joan", "ken", "linus", "margaret",
];
const LAST: [&str; 13] = [
    "lovelace",
    "turing",
    "liskov",
    "kernighan",
    "shaw",
    "ritchie",
    "dijkstra",
    "allen",
    "hopper",
    "lamarr",
    "rhodes",
    "gosling",
    "clarke",
];

fn users(count: usize) -> Bytes {
    let mut random = fastrand::Rng::with_seed(7);
    let mut text = String::from("[");
    for id in 0..count {
        let (first, last) = (FIRST[random.usize(..16)], LAST[random.usize(..13)]);
        let (reference, active) = (random.u64(..1 << 48), random.u8(..10) < 8);
        let comma = if id == 0 { "" } else { "," };
        let _ = write!(
            text,
            r#"{comma}{{"id":{id},"name":"{first} {last}","email":"{first}.{last}{id}@example.com","#
        );
        let _ = write!(text, r#""ref":"{reference:012x}","active":{active}}}"#);
    }
    text.push(']');
    Bytes::from(text)
}

fn bodies() -> [(&'static str, Bytes); 2] {
    [("json1m", users(10_000)), ("json117k", users(1_110))]
}

const RECIPES: [(Coding, u8); 13] = [
    (Coding::Gzip, 1),
    (Coding::Gzip, 2),
    (Coding::Gzip, 4),
    (Coding::Gzip, 5),
    (Coding::Gzip, 6),
    (Coding::Brotli, 1),
    (Coding::Brotli, 2),
    (Coding::Brotli, 3),
    (Coding::Brotli, 4),
    (Coding::Brotli, 5),
    (Coding::Zstd, 1),
    (Coding::Zstd, 3),
    (Coding::Zstd, 6),
];

/// A body through an encoder in pieces of 16 KiB, flushed each time or not.
fn stream(recipe: Recipe, body: &Bytes, step: Step) -> Result<BytesMut, CodecError> {
    let mut output = BytesMut::new();
    let mut encoder = Encoder::new(recipe)?;
    for piece in body.chunks(16 << 10) {
        encoder.encode(piece, step, &mut output)?;
    }
    encoder.encode(&[], Step::Finish, &mut output)?;
    Ok(output)
}

fn encode(criterion: &mut Criterion) {
    for (name, body) in bodies() {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(body.len() as u64));
        for (coding, level) in RECIPES {
            let recipe = Recipe::new(coding, level);
            let streaming = recipe.streaming(None);
            let pieces = [body.clone()];
            let once = || whole(recipe, &pieces, body.len(), 0).expect("any bytes encode");
            let plain = || stream(streaming, &body, Step::Continue).expect("any bytes encode");
            let flushed = || stream(streaming, &body, Step::Flush).expect("any bytes encode");
            println!(
                "{name} {coding} {level}: {} whole, {} streamed, {} flushed each 16 KiB, of {}",
                once().len(),
                plain().len(),
                flushed().len(),
                body.len()
            );
            group.bench_function(format!("whole {coding} {level}"), |b| b.iter(once));
            group.bench_function(format!("stream {coding} {level}"), |b| b.iter(plain));
            group.bench_function(format!("flushed {coding} {level}"), |b| b.iter(flushed));
        }
        group.bench_function("sample", |b| {
            b.iter(|| sample::looks_incompressible(black_box(std::slice::from_ref(&body))));
        });
        group.finish();
    }
}

fn decode(criterion: &mut Criterion) {
    for (name, body) in bodies() {
        let mut group = criterion.benchmark_group(format!("{name} decode"));
        group.throughput(Throughput::Bytes(body.len() as u64));
        for coding in [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd] {
            let coded = whole(
                Recipe::new(coding, 4),
                std::slice::from_ref(&body),
                body.len(),
                0,
            )
            .expect("any bytes encode");
            group.bench_function(coding.token(), |b| {
                b.iter(|| {
                    let mut decoder = Decoder::new(coding, body.len() as u64);
                    let mut at = 0;
                    while at < coded.len() {
                        let mut output = BytesMut::new();
                        at += decoder
                            .decode(&coded[at..], &mut output, 64 << 10)
                            .expect("it was encoded above")
                            .consumed;
                        black_box(output);
                    }
                });
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .without_plots()
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_millis(800))
        .sample_size(20);
    targets = encode, decode
}
criterion_main!(benches);
