//! A soak: many clients of every kind at once, for minutes; then everything has to be as before.
//!
//!     cargo bench --bench soak -- [--clients 1000] [--seconds 120]
//!
//! Clients speak HTTP/1.1 and HTTP/2, mix codings, read slowly, leave in the middle. Every body that
//! came to its end is decoded and compared with what the demo application says without a proxy's
//! codecs. Afterwards no request, job, connection or thread is left, and the memory is what it was
//! after the warm-up, within 10 %. It measures no speed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "the tests' support, of which this uses a part")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ::h2::Reason;
use support::{Conn, Demo, Pieces as _, Proxy, Reply, Setup, eventually};

const CODINGS: [&str; 5] = ["gzip", "br", "zstd", "gzip, br, zstd", "identity"];

const TARGETS: [&str; 10] = [
    "/ping",
    "/users?count=20",
    "/users?count=200",
    "/users?count=2000",
    "/users",
    "/report",
    "/catalogue",
    "/random?type=json",
    "/events?count=2",
    "/",
];

/// A busy machine keeps a client waiting.
const PATIENCE: Duration = Duration::from_secs(180);

/// Clients that leave 4 MB answers at once.
const VANISHING: usize = 8;

/// What memory may have grown by, in percent.
const GROWTH: u64 = 10;

#[derive(Default)]
struct Tally {
    whole: AtomicU64,
    coded: AtomicU64,
    left: AtomicU64,
}

struct Scene {
    proxy: Proxy,
    /// The plain body of each target, hashed.
    known: HashMap<&'static str, u64>,
    tally: Tally,
}

fn main() {
    let (clients, seconds) = (option("--clients", 1000), option("--seconds", 120));
    let proxy = Setup::before(&Demo).start();
    let known = TARGETS.map(|target| (target, hash(&proxy.get(target, &[]).expect(200).body)));
    let scene = Arc::new(Scene {
        proxy,
        known: HashMap::from(known),
        tally: Tally::default(),
    });
    let warm = Duration::from_secs(seconds / 6 + 1);
    crowd(&scene, clients, warm);
    let (memory, threads) = at_rest(&scene.proxy);
    println!("after {warm:?} of warming up: {memory} KiB, {threads} threads");
    crowd(&scene, clients, Duration::from_secs(seconds));
    eventually("the memory to come back", || {
        let (now, left) = at_rest(&scene.proxy);
        println!("at rest: {now} KiB, {left} threads");
        assert_eq!(left, threads, "a thread is left");
        (now <= memory + memory * GROWTH / 100).then_some(())
    });
    println!(
        "{:?} after {VANISHING} clients vanished no job was left",
        vanish(&scene.proxy)
    );
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    println!(
        "{} bodies whole and exact, {} of them coded; {} clients left in the middle",
        count(&scene.tally.whole),
        count(&scene.tally.coded),
        count(&scene.tally.left)
    );
}

/// The number behind this word of the command line.
fn option(name: &str, default: u64) -> u64 {
    let mut words = std::env::args().skip_while(|word| word != name).skip(1);
    words.next().map_or(default, |word| word.parse().unwrap())
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

/// So many clients at once, each of which goes on until the time is over.
fn crowd(scene: &Arc<Scene>, clients: u64, time: Duration) {
    let until = Instant::now() + time;
    let crowd: Vec<_> = (0..clients)
        .map(|number| {
            let scene = Arc::clone(scene);
            thread::Builder::new()
                .stack_size(256 * 1024)
                .spawn(move || client(&scene, number, until))
                .unwrap()
        })
        .collect();
    for client in crowd {
        client.join().expect("a client that saw nothing wrong");
    }
}

fn client(scene: &Scene, number: u64, until: Instant) {
    let mut random = fastrand::Rng::with_seed(number);
    while Instant::now() < until {
        if number.is_multiple_of(5) {
            over_http2(scene, &mut random, until);
        } else {
            over_http1(scene, &mut random, until);
        }
    }
}

/// A connection with a few requests in turn.
fn over_http1(scene: &Scene, random: &mut fastrand::Rng, until: Instant) {
    let mut conn = Conn::open(scene.proxy.addr(0));
    conn.stream().read_timeout(Some(PATIENCE)).unwrap();
    for _ in 0..random.u32(1..8) {
        if Instant::now() > until {
            return;
        }
        let (target, coding) = (*pick(random, &TARGETS), *pick(random, &CODINGS));
        conn.request("GET", target, &[("Accept-Encoding", coding)], b"");
        match random.u32(0..10) {
            0 => {
                scene.left();
                return conn.reset();
            }
            1 => {
                conn.head().expect(200);
                let _ = conn.piece();
                scene.left();
                return;
            }
            2 => {
                let mut reply = conn.head().expect(200);
                while let Some(piece) = conn.piece() {
                    reply.body.extend(piece);
                    thread::sleep(Duration::from_millis(random.u64(0..30)));
                }
                scene.whole(target, &reply);
            }
            _ => {
                let reply = conn.reply().expect(200);
                scene.whole(target, &reply);
            }
        }
    }
}

/// A connection with a few streams at once.
fn over_http2(scene: &Scene, random: &mut fastrand::Rng, until: Instant) {
    let client = scene.proxy.h2();
    for _ in 0..random.u32(1..3) {
        if Instant::now() > until {
            return;
        }
        let streams: Vec<_> = (0..random.u32(1..5))
            .map(|_| {
                let (target, coding) = (*pick(random, &TARGETS), *pick(random, &CODINGS));
                let fields = [("accept-encoding", coding)];
                (target, client.start("GET", target, &fields, true))
            })
            .collect();
        for (target, mut stream) in streams {
            if random.u32(0..5) == 0 {
                scene.left();
                stream.reset(Reason::CANCEL);
                continue;
            }
            let reply = stream.reply().expect(200);
            scene.whole(target, &reply);
        }
    }
}

fn pick<'a, T>(random: &mut fastrand::Rng, choices: &'a [T]) -> &'a T {
    &choices[random.usize(..choices.len())]
}

impl Scene {
    fn left(&self) {
        self.tally.left.fetch_add(1, Ordering::Relaxed);
    }

    /// Compares a body that came to its end.
    fn whole(&self, target: &str, reply: &Reply) {
        let plain = reply.decoded();
        assert_eq!(hash(&plain), self.known[target], "{target} corrupted");
        self.tally.whole.fetch_add(1, Ordering::Relaxed);
        if reply.coding() != "identity" {
            self.tally.coded.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Clients of large answers leave in the middle, all at once: how long their work stays, as far as
/// asking for the metrics lets it be seen.
fn vanish(proxy: &Proxy) -> Duration {
    let fields = [("Accept-Encoding", "br")];
    let mut conns: Vec<_> = (0..VANISHING).map(|_| Conn::open(proxy.addr(0))).collect();
    for conn in &mut conns {
        conn.request("GET", "/users?count=37000", &fields, b"");
    }
    for conn in &mut conns {
        assert_eq!(conn.head().expect(200).coding(), "br");
    }
    let begun = Instant::now();
    conns.into_iter().for_each(Conn::reset);
    while proxy.metrics().sum("thinwire_pool_jobs", &[]) > 0.0 {}
    begun.elapsed()
}

/// Memory in KiB and threads, once nothing is under way.
fn at_rest(proxy: &Proxy) -> (u64, usize) {
    for gauge in [
        "thinwire_requests_in_flight",
        "thinwire_pool_jobs",
        "thinwire_connections",
    ] {
        proxy.until(gauge, &[], |count| count == 0.0);
    }
    (proxy.memory_kib(), proxy.threads().len())
}
