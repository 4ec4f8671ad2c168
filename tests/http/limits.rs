//! Limits and timeouts of the contract: what exceeds them is refused, and nothing else suffers.

use std::time::Duration;

use crate::support::{Conn, Origin, Proxy, Setup, Signal, eventually};

fn taking() -> Origin {
    Origin::start(|call| {
        let length = call.body()?.len().to_string();
        call.answer(200, &[], length.as_bytes())
    })
}

#[test]
fn a_request_body_may_be_as_large_as_its_route_says() {
    let app = taking();
    let routes =
        "- { name: small, match: { path: /small }, upstream: app, limits: { request_body: 1KiB } }";
    let setup = Setup::before(&app).routes_before(routes);
    let proxy = setup.defaults("limits: { request_body: 4KiB }").start();
    for (target, bytes, status) in [
        ("/small", 1024, 200),
        ("/small", 1025, 413),
        ("/", 4096, 200),
        ("/", 4097, 413),
    ] {
        let body = vec![b'x'; bytes];
        let reply = proxy.ask("POST", target, &[], &body);
        assert_eq!(reply.status, status, "{bytes} bytes to {target}");
        let reply = proxy.h2().ask("POST", target, &[], &body);
        assert_eq!(reply.status, status, "{bytes} bytes to {target} over h2");
        let mut conn = proxy.conn();
        conn.request("POST", target, &[("Transfer-Encoding", "chunked")], b"");
        conn.chunk(&body[..bytes / 2]);
        conn.chunk(&body[bytes / 2..]);
        conn.send("0\r\n\r\n");
        assert_eq!(
            conn.reply().status,
            status,
            "{bytes} bytes in chunks to {target}"
        );
    }
}

#[test]
fn a_body_whose_length_is_too_large_is_refused_before_the_app_is_asked() {
    let app = taking();
    let proxy = Proxy::with(&app, "limits: { request_body: 1KiB }");
    let mut conn = proxy.conn();
    let fields = [("Content-Length", "1025"), ("Expect", "100-continue")];
    conn.request("POST", "/x", &fields, b"");
    let reply = conn.reply();
    assert_eq!(reply.status, 413);
    assert!(reply.informational.is_empty(), "it was asked to send");
    assert!(app.requests().is_empty());
    let line = proxy.access("/x");
    assert_eq!(
        (&line["status"], &line["ended_by"]),
        (&413.into(), &"client".into())
    );
    assert!(conn.closed().is_empty());
}

#[test]
fn a_route_takes_so_many_requests_at_once_and_others_do_not_suffer() {
    let go = Signal::new();
    let held = go.clone();
    let app = Origin::start(move |call| {
        if call.path() == "/held" {
            call.wait(&held);
        }
        call.answer(200, &[], b"fine")
    });
    let routes = "- { name: narrow, match: { path: /held }, upstream: app, limits: { concurrent_requests: 2 } }";
    let proxy = Setup::before(&app).routes_before(routes).start();
    let client = proxy.h2();
    let mut first = proxy.conn();
    first.request("GET", "/held", &[], b"");
    let mut second = client.start("GET", "/held", &[], true);
    eventually("both to be held", || {
        (app.requests().len() == 2).then_some(())
    });
    for reply in [proxy.get("/held?3", &[]), client.get("/held?4", &[])] {
        assert_eq!(reply.status, 503);
        assert_eq!(reply.header("retry-after"), Some("1"));
    }
    assert_eq!(proxy.access("/held?3")["ended_by"], "proxy");
    proxy.get("/other", &[]).expect(200);
    go.fire();
    first.reply().expect(200);
    second.reply().expect(200);
    // Places are given back with the records.
    proxy.until(
        "thinwire_requests_in_flight",
        &[("route", "narrow")],
        |running| running == 0.0,
    );
    proxy.get("/held", &[]).expect(200);
}

#[test]
fn a_body_that_pauses_too_long_is_408_and_one_that_trickles_is_not() {
    let app = taking();
    let proxy = Proxy::with(&app, "timeouts: { request_body: 1s }");
    let mut stalls = proxy.conn();
    stalls.request("POST", "/stalls", &[("Content-Length", "4")], b"");
    stalls.send("x");
    let mut stream = proxy.h2().start("POST", "/stalls-over-h2", &[], false);
    stream.send(b"x", false);
    let mut trickles = proxy.conn();
    trickles.request("POST", "/trickles", &[("Content-Length", "4")], b"");
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(400));
        trickles.send("x");
    }
    assert_eq!(trickles.reply().expect(200).body, b"4");
    let reply = stalls.reply();
    assert_eq!(
        (reply.status, reply.header("connection")),
        (408, Some("close"))
    );
    assert_eq!(stream.reply().status, 408);
    for path in ["/stalls", "/stalls-over-h2"] {
        let line = proxy.access(path);
        assert_eq!(
            (&line["status"], &line["ended_by"]),
            (&408.into(), &"client".into())
        );
    }
}

#[test]
fn an_exchange_that_takes_too_long_is_504_or_cut() {
    let left = Signal::new();
    let seen = left.clone();
    let app = Origin::start(move |call| {
        if call.path() == "/begun" {
            call.raw_head(200, &[("Content-Length", "10")])?;
            call.send("begun")?;
        }
        call.gone()?;
        seen.fire();
        Ok(())
    });
    let proxy = Proxy::with(&app, "timeouts: { response: 300ms }");
    assert_eq!(proxy.get("/silent", &[]).status, 504);
    left.wait();
    assert_eq!(proxy.access("/silent")["status"], 504);
    let mut conn = proxy.conn();
    conn.request("GET", "/begun", &[], b"");
    let broken = conn.try_reply().expect_err("it cannot be complete");
    assert!(broken.was_cut(), "{broken}");
    assert_eq!(broken.so_far.expect("a head").status, 200);
    let line = proxy.access("/begun");
    assert_eq!(
        (&line["status"], &line["ended_by"]),
        (&200.into(), &"proxy".into())
    );
    eventually("the app's connections to end", || {
        (app.open() == 0).then_some(())
    });
}

#[test]
fn a_head_that_does_not_end_in_time_is_408_whatever_it_begins_with() {
    let app = taking();
    let proxy = Setup::before(&app)
        .defaults("timeouts: { request_head: 300ms }")
        .start();
    // P may be the first byte of HTTP/2, or of a POST.
    for begun in ["P", "PRI", "PO", "G", "GET / HTTP/1.1\r\nHost: a\r\n"] {
        let mut conn = proxy.conn();
        conn.send(begun);
        assert_eq!(conn.reply().status, 408, "{begun:?}");
        assert!(conn.closed().is_empty());
    }
    proxy.until("thinwire_responses_total", &[("status", "408")], |count| {
        count == 5.0
    });
    // A second head is timed as the first is.
    let mut conn = proxy.conn();
    conn.get("/", &[]).expect(200);
    std::thread::sleep(Duration::from_millis(400));
    conn.get("/", &[]).expect(200);
    conn.send("GE");
    assert_eq!(conn.reply().status, 408);
}

#[test]
fn an_h2_head_beyond_its_limit_is_431() {
    let app = taking();
    let proxy = Setup::before(&app)
        .defaults("limits: { request_head: 4KiB }")
        .start();
    let client = proxy.h2();
    let large = "x".repeat(5000);
    assert_eq!(client.get("/", &[("x-large", &large)]).status, 431);
    assert_eq!(client.get(&format!("/{large}"), &[]).status, 431);
    assert_eq!(client.get("/", &[("x-large", &large[..3000])]).status, 200);
    proxy.until("thinwire_responses_total", &[("status", "431")], |count| {
        count == 2.0
    });
}

#[test]
fn past_max_connections_clients_wait_until_one_leaves() {
    let app = taking();
    let proxy = Setup::before(&app)
        .top("network: { max_connections: 2, threads: 1 }")
        .start();
    let mut first = proxy.conn();
    let mut second = proxy.conn();
    first.get("/", &[]).expect(200);
    second.get("/", &[]).expect(200);
    let mut third = Conn::open(proxy.addr(0));
    third.request("GET", "/third", &[], b"");
    // Those that are in are served all the same.
    for _ in 0..3 {
        first.get("/", &[]).expect(200);
        second.get("/", &[]).expect(200);
    }
    assert!(
        app.requests()
            .iter()
            .all(|seen| !seen.head.line.contains("third"))
    );
    drop(first);
    third.reply().expect(200);
}

#[test]
fn an_idle_client_is_closed_after_keep_alive_and_a_busy_one_is_not() {
    let app = Origin::start(|call| {
        call.pause(Duration::from_millis(1000));
        call.answer(200, &[], b"fine")
    });
    let proxy = Setup::before(&app)
        .top("network: { keep_alive: 400ms }")
        .start();
    let mut fresh = proxy.conn();
    assert!(fresh.closed().is_empty(), "it never said a word");
    let mut conn = proxy.conn();
    conn.get("/", &[]).expect(200);
    assert!(conn.closed().is_empty());
    let client = proxy.h2();
    client.get("/", &[]).expect(200);
    eventually("the h2 connection to be closed", || {
        (proxy.metrics().sum("thinwire_connections", &[]) == 0.0).then_some(())
    });
}

#[test]
fn a_client_that_takes_nothing_is_cut_off() {
    let left = Signal::new();
    let seen = left.clone();
    let app = Origin::start(move |call| {
        call.chunked(200, &[("Content-Type", "image/png")])?;
        let piece = vec![0; 64 * 1024];
        while call.chunk(&piece).is_ok() {}
        seen.fire();
        Ok(())
    });
    let proxy = Setup::before(&app).top("network: { send: 300ms }").start();
    let mut conn = proxy.conn();
    conn.request("GET", "/x", &[], b"");
    left.wait();
    assert_eq!(proxy.access("/x")["ended_by"], "client");
    drop(conn);
}

#[test]
fn an_h2_client_has_so_many_streams_at_once() {
    let go = Signal::new();
    let held = go.clone();
    let app = Origin::start(move |call| {
        call.wait(&held);
        call.answer(200, &[], b"fine")
    });
    let proxy = Setup::before(&app)
        .top("network: { max_streams: 3 }")
        .start();
    let client = proxy.h2();
    // The server's word on it comes with its settings.
    let mut streams = vec![client.start("GET", "/", &[], true)];
    eventually("the first", || (app.requests().len() == 1).then_some(()));
    streams.extend((0..2).map(|_| client.start("GET", "/", &[], true)));
    eventually("three", || (app.requests().len() == 3).then_some(()));
    let more = std::thread::spawn(move || client.get("/fourth", &[]).status);
    assert_eq!(app.requests().len(), 3);
    go.fire();
    for stream in &mut streams {
        stream.reply().expect(200);
    }
    assert_eq!(more.join().expect("an answer"), 200);
}
