//! More to compress than there are threads for it: answers get cheaper, then plain, and nobody waits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::support::{Origin, Proxy, Setup, json_of};

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// Clients that ask at the same time.
const CLIENTS: usize = 40;

/// An app with a body that is work, and one that is none.
fn app(body: &[u8]) -> Origin {
    let body = body.to_vec();
    Origin::start(move |call| match call.path() {
        "/ping" => call.answer(200, &[("Content-Type", "text/plain")], b"pong"),
        _ => call.answer(200, &[JSON], &body),
    })
}

/// All clients at once, `each` answers each; calls `beside` until they are done.
fn crowd(proxy: &Proxy, each: usize, ask: impl Fn(&Proxy, usize) + Sync, beside: impl Fn()) {
    let (done, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (ask, done) = (&ask, &done);
            scope.spawn(move || {
                for round in 0..each {
                    ask(proxy, client * each + round);
                }
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        while !over.load(Ordering::SeqCst) {
            beside();
            over.store(done.load(Ordering::SeqCst) == CLIENTS, Ordering::SeqCst);
        }
    });
}

#[test]
fn what_would_wait_too_long_goes_out_plain_and_small_answers_do_not_wait() {
    let body = json_of(5_000_000);
    let app = app(&body);
    let setup = Setup::before(&app).top("pool: { threads: 2, max_wait: 2ms }");
    let proxy = setup.start();
    let coded = AtomicUsize::new(0);
    let pings = AtomicUsize::new(0);
    let ask = |proxy: &Proxy, number: usize| {
        let coding = ["br", "gzip", "zstd"][number % 3];
        let reply = proxy.get("/", &[("Accept-Encoding", coding)]).expect(200);
        if reply.coding() == "identity" {
            assert!(reply.body == body);
            // It could have been coded.
            assert_eq!(reply.varies(), 1);
        } else {
            coded.fetch_add(1, Ordering::SeqCst);
            assert_eq!(reply.coding(), coding);
            assert!(reply.decoded() == body, "{coding}");
        }
    };
    crowd(&proxy, 2, ask, || {
        assert_eq!(
            proxy
                .get("/ping", &[("Accept-Encoding", "br")])
                .expect(200)
                .text(),
            "pong"
        );
        pings.fetch_add(1, Ordering::SeqCst);
    });
    assert!(pings.load(Ordering::SeqCst) > 0);
    assert!(coded.load(Ordering::SeqCst) > 0, "a busy pool still works");
    let all = (CLIENTS * 2 - coded.load(Ordering::SeqCst)) as f64;
    assert!(all > 0.0, "nothing was under pressure");
    let pressed = [("reason", "pressure"), ("coding", "identity")];
    proxy.until("thinwire_responses_total", &pressed, |sum| sum == all);
    let plain = |line: &serde_json::Value| line["reason"] == "pressure";
    assert_eq!(
        proxy
            .access_lines()
            .iter()
            .filter(|line| plain(line))
            .count() as f64,
        all
    );
    proxy.until("thinwire_pool_jobs", &[], |jobs| jobs == 0.0);
}

#[test]
fn whole_bodies_under_pressure_get_cheaper_before_they_get_plain() {
    let body = json_of(300_000);
    let app = app(&body);
    // A job is a few milliseconds: on its way up the queue passes through what is only cheaper.
    let setup = Setup::before(&app)
        .top("pool: { threads: 1, max_wait: 40ms }")
        .defaults("compress: { levels: { gzip: 6 } }");
    let proxy = setup.start();
    let dense = proxy.get("/", &[("Accept-Encoding", "gzip")]).body.len();
    let (cheaper, plain) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let ask = |proxy: &Proxy, _: usize| {
        let reply = proxy.get("/", &[("Accept-Encoding", "gzip")]).expect(200);
        assert!(reply.decoded() == body);
        if reply.coding() == "identity" {
            plain.fetch_add(1, Ordering::SeqCst);
        } else if reply.body.len() != dense {
            cheaper.fetch_add(1, Ordering::SeqCst);
        }
    };
    crowd(&proxy, 10, ask, || {
        proxy.get("/ping", &[]).expect(200);
    });
    let (cheaper, plain) = (cheaper.into_inner(), plain.into_inner());
    assert!(cheaper > 0, "{plain} plain, none cheaper");
    // When the crowd is gone the answers are as dense as before.
    proxy.until("thinwire_pool_jobs", &[], |jobs| jobs == 0.0);
    let again = proxy.get("/", &[("Accept-Encoding", "gzip")]);
    assert_eq!((again.coding(), again.body.len()), ("gzip", dense));
}

#[test]
fn a_client_that_refuses_plain_gets_it_cheap_under_pressure() {
    let body = json_of(100_000);
    let app = app(&body);
    let setup = Setup::before(&app).top("pool: { threads: 1, max_wait: 1ms }");
    let proxy = setup.start();
    let ask = |proxy: &Proxy, _: usize| {
        let reply = proxy.get("/", &[("Accept-Encoding", "gzip, identity;q=0")]);
        let reply = reply.expect(200);
        assert!(reply.coding() == "gzip" && reply.decoded() == body);
    };
    crowd(&proxy, 5, ask, || {
        proxy.get("/ping", &[]).expect(200);
    });
}

#[test]
fn small_answers_need_no_pool() {
    let body = json_of(2_000);
    let big = json_of(5_000_000);
    let (small, large) = (body.clone(), big.clone());
    let app = Origin::start(move |call| match call.path() {
        "/small" => call.answer(200, &[JSON], &small),
        _ => call.answer(200, &[JSON], &large),
    });
    let setup = Setup::before(&app).top("pool: { threads: 1, max_wait: 1ms }");
    let proxy = setup.start();
    let ask = |proxy: &Proxy, _: usize| {
        let reply = proxy.get("/", &[("Accept-Encoding", "br")]).expect(200);
        assert_eq!(reply.decoded().len(), big.len());
    };
    crowd(&proxy, 1, ask, || {
        let reply = proxy
            .get("/small", &[("Accept-Encoding", "gzip")])
            .expect(200);
        assert_eq!(reply.coding(), "gzip", "coded where it stands");
        assert!(reply.decoded() == body);
    });
}
