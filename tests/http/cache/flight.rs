//! One fetch for all who want the same; nobody hangs on somebody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::support::Signal;

/// So many clients ask at once; `meanwhile` happens once all have.
fn burst(
    proxy: &Proxy,
    clients: usize,
    fields: Fields<'_>,
    meanwhile: impl FnOnce(),
) -> Vec<Reply> {
    let mut conns: Vec<_> = (0..clients).map(|_| proxy.conn()).collect();
    for conn in &mut conns {
        conn.request("GET", "/x", fields, b"");
    }
    meanwhile();
    conns.iter_mut().map(|conn| conn.reply()).collect()
}

#[test]
fn a_cold_burst_makes_one_fetch_and_one_encode() {
    let go = Signal::new();
    let app = {
        let go = go.clone();
        Origin::start(move |call| {
            call.body()?;
            call.wait(&go);
            let fields = [
                ("Content-Type", "application/json"),
                ("Cache-Control", "max-age=600"),
            ];
            call.answer(200, &fields, &big())
        })
    };
    let proxy = Setup::before(&app)
        .top("pool: { max_wait: 20s }")
        .route("cache: { enabled: true, densify: false }")
        .start();
    let replies = burst(&proxy, 500, &[("accept-encoding", "gzip")], || {
        proxy.until("thinwire_requests_in_flight", &[], |running| {
            running == 500.0
        });
        go.fire();
    });
    for reply in &replies {
        assert_eq!((reply.coding(), reply.decoded() == big()), ("gzip", true));
    }
    assert_eq!(app.requests().len(), 1);
    assert_eq!(proxy.metrics().sum("thinwire_encodes_total", &[]), 1.0);
    let collapsed = replies
        .iter()
        .filter(|reply| said(reply).contains("collapsed"));
    assert_eq!(collapsed.count(), 499);
}

#[test]
fn who_waited_for_what_is_nobody_elses_goes_on_by_himself() {
    let (first, count) = (Signal::new(), Arc::new(AtomicUsize::new(0)));
    let app = {
        let (first, count) = (first.clone(), Arc::clone(&count));
        Origin::start(move |call| {
            call.body()?;
            let number = count.fetch_add(1, Ordering::SeqCst);
            if number == 0 {
                call.wait(&first);
            }
            let fields = [("Cache-Control", "private, max-age=60")];
            call.answer(200, &fields, number.to_string().as_bytes())
        })
    };
    let proxy = caching(&app);
    let replies = burst(&proxy, 20, &[], || {
        proxy.until("thinwire_requests_in_flight", &[], |running| {
            running == 20.0
        });
        first.fire();
    });
    let mut bodies: Vec<usize> = replies
        .iter()
        .map(|reply| reply.text().parse().expect("a number"))
        .collect();
    bodies.sort_unstable();
    assert_eq!(bodies, (0..20).collect::<Vec<_>>(), "each got its own");
}

#[test]
fn a_leader_whose_client_leaves_before_the_head_hands_on() {
    let count = Arc::new(AtomicUsize::new(0));
    let app = {
        let count = Arc::clone(&count);
        Origin::start(move |call| {
            call.body()?;
            if count.fetch_add(1, Ordering::SeqCst) == 0 {
                return call.gone();
            }
            call.answer(200, &[("Cache-Control", "max-age=600")], b"second")
        })
    };
    let proxy = caching(&app);
    let mut leader = proxy.conn();
    leader.request("GET", "/x", &[], b"");
    crate::support::eventually("the app to be asked", || {
        (app.requests().len() == 1).then_some(())
    });
    let mut waiter = proxy.conn();
    waiter.request("GET", "/x", &[], b"");
    proxy.until("thinwire_requests_in_flight", &[], |running| running == 2.0);
    leader.reset();
    assert_eq!(waiter.reply().body, b"second");
    assert_eq!(app.requests().len(), 2);
}

#[test]
fn a_leader_that_leaves_after_the_head_does_not_end_the_fetch() {
    let (seen, go) = (Signal::new(), Signal::new());
    let app = {
        let (seen, go) = (seen.clone(), go.clone());
        Origin::start(move |call| {
            call.body()?;
            call.chunked(200, &[("Cache-Control", "max-age=600")])?;
            call.chunk("one ")?;
            seen.fire();
            call.wait(&go);
            call.chunk("two")?;
            call.end()
        })
    };
    let proxy = caching(&app);
    let mut leader = proxy.conn();
    leader.request("GET", "/x", &[], b"");
    seen.wait();
    let _head = leader.head();
    leader.reset();
    let mut waiter = proxy.conn();
    waiter.request("GET", "/x", &[], b"");
    proxy.until("thinwire_requests_in_flight", &[], |running| running == 1.0);
    go.fire();
    assert_eq!(waiter.reply().body, b"one two");
    assert_eq!(app.requests().len(), 1);
}

#[test]
fn a_slow_first_byte_keeps_nobody_for_long() {
    let (never, count) = (Signal::new(), Arc::new(AtomicUsize::new(0)));
    let app = {
        let (never, count) = (never.clone(), Arc::clone(&count));
        Origin::start(move |call| {
            call.body()?;
            if count.fetch_add(1, Ordering::SeqCst) == 0 {
                call.wait(&never);
            }
            call.answer(200, &[("Cache-Control", "max-age=600")], b"quick")
        })
    };
    let proxy = caching(&app);
    let mut leader = proxy.conn();
    leader.request("GET", "/x", &[], b"");
    crate::support::eventually("the app to be asked", || {
        (app.requests().len() == 1).then_some(())
    });
    assert_eq!(proxy.get("/x", &[]).body, b"quick");
    is_hit(&proxy.get("/x", &[]));
    never.fire();
    assert_eq!(leader.reply().body, b"quick");
}

#[test]
fn an_answer_that_breaks_off_is_not_kept() {
    let count = AtomicUsize::new(0);
    let app = Origin::start(move |call| {
        call.body()?;
        let fields = [("Cache-Control", "max-age=600"), ("Content-Length", "10")];
        call.raw_head(200, &fields)?;
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            call.send("01234")?;
            return call.close();
        }
        call.send("0123456789")
    });
    let proxy = caching(&app);
    let mut conn = proxy.conn();
    conn.request("GET", "/x", &[], b"");
    let broken = conn.try_reply();
    assert!(broken.is_err() || broken.is_ok_and(|reply| reply.status == 502));
    assert_eq!(proxy.get("/x", &[]).expect(200).body, b"0123456789");
    is_hit(&proxy.get("/x", &[]));
}

#[test]
fn what_is_longer_than_max_object_passes_and_is_not_kept() {
    let body = crate::support::noise(300 * 1024);
    let announced = Origin::answer(200, &[("Cache-Control", "max-age=600")], body.clone());
    let unannounced = {
        let body = body.clone();
        Origin::start(move |call| {
            call.body()?;
            call.chunked(200, &[("Cache-Control", "max-age=600")])?;
            for piece in body.chunks(10_000) {
                call.chunk(piece)?;
            }
            call.end()
        })
    };
    for app in [announced, unannounced] {
        let proxy = caching_with(&app, "max_object: 100KiB");
        for _ in 0..2 {
            assert_eq!(proxy.get("/x", &[]).expect(200).body, body);
        }
        assert_eq!(app.requests().len(), 2);
    }
}
