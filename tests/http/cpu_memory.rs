//! What compression may cost: no codec where none is of use, memory that comes back, and no work
//! for clients that left.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ::h2::Reason;

use crate::support::{
    Conn, Decoder, Demo, H2Call, H2Origin, Origin, Pieces as _, Proxy, Setup, Signal, big,
    eventually, json_of, noise,
};

const JSON: (&str, &str) = ("Content-Type", "application/json");

#[test]
fn random_bytes_under_a_compressible_type_stay_plain_and_cost_no_codec() {
    let body = noise(1 << 20);
    let plain = body.clone();
    let app = Origin::start(move |call| match call.path() {
        "/length" => call.answer(200, &[JSON], &plain),
        _ => {
            call.chunked(200, &[JSON])?;
            for piece in plain.chunks(50_000) {
                call.chunk(piece)?;
            }
            call.end()
        }
    });
    let proxy = Proxy::before(&app);
    for coding in ["gzip", "br", "zstd"] {
        for path in ["/length", "/chunked"] {
            let reply = proxy.get(path, &[("Accept-Encoding", coding)]);
            assert_eq!(reply.coding(), "identity", "{path}");
            assert_eq!(reply.varies(), 1, "{path}");
            assert!(reply.body == body, "{coding} {path}");
            assert_eq!(proxy.access(path)["reason"], "incompressible");
        }
    }
    let counted = [("reason", "incompressible"), ("coding", "identity")];
    proxy.until("thinwire_responses_total", &counted, |sum| sum == 6.0);
    assert_eq!(proxy.metrics().sum("thinwire_encodes_total", &[]), 0.0);
    assert_eq!(
        proxy.metrics().sum("thinwire_codec_seconds_total", &[]),
        0.0
    );
}

#[test]
fn a_body_with_a_plain_head_and_a_random_rest_is_seen_through() {
    let body = [&json_of(6_000)[..], &noise(300_000)].concat();
    let app = Origin::json(body.clone());
    let proxy = Proxy::before(&app);
    let reply = proxy.get("/", &[("Accept-Encoding", "gzip")]);
    assert!(reply.coding() == "identity" && reply.body == body);
    assert_eq!(proxy.access("/")["reason"], "incompressible");
}

#[test]
fn the_demo_s_lie_about_its_random_bytes_is_seen_through() {
    let proxy = Proxy::before(&Demo);
    let reply = proxy.get("/random?type=json", &[("Accept-Encoding", "br")]);
    assert_eq!((reply.coding(), reply.body.len()), ("identity", 1 << 20));
    assert_eq!(
        proxy.access("/random?type=json")["reason"],
        "incompressible"
    );
}

#[test]
fn a_route_that_is_off_runs_no_codec_and_one_that_is_on_says_what_it_cost() {
    let app = Origin::json(json_of(300_000));
    let routes =
        "- name: off\n  match: { path: /off }\n  upstream: app\n  compress: { enabled: false }";
    // The second answer would reuse what the first was coded to.
    let proxy = Setup::before(&app)
        .defaults("cache: { reuse: false }")
        .routes_before(routes)
        .start();
    let coded = |path: &str| {
        let fields = [("Accept-Encoding", "gzip")];
        let replies = [
            proxy.get(path, &fields),
            proxy.h2().get(path, &[("accept-encoding", "gzip")]),
        ];
        replies.map(|reply| reply.expect(200).coding().to_owned())
    };
    assert_eq!(coded("/off"), ["identity", "identity"]);
    let off = [("route", "off")];
    proxy.until("thinwire_responses_total", &off, |sum| sum == 2.0);
    for name in [
        "thinwire_encodes_total",
        "thinwire_codec_seconds_total",
        "thinwire_plain_bytes_total",
    ] {
        assert_eq!(proxy.metrics().sum(name, &[]), 0.0, "{name}");
    }
    assert_eq!(proxy.access("/off")["reason"], "disabled");

    assert_eq!(coded("/on"), ["gzip", "gzip"]);
    let on = [
        ("route", "everything"),
        ("kind", "http"),
        ("coding", "gzip"),
    ];
    proxy.until("thinwire_encodes_total", &on, |sum| sum == 2.0);
    proxy.until("thinwire_codec_seconds_total", &on, |sum| sum > 0.0);
    let metrics = proxy.metrics();
    assert_eq!(
        metrics.sum("thinwire_plain_bytes_total", &on),
        2.0 * json_of(300_000).len() as f64
    );
    assert!(metrics.sum("thinwire_coded_bytes_total", &on) > 0.0);
}

#[test]
fn br_has_no_denser_level_than_5_unless_asked() {
    let proxy = Proxy::before(&Origin::json("{}"));
    let config = proxy.admin("/config").expect(200).json();
    let level = &config["defaults"]["compress"]["levels"]["br"];
    assert!(level.as_u64().unwrap() <= 5, "{level}");
}

/// Downloads that run at the same time.
const MANY: usize = 200;

#[test]
fn many_br_downloads_at_once_stay_within_their_memory_and_give_it_back() {
    let whole = json_of(1_200_000);
    let app = Origin::json(whole.clone());
    // Each of them is coded: none takes what another was coded to.
    let proxy = Setup::before(&app)
        .top("pool: { threads: 2 }")
        .defaults("cache: { reuse: false }")
        .start();
    let download = || {
        let mut conn = proxy.conn();
        conn.request("GET", "/", &[("Accept-Encoding", "br")], b"");
        conn
    };
    let all = |conns: Vec<Conn>| {
        for mut conn in conns {
            let reply = conn.reply().expect(200);
            let plain = Decoder::new(reply.coding()).push(&reply.body);
            assert!(plain.expect("decodable") == whole);
        }
    };
    all((0..20).map(|_| download()).collect());
    let base = proxy.memory_kib();
    // Buffers of both connections and what the budget lets them hold; an encoder a download, or all
    // of their bodies twice, would be more.
    let bound = MANY as u64 * 2 * 1024;
    // What the allocators keep of one burst serves the next: a leak would be there twice.
    for _ in 0..2 {
        let before = proxy.memory_kib();
        let conns: Vec<_> = (0..MANY).map(|_| download()).collect();
        // None of them is read, so the app's bytes pile up as far as they may.
        let mut most = 0;
        for _ in 0..20 {
            most = most.max(proxy.memory_kib());
            proxy.get("/", &[]).expect(200);
        }
        all(conns);
        assert!(
            most < before + bound,
            "{before} KiB before, {most} KiB with {MANY}"
        );
        eventually("the memory to come back", || {
            all(vec![download()]);
            (proxy.memory_kib() < base + bound / 2).then_some(())
        });
    }
    proxy.until("thinwire_pool_jobs", &[], |jobs| jobs == 0.0);
}

/// Sends 50 MB, and counts what it got rid of.
fn endless(sent: &Arc<AtomicUsize>, left: &Signal) -> Origin {
    let (sent, left) = (Arc::clone(sent), left.clone());
    let piece = json_of(64 * 1024);
    Origin::start(move |call| {
        call.chunked(200, &[JSON])?;
        for _ in 0..800 {
            if let Err(error) = call.chunk(&piece) {
                left.fire();
                return Err(error);
            }
            sent.fetch_add(1, Ordering::SeqCst);
        }
        call.end()
    })
}

#[test]
fn when_the_client_is_gone_so_is_the_work_for_it() {
    for coding in ["gzip", "br", "zstd", "identity"] {
        for http2 in [false, true] {
            let (sent, left) = (Arc::new(AtomicUsize::new(0)), Signal::new());
            let app = endless(&sent, &left);
            let proxy = Proxy::before(&app);
            if http2 {
                let client = proxy.h2();
                let mut stream = client.start("GET", "/", &[("accept-encoding", coding)], true);
                assert_eq!(stream.head().coding(), coding);
                stream.piece().expect("a piece");
                stream.reset(Reason::CANCEL);
                left.wait();
            } else {
                let mut conn = proxy.conn();
                conn.request("GET", "/", &[("Accept-Encoding", coding)], b"");
                assert_eq!(conn.head().coding(), coding);
                conn.piece().expect("a piece");
                conn.reset();
                left.wait();
            }
            assert!(
                sent.load(Ordering::SeqCst) < 800,
                "{coding}: all of it was read"
            );
            proxy.until("thinwire_pool_jobs", &[], |jobs| jobs == 0.0);
            assert_eq!(proxy.access("/")["ended_by"], "client", "{coding}");
            eventually("the app's connection to end", || {
                (app.open() == 0).then_some(())
            });
        }
    }
}

#[test]
fn a_client_that_leaves_before_the_head_ends_the_exchange_too() {
    let left = Signal::new();
    let seen = left.clone();
    let app = Origin::start(move |call| {
        call.gone()?;
        seen.fire();
        Ok(())
    });
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.request("GET", "/", &[], b"");
    eventually("the request", || app.requests().pop());
    conn.reset();
    left.wait();
    assert_eq!(proxy.access("/")["ended_by"], "client");
}

#[test]
fn an_h2_app_is_told_that_the_client_left() {
    let told = Signal::new();
    let heard = told.clone();
    let app = H2Origin::start(move |mut call: H2Call| {
        let told = heard.clone();
        async move {
            call.head(200, &[("content-type", "application/json")], false)?;
            call.data(big(), false).await?;
            assert_eq!(call.gone().await?, Reason::CANCEL);
            told.fire();
            Ok(())
        }
    });
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.request("GET", "/", &[("Accept-Encoding", "br")], b"");
    conn.head().expect(200);
    conn.reset();
    told.wait();
    let mut stream = proxy
        .h2()
        .start("GET", "/", &[("accept-encoding", "br")], true);
    stream.head().expect(200);
    stream.reset(Reason::CANCEL);
    eventually("the streams to end", || (app.streams() == 0).then_some(()));
}
