//! Reaching the app: which server, which connection, what is tried again, and what a failure is.

use std::collections::HashSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use crate::support::setup::App;
use crate::support::{Call, Nowhere, Origin, Proxy, Reply, Setup, Signal, Uvicorn, eventually};

fn ok() -> Origin {
    Origin::answer(200, &[], "fine")
}

/// An app by its address alone.
struct At(String);

impl App for At {
    fn server(&self) -> String {
        self.0.clone()
    }
}

/// One network thread, so that one pool of connections.
fn one_thread(app: &impl App) -> Setup {
    Setup::before(app).top("network: { threads: 1 }")
}

/// A failure as the client sees it: short, in words, and nothing of what stands behind.
fn told(reply: &Reply, status: u16) {
    assert_eq!(reply.status, status);
    assert_eq!(
        reply.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    let text = reply.text();
    assert!(
        text.starts_with(&format!("{status} ")) && text.len() < 200,
        "{text}"
    );
    assert!(!text.contains("127.0.0.1"), "{text}");
}

/// The reason of this path's failure in the log, and who failed.
fn logged(proxy: &Proxy, path: &str, ended_by: &str, error: &str) {
    let line = proxy.access(path);
    assert_eq!(line["ended_by"], ended_by, "{line}");
    let said = line["error"].as_str().unwrap_or_default();
    assert!(said.contains(error), "{said}");
}

#[test]
fn round_robin_takes_the_servers_in_turn() {
    let apps = [ok(), ok(), ok()];
    let proxy = one_thread(&apps[0]).and(&apps[1]).and(&apps[2]);
    let proxy = proxy.upstream("balance: round_robin").start();
    for _ in 0..9 {
        proxy.get("/", &[]).expect(200);
    }
    for app in &apps {
        assert_eq!(app.requests().len(), 3);
    }
}

/// Holds `/held` until the test lets go.
fn holding(go: &Signal) -> Origin {
    let go = go.clone();
    Origin::start(move |call| {
        if call.path() == "/held" {
            call.wait(&go);
        }
        call.answer(200, &[], b"fine")
    })
}

#[test]
fn least_requests_spares_the_busy_server() {
    let go = Signal::new();
    let apps = [holding(&go), holding(&go)];
    let proxy = Setup::before(&apps[0])
        .and(&apps[1])
        .upstream("balance: least_requests")
        .start();
    let mut held = [proxy.conn(), proxy.conn()];
    held[0].request("GET", "/held", &[], b"");
    let busy = eventually("the first", || {
        apps.iter().position(|app| !app.requests().is_empty())
    });
    for _ in 0..6 {
        proxy.get("/", &[]).expect(200);
    }
    assert_eq!(
        apps[busy].requests().len(),
        1,
        "the busy one was asked again"
    );
    assert_eq!(apps[1 - busy].requests().len(), 6);
    // Held itself, the other is as busy.
    held[1].request("GET", "/held", &[], b"");
    eventually("the second", || {
        (apps[1 - busy].requests().len() == 7).then_some(())
    });
    go.fire();
    for conn in &mut held {
        conn.reply().expect(200);
    }
}

#[test]
fn a_server_that_refuses_is_passed_over_whatever_the_request_is() {
    let app = ok();
    let gone = [Nowhere::reserve(), Nowhere::reserve()];
    let proxy = Setup::before(&gone[0]).and(&app).and(&gone[1]);
    let proxy = proxy.upstream("balance: round_robin").start();
    for _ in 0..6 {
        proxy.ask("POST", "/", &[], b"body").expect(200);
        assert_eq!(app.last().body, b"body");
    }
    let refused = [("outcome", "connect_failed")];
    assert!(
        proxy
            .metrics()
            .sum("thinwire_upstream_requests_total", &refused)
            >= 2.0
    );
}

#[test]
fn connections_are_kept_and_used_again() {
    let app = ok();
    let proxy = one_thread(&app).start();
    for _ in 0..5 {
        proxy.get("/", &[]).expect(200);
        proxy.h2().get("/", &[]).expect(200);
    }
    assert_eq!(app.accepted(), 1);
    // Not those that the app will close.
    let app = Origin::answer(200, &[("Connection", "close")], "fine");
    let proxy = one_thread(&app).start();
    for _ in 0..3 {
        proxy.get("/", &[]).expect(200);
    }
    assert_eq!(app.accepted(), 3);
}

#[test]
fn idle_connections_are_closed_by_the_proxy_first() {
    let app = ok();
    let proxy = one_thread(&app)
        .upstream("timeouts: { idle: 100ms }")
        .start();
    proxy.get("/", &[]).expect(200);
    eventually("the idle connection to be closed", || {
        (app.open() == 0).then_some(())
    });
    proxy.get("/", &[]).expect(200);
    assert_eq!(app.accepted(), 2);
}

/// Answers the first request of each connection; at the second it hangs up without a word.
fn forgetful(fail: &'static str) -> Origin {
    let known = std::sync::Mutex::new(HashSet::new());
    Origin::start(move |call: &mut Call<'_>| {
        call.body()?;
        if !known.lock().unwrap().insert(call.connection()) {
            match fail {
                "reset" => return call.reset(),
                "half" => call.send("HTTP/1.1 200 OK\r\nX-H")?,
                _ => {}
            }
            return call.close();
        }
        call.answer(200, &[], b"fine")
    })
}

#[test]
fn what_is_safe_to_repeat_is_tried_once_more_on_a_fresh_connection() {
    for fail in ["close", "reset"] {
        for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"] {
            let app = forgetful(fail);
            let proxy = one_thread(&app).start();
            proxy.get("/warm", &[]).expect(200);
            proxy.ask(method, "/again", &[], b"").expect(200);
            let asked = app
                .requests()
                .iter()
                .filter(|seen| seen.head.line.contains("/again"))
                .count();
            assert_eq!((asked, app.accepted()), (2, 2), "{method} after a {fail}");
            let retried = [("outcome", "retried")];
            assert_eq!(
                proxy
                    .metrics()
                    .sum("thinwire_upstream_requests_total", &retried),
                1.0
            );
        }
    }
}

#[test]
fn what_the_app_may_have_acted_on_is_never_sent_twice() {
    for (fail, method, body) in [
        ("close", "POST", &b""[..]),
        ("close", "POST", b"body"),
        ("reset", "PATCH", b"body"),
        // The answer had begun.
        ("half", "GET", b""),
    ] {
        let app = forgetful(fail);
        let proxy = one_thread(&app).start();
        proxy.get("/warm", &[]).expect(200);
        let reply = proxy.ask(method, "/once", &[], body);
        told(&reply, 502);
        assert_eq!(app.requests().len(), 2, "{method} after a {fail}");
        logged(&proxy, "/once", "upstream", "");
    }
}

#[test]
fn a_fresh_connection_that_fails_is_not_tried_again() {
    let app = Origin::start(|call| call.close());
    let proxy = Proxy::before(&app);
    told(&proxy.get("/x", &[]), 502);
    assert_eq!(app.requests().len(), 1);
    logged(
        &proxy,
        "/x",
        "upstream",
        "closed the connection without an answer",
    );
    let none = forgetful("close");
    let proxy = one_thread(&none).upstream("retries: 0").start();
    proxy.get("/warm", &[]).expect(200);
    told(&proxy.get("/x", &[]), 502);
}

#[test]
fn an_app_that_is_not_there_is_a_502() {
    let nowhere = Nowhere::reserve();
    let proxy = Proxy::before(&nowhere);
    let reply = proxy.get("/x", &[("Accept-Encoding", "gzip")]);
    told(&reply, 502);
    assert_eq!(reply.header("retry-after"), None);
    told(&proxy.h2().get("/y", &[]), 502);
    logged(&proxy, "/x", "upstream", "Connection refused");
    let labels = [
        ("status", "502"),
        ("reason", "status"),
        ("coding", "identity"),
    ];
    proxy.until("thinwire_responses_total", &labels, |count| count == 2.0);
}

#[test]
fn a_name_is_resolved_and_one_that_does_not_is_a_502() {
    let app = ok();
    let named = At(format!("http://localhost:{}", app.addr().port()));
    let proxy = Proxy::before(&named);
    proxy.get("/", &[("Host", "a")]).expect(200);
    assert_eq!(proxy.access("/")["upstream"], named.0);
    let proxy = Proxy::before(&At("http://nothing.invalid:80".to_owned()));
    told(&proxy.get("/x", &[]), 502);
    logged(&proxy, "/x", "upstream", "does not resolve");
}

/// An address whose queue of connections is full: further ones are not answered at all.
fn deaf() -> (At, impl Sized) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket
        .bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())
        .unwrap();
    socket.listen(0).unwrap();
    let addr = socket.local_addr().unwrap();
    let connect = |_| {
        let client =
            socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        client.set_nonblocking(true).unwrap();
        let _ = client.connect(&addr);
        client
    };
    let queue: Vec<_> = (0..4).map(connect).collect();
    let server = At(format!("http://{}", addr.as_socket().unwrap()));
    (server, (socket, queue))
}

#[test]
fn an_app_that_does_not_accept_in_time_is_a_504() {
    let (app, _held) = deaf();
    let proxy = Setup::before(&app)
        .upstream("timeouts: { connect: 200ms }")
        .start();
    told(&proxy.get("/x", &[]), 504);
    logged(&proxy, "/x", "upstream", "did not accept in time");
}

#[test]
fn an_app_that_does_not_answer_in_time_is_a_504_and_its_connection_is_closed() {
    let left = Signal::new();
    let seen = left.clone();
    let app = Origin::start(move |call| {
        call.gone()?;
        seen.fire();
        Ok(())
    });
    let proxy = Setup::before(&app)
        .upstream("timeouts: { response_head: 200ms }")
        .start();
    told(&proxy.get("/x", &[]), 504);
    left.wait();
    logged(&proxy, "/x", "upstream", "did not answer in time");
    let labels = [("outcome", "timed_out")];
    assert_eq!(
        proxy
            .metrics()
            .sum("thinwire_upstream_requests_total", &labels),
        1.0
    );
    // An upload takes as long as its client takes, and the time for the answer begins after it.
    let app = Origin::start(|call| {
        call.body()?;
        call.answer(200, &[], b"fine")
    });
    let proxy = Setup::before(&app)
        .upstream("timeouts: { response_head: 500ms }")
        .start();
    let mut conn = proxy.conn();
    conn.request("POST", "/", &[("Content-Length", "3")], b"");
    for byte in [b"a", b"b", b"c"] {
        std::thread::sleep(Duration::from_millis(300));
        conn.send(byte);
    }
    conn.reply().expect(200);
}

#[test]
fn past_max_connections_requests_wait_and_then_are_503() {
    let go = Signal::new();
    let app = holding(&go);
    let limits = "max_connections: 2\ntimeouts: { connect: 300ms }";
    let proxy = Setup::before(&app).upstream(limits).start();
    let mut held = [proxy.conn(), proxy.conn()];
    for conn in &mut held {
        conn.request("GET", "/held", &[], b"");
    }
    eventually("both to be held", || {
        (app.requests().len() == 2).then_some(())
    });
    let reply = proxy.get("/x", &[]);
    told(&reply, 503);
    assert_eq!(reply.header("retry-after"), Some("1"));
    logged(&proxy, "/x", "proxy", "busy");
    assert_eq!(app.accepted(), 2);
    go.fire();
    for conn in &mut held {
        conn.reply().expect(200);
    }
    proxy.get("/", &[]).expect(200);
    assert_eq!(app.accepted(), 2, "what was held is used again");
}

#[test]
fn who_waits_for_a_connection_gets_the_one_that_becomes_free() {
    let (asked, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, top) = (Arc::clone(&asked), Arc::clone(&most));
    let app = Origin::start(move |call| {
        top.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        call.pause(Duration::from_millis(5));
        now.fetch_sub(1, Ordering::SeqCst);
        call.answer(200, &[], b"fine")
    });
    let limits = "max_connections: 3\ntimeouts: { connect: 20s }";
    let proxy = Setup::before(&app).upstream(limits).start();
    let start = Barrier::new(20);
    std::thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                let mut conn = proxy.conn();
                start.wait();
                for _ in 0..5 {
                    conn.get("/", &[]).expect(200);
                }
            });
        }
    });
    assert!(most.load(Ordering::SeqCst) <= 3);
    assert!(app.accepted() <= 3, "{} connections", app.accepted());
    assert_eq!(app.requests().len(), 100);
}

#[test]
fn an_answer_that_the_client_leaves_frees_its_connection() {
    let go = Signal::new();
    let app = holding(&go);
    let limits = "max_connections: 1\ntimeouts: { connect: 20s }";
    let proxy = Setup::before(&app).upstream(limits).start();
    let mut conn = proxy.conn();
    conn.request("GET", "/held", &[], b"");
    eventually("it to be held", || app.requests().pop());
    conn.reset();
    proxy.get("/", &[]).expect(200);
    go.fire();
}

#[test]
fn a_uvicorn_that_closes_idle_connections_is_never_met_half_closed() {
    let app = Uvicorn::with("app", &["--timeout-keep-alive", "1"]);
    // The contract's 4 s to uvicorn's 5 s, scaled down.
    let proxy = one_thread(&app)
        .upstream("timeouts: { idle: 800ms }")
        .start();
    let mut conn = proxy.conn();
    // Around the moments at which either side closes.
    for pause in [0, 700, 780, 800, 820, 900, 980, 1000, 1020, 1200] {
        std::thread::sleep(Duration::from_millis(pause));
        let reply = conn.ask("POST", "/upload", &[], b"x");
        assert_eq!(reply.status, 200, "after {pause} ms: {}", reply.text());
    }
}

#[test]
fn a_uvicorn_with_its_defaults_left_idle_never_yields_a_502() {
    let app = Uvicorn::with("app", &["--timeout-keep-alive", "5"]);
    let proxy = one_thread(&app).start();
    for pause in [0, 3900, 1100, 5000] {
        std::thread::sleep(Duration::from_millis(pause));
        proxy.ask("POST", "/upload", &[], b"x").expect(200);
    }
}

#[test]
fn an_answer_before_the_upload_is_complete_is_passed_on() {
    let app = Origin::start(|call| {
        call.piece()?;
        call.answer(413, &[("Connection", "close")], b"too much for me")?;
        call.close()
    });
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.request("POST", "/", &[("Transfer-Encoding", "chunked")], b"");
    conn.chunk(b"some");
    assert_eq!(conn.reply().expect(413).body, b"too much for me");
    let client = proxy.h2();
    let mut stream = client.start("POST", "/", &[], false);
    stream.send(b"some", false);
    assert_eq!(stream.reply().expect(413).body, b"too much for me");
}
