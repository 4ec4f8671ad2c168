//! Whole responses through the running proxy, one at a time: `cargo bench --bench response`.
//!
//! Time is from the request's first byte to the answer's last, over loopback, so the demo
//! application's and the client's share is in it: `plain` beside it says how much that is. Bodies
//! are coded each time; `again` is what the reuse of equal bodies makes of that.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "the tests' support, of which this uses a part")]

#[path = "../tests/support/mod.rs"]
mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use support::{Conn, Demo, Proxy, Setup};

fn case(
    group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>,
    proxy: &Proxy,
    name: &str,
    target: &str,
    coding: &str,
) {
    let mut conn = Conn::open(proxy.addr(0));
    group.bench_function(name, |bencher| {
        bencher.iter(|| {
            let reply = conn.get(target, &[("Accept-Encoding", coding)]);
            assert_eq!(reply.coding(), coding);
        });
    });
}

fn responses(criterion: &mut Criterion) {
    let fresh = Setup::before(&Demo)
        .defaults("cache: { reuse: false }")
        .start();
    let reusing = Setup::before(&Demo).start();
    let mut group = criterion.benchmark_group("tiny");
    case(&mut group, &fresh, "plain", "/ping", "identity");
    group.finish();
    for (name, target) in [("117k", "/report"), ("1m", "/users")] {
        let mut group = criterion.benchmark_group(name);
        case(&mut group, &fresh, "plain", target, "identity");
        for coding in ["gzip", "br", "zstd"] {
            case(&mut group, &fresh, coding, target, coding);
            case(
                &mut group,
                &reusing,
                &format!("{coding} again"),
                target,
                coding,
            );
        }
        group.finish();
    }
}

criterion_group!(benches, responses);
criterion_main!(benches);
