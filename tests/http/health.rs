//! Servers that fail: left out, looked after, and taken back.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::support::{H2Origin, Nowhere, Origin, Proxy, Setup, eventually};

const HEALTHY: &str = "thinwire_upstream_healthy";

/// An app that answers 503 while it is told to, and says its name.
fn moody(name: &'static str, ill: &Arc<AtomicBool>) -> Origin {
    let ill = Arc::clone(ill);
    Origin::start(move |call| {
        call.body()?;
        let status = if ill.load(Ordering::SeqCst) { 503 } else { 200 };
        call.answer(status, &[], name.as_bytes())
    })
}

fn well(name: &'static str) -> Origin {
    moody(name, &Arc::default())
}

/// What the gauge says of this app.
fn gauge(proxy: &Proxy, app: &Origin) -> f64 {
    let server = app.server();
    proxy.metrics().sum(HEALTHY, &[("server", &server)])
}

fn until_gauge(proxy: &Proxy, app: &Origin, value: f64) {
    let server = app.server();
    proxy.until(HEALTHY, &[("server", &server)], |healthy| healthy == value);
}

/// Answers of `name` among so many.
fn share(proxy: &Proxy, name: &str, of: usize) -> usize {
    let replies = (0..of).map(|_| proxy.get("/", &[]));
    replies.filter(|reply| reply.text() == name).count()
}

#[test]
fn a_server_that_keeps_failing_is_left_out_and_taken_back() {
    let ill = Arc::new(AtomicBool::new(true));
    let (bad, good) = (moody("bad", &ill), well("good"));
    let proxy = Setup::before(&bad)
        .and(&good)
        .upstream("balance: round_robin\neject: { failures: 3, for: 300ms }")
        .start();
    let failed = (0..8).filter(|_| proxy.get("/", &[]).status == 503).count();
    assert_eq!(failed, 3, "then it is left out");
    assert_eq!(gauge(&proxy, &bad), 0.0);
    assert_eq!(gauge(&proxy, &good), 1.0);
    let line = proxy.wait_for_log("the warning", |line| line.contains("gets no more requests"));
    assert!(
        line.contains("503") && line.contains(&bad.server()),
        "{line}"
    );
    ill.store(false, Ordering::SeqCst);
    eventually("it to be asked again", || {
        (proxy.get("/", &[]).expect(200).text() == "bad").then_some(())
    });
    until_gauge(&proxy, &bad, 1.0);
    proxy.wait_for_log("the good news", |line| line.contains("gets requests again"));
    // Its load comes back little by little.
    let first = share(&proxy, "bad", 40);
    assert!(first < 15, "{first} of 40 at once");
}

#[test]
fn a_server_that_is_not_there_is_not_asked_each_time() {
    let (gone, good) = (Nowhere::reserve(), well("good"));
    let proxy = Setup::before(&gone)
        .and(&good)
        .upstream("balance: round_robin\neject: { failures: 2, for: 5m }")
        .start();
    for _ in 0..20 {
        proxy.ask("POST", "/", &[], b"x").expect(200);
    }
    let refused = [("outcome", "connect_failed")];
    let tries = proxy
        .metrics()
        .sum("thinwire_upstream_requests_total", &refused);
    assert_eq!(tries, 2.0);
}

#[test]
fn the_last_server_is_always_asked() {
    let ill = Arc::new(AtomicBool::new(true));
    let app = moody("alone", &ill);
    let proxy = Setup::before(&app)
        .upstream("eject: { failures: 1, for: 5m }")
        .start();
    for _ in 0..5 {
        proxy.get("/", &[]).expect(503);
    }
    assert_eq!(gauge(&proxy, &app), 1.0);
    ill.store(false, Ordering::SeqCst);
    proxy.get("/", &[]).expect(200);
}

#[test]
fn a_500_is_about_one_request_and_leaves_no_server_out() {
    let app = Origin::answer(500, &[], "a bug");
    let other = well("good");
    let proxy = Setup::before(&app)
        .and(&other)
        .upstream("balance: round_robin\neject: { failures: 1, for: 5m }")
        .start();
    let bugs = (0..10).filter(|_| proxy.get("/", &[]).status == 500);
    assert_eq!(bugs.count(), 5);
}

/// An app whose `/healthz` says what it is told, and that serves the rest.
fn checked(name: &'static str, ill: &Arc<AtomicBool>, checks: &Arc<AtomicUsize>) -> Origin {
    let (ill, checks) = (Arc::clone(ill), Arc::clone(checks));
    Origin::start(move |call| {
        if call.path() != "/healthz" {
            return call.answer(200, &[], name.as_bytes());
        }
        checks.fetch_add(1, Ordering::SeqCst);
        let status = if ill.load(Ordering::SeqCst) { 500 } else { 204 };
        call.answer(status, &[], b"")
    })
}

#[test]
fn checks_take_a_server_out_and_bring_it_back() {
    let (ill, checks) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let (app, other) = (checked("app", &ill, &checks), well("other"));
    let proxy = Setup::before(&app)
        .and(&other)
        .upstream("balance: round_robin")
        .upstream("health: { path: /healthz, interval: 20ms, timeout: 5s, unhealthy_after: 2, healthy_after: 2 }")
        .start();
    eventually("a check", || {
        (checks.load(Ordering::SeqCst) > 3).then_some(())
    });
    assert_eq!(share(&proxy, "app", 10), 5);
    ill.store(true, Ordering::SeqCst);
    until_gauge(&proxy, &app, 0.0);
    assert_eq!(share(&proxy, "app", 10), 0);
    let line = proxy.wait_for_log("the warning", |line| line.contains("gets no more requests"));
    assert!(line.contains("500 Internal Server Error"), "{line}");
    ill.store(false, Ordering::SeqCst);
    until_gauge(&proxy, &app, 1.0);
    // A check is nobody's request: no connection of it is used for one, none is logged.
    let seen = app.requests();
    let check = seen
        .iter()
        .find(|seen| seen.head.line.contains(" /healthz "))
        .expect("one");
    assert_eq!(check.head.field("user-agent"), Some("thinwire-health"));
    assert_eq!(check.head.field("connection"), Some("close"));
    assert!(
        proxy
            .access_lines()
            .iter()
            .all(|line| line["path"] != "/healthz")
    );
}

#[test]
fn where_all_are_ill_all_are_asked_and_the_proxy_is_ready_all_the_same() {
    let (ill, checks) = (Arc::new(AtomicBool::new(true)), Arc::default());
    let app = checked("app", &ill, &checks);
    let proxy = Setup::before(&app)
        .upstream("health: { path: /healthz, interval: 20ms }")
        .start();
    until_gauge(&proxy, &app, 0.0);
    proxy.get("/", &[]).expect(200);
    proxy.admin("/ready").expect(200);
}

#[test]
fn a_port_that_nobody_listens_on_is_ill() {
    let (gone, good) = (Nowhere::reserve(), well("good"));
    let proxy = Setup::before(&gone)
        .and(&good)
        .upstream("health: { tcp: true, interval: 20ms }")
        .start();
    proxy.until(HEALTHY, &[], |healthy| healthy == 1.0);
    for _ in 0..5 {
        proxy.get("/", &[]).expect(200);
    }
    let refused = [("outcome", "connect_failed")];
    let requests = "thinwire_upstream_requests_total";
    assert_eq!(proxy.metrics().sum(requests, &refused), 0.0);
}

#[test]
fn grpc_servers_are_asked_by_the_health_protocol() {
    let serving = |status: u8| {
        let body = vec![0, 0, 0, 0, 2, 8, status];
        let kind = [("content-type", "application/grpc")];
        H2Origin::answer(&kind, body, &[("grpc-status", "0")])
    };
    let (ill, fine) = (serving(2), serving(1));
    let unknown = H2Origin::answer(
        &[("content-type", "application/grpc")],
        Vec::new(),
        &[("grpc-status", "12")],
    );
    let proxy = Setup::before(&ill)
        .and(&fine)
        .and(&unknown)
        .upstream("health: { grpc: shop.Orders, interval: 20ms }")
        .start();
    proxy.until(HEALTHY, &[], |healthy| healthy == 1.0);
    let asked = fine.requests();
    let check = asked.first().expect("a check");
    assert_eq!(check.uri().path(), "/grpc.health.v1.Health/Check");
    assert_eq!(check.headers()["te"], "trailers");
    assert_eq!(
        proxy.metrics().sum(HEALTHY, &[("server", &fine.server())]),
        1.0
    );
    for cause in ["does not serve", "grpc-status 12"] {
        proxy.wait_for_log(cause, |line| line.contains(cause));
    }
}

#[test]
fn a_reload_keeps_what_is_known_of_servers_that_stay() {
    let ill = Arc::new(AtomicBool::new(true));
    let (bad, good) = (moody("bad", &ill), well("good"));
    let setup = Setup::before(&bad)
        .and(&good)
        .upstream("balance: round_robin\neject: { failures: 2, for: 5m }");
    let proxy = setup.start();
    (0..6).for_each(|_| drop(proxy.get("/", &[])));
    assert_eq!(gauge(&proxy, &bad), 0.0);
    let third = well("third");
    proxy.reload(&setup.and(&third).yaml());
    eventually("the new server", || {
        (proxy.get("/", &[]).expect(200).text() == "third").then_some(())
    });
    assert_eq!(gauge(&proxy, &bad), 0.0);
    assert_eq!(share(&proxy, "bad", 9), 0);
}

#[test]
fn repetitions_are_a_fraction_of_the_requests() {
    // Each connection serves one request, and is closed at the next.
    let served = Mutex::new(HashSet::new());
    let app = Origin::start(move |call| {
        if served.lock().unwrap().insert(call.connection()) {
            return call.answer(200, &[], b"fine");
        }
        call.close()
    });
    let proxy = Setup::before(&app)
        .top("network: { threads: 1 }")
        .upstream("retries: 1")
        .start();
    let failed = (0..100).filter(|_| proxy.get("/", &[]).status != 200);
    let failed = failed.count();
    let retried = proxy.metrics().sum(
        "thinwire_upstream_requests_total",
        &[("outcome", "retried")],
    );
    assert!(
        (10.0..=30.0).contains(&retried) && failed > 0,
        "{retried} repetitions, {failed} failures"
    );
}
