//! The way out: what still finishes, what is closed, and how it ends.

use std::net::TcpStream;

use rustix::process::Signal as Unix;

use crate::support::{Ca, Conn, Origin, Proxy, Setup, Signal, eventually};

/// Sends a head and a piece, and the rest when the test says so.
fn held(go: &Signal) -> Origin {
    let go = go.clone();
    Origin::start(move |call| {
        if call.path() != "/held" {
            return call.answer(200, &[], b"fine");
        }
        call.raw_head(200, &[("Content-Length", "8")])?;
        call.send("first")?;
        call.wait(&go);
        call.send("end")
    })
}

/// Past `/ready` saying so, the drain has begun.
fn draining(proxy: &Proxy) {
    eventually("the drain", || {
        (proxy.admin("/ready").status == 503).then_some(())
    });
}

#[test]
fn a_running_download_finishes_and_nothing_new_begins() {
    let go = Signal::new();
    let app = held(&go);
    let mut proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.request("GET", "/held", &[], b"");
    let client = proxy.h2();
    let mut stream = client.start("GET", "/held", &[], true);
    let heads = (conn.head(), stream.head());
    proxy.signal(Unix::TERM);
    draining(&proxy);
    assert_eq!(proxy.admin("/live").status, 200);
    assert_eq!(proxy.metrics().sum("thinwire_requests_in_flight", &[]), 2.0);
    let addr = proxy.addr(0);
    eventually("the address to be closed", || {
        TcpStream::connect(addr).err()
    });
    assert!(proxy.process().is_running());
    go.fire();
    assert_eq!(conn.rest(heads.0).body, b"firstend");
    assert_eq!(stream.rest(heads.1).body, b"firstend");
    assert!(conn.closed().is_empty());
    assert!(proxy.process().exit().success());
    let lines = proxy.access_lines();
    assert!(
        lines.iter().all(|line| line["ended_by"].is_null()),
        "{lines:?}"
    );
    assert_eq!(lines.len(), 2, "written before the end");
    assert!(proxy.log().iter().any(|line| line.contains("drained")));
}

#[test]
fn an_answer_that_begins_while_draining_says_that_the_connection_ends() {
    let go = Signal::new();
    let wait = go.clone();
    let app = Origin::start(move |call| {
        call.wait(&wait);
        call.answer(200, &[], b"fine")
    });
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.request("GET", "/", &[], b"");
    let client = proxy.h2();
    let mut stream = client.start("GET", "/", &[], true);
    eventually("both", || (app.requests().len() == 2).then_some(()));
    proxy.signal(Unix::TERM);
    draining(&proxy);
    go.fire();
    let reply = conn.reply().expect(200);
    assert_eq!(reply.header("connection"), Some("close"));
    assert!(conn.closed().is_empty());
    assert_eq!(stream.reply().expect(200).body, b"fine");
    assert!(proxy.stop().success());
}

#[test]
fn idle_connections_of_every_kind_are_closed_at_once() {
    let (app, ca) = (Origin::answer(200, &[], "fine"), Ca::new());
    let pair = ca.issue(&["a.example"]);
    let tls = format!(
        "- address: 127.0.0.2:0\n  tls: {{ certificates: [{}] }}",
        pair.yaml()
    );
    let setup = Setup::before(&app).listen(&format!("- address: 127.0.0.1:0\n{tls}"));
    // Far longer than the test waits: nothing may have to time out.
    let patient = "drain: 10m\nnetwork: { tls_handshake: 10m, keep_alive: 10m }";
    let proxy = setup
        .defaults("timeouts: { request_head: 10m }")
        .top(patient)
        .start();
    let silent = proxy.conn();
    let mut used = proxy.conn();
    used.get("/", &[]).expect(200);
    let mut parked = proxy.conn();
    parked.get("/", &[]).expect(200);
    std::thread::sleep(std::time::Duration::from_millis(300));
    let client = proxy.h2();
    client.get("/", &[]).expect(200);
    let mut fresh = proxy.conn();
    fresh.get("/", &[]).expect(200);
    let no_handshake = Conn::open(proxy.addr(1));
    let mut over_tls = Conn::tls(proxy.addr(1), "a.example", &ca);
    over_tls.get("/", &[]).expect(200);
    // Speaks HTTP/2 and then nothing, not even the answer to a PING.
    let mut deaf = proxy.conn();
    deaf.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    deaf.read_until(b"\0\0\0\x04\x01\0\0\0\0");
    let mut begun = proxy.conn();
    begun.send("P");
    assert!(proxy.stop().success());
    for mut conn in [silent, used, parked, fresh, no_handshake, begun] {
        assert!(conn.closed().is_empty());
    }
}

#[test]
fn what_does_not_finish_in_time_is_cut() {
    let go = Signal::new();
    let app = held(&go);
    let mut proxy = Setup::before(&app).top("drain: 300ms").start();
    let mut conn = proxy.conn();
    conn.request("GET", "/held", &[], b"");
    let head = conn.head();
    proxy.signal(Unix::TERM);
    assert!(proxy.process().exit().success());
    let broken = conn.try_rest(head).expect_err("it cannot be complete");
    assert!(broken.was_cut(), "{broken}");
    proxy.wait_for_log("the warning", |line| {
        line.contains("did not finish in time")
    });
    go.fire();
}

#[test]
fn a_second_signal_ends_it_at_once() {
    for (first, second) in [
        (Unix::TERM, Unix::TERM),
        (Unix::INT, Unix::TERM),
        (Unix::TERM, Unix::INT),
    ] {
        let go = Signal::new();
        let app = held(&go);
        let mut proxy = Setup::before(&app).top("drain: 10m").start();
        let mut conn = proxy.conn();
        conn.request("GET", "/held", &[], b"");
        conn.head();
        proxy.signal(first);
        draining(&proxy);
        assert!(proxy.process().is_running());
        proxy.signal(second);
        proxy.process().exit();
        go.fire();
    }
}

#[test]
fn an_idle_proxy_leaves_at_once_on_either_signal() {
    let app = Origin::answer(200, &[], "fine");
    for signal in [Unix::TERM, Unix::INT] {
        let mut proxy = Setup::before(&app).top("drain: 10m").start();
        proxy.get("/", &[]).expect(200);
        proxy.signal(signal);
        assert_eq!(proxy.process().exit().code(), Some(0));
    }
}

#[test]
fn a_tunnel_goes_on_while_draining() {
    let app = Origin::start(|call| {
        call.raw_head(101, &[("Connection", "upgrade"), ("Upgrade", "websocket")])?;
        call.read_until("ping")?;
        std::io::Write::write_all(call.stream(), b"pong")
    });
    let mut proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.request(
        "GET",
        "/",
        &[("Connection", "upgrade"), ("Upgrade", "websocket")],
        b"",
    );
    conn.head();
    proxy.signal(Unix::TERM);
    draining(&proxy);
    conn.send("ping");
    assert_eq!(conn.read_until("pong"), b"pong");
    drop(conn);
    assert!(proxy.process().exit().success());
}
