//! A client's connection over time: idle and parked, pipelined, half-closed, left.

use std::io::Write as _;
use std::time::Duration;

use crate::support::{Ca, Conn, Origin, Proxy, Setup, Signal, big, eventually, folder};

/// Longer than it takes until a connection is parked.
const PARKED: Duration = Duration::from_millis(1200);

/// Answers with what it was sent, or with the target.
fn echo() -> Origin {
    Origin::start(|call| {
        let body = call.body()?;
        let target = call.target().to_owned();
        call.answer(
            200,
            &[],
            if body.is_empty() {
                target.as_bytes()
            } else {
                &body
            },
        )
    })
}

#[test]
fn a_connection_serves_again_after_it_was_idle() {
    let app = echo();
    let (ca, path) = (Ca::new(), folder("edge").join("http.sock"));
    let pair = ca.issue(&["a.example"]);
    let tls = format!(
        "- address: 127.0.0.2:0\n  tls: {{ certificates: [{}] }}",
        pair.yaml()
    );
    let unix = format!("- address: \"unix:{}\"", path.display());
    let listen = format!("- address: 127.0.0.1:0\n{tls}\n{unix}");
    let proxy = Setup::before(&app).listen(&listen).start();
    let mut conns = [
        proxy.conn(),
        Conn::tls(proxy.addr(1), "a.example", &ca),
        Conn::unix(&path),
    ];
    let client = proxy.h2();
    for turn in 0..3 {
        for conn in &mut conns {
            // A whole request, a body, and two at once.
            let target = format!("/{turn}");
            assert_eq!(conn.get(&target, &[]).expect(200).body, target.as_bytes());
            assert_eq!(conn.ask("POST", "/", &[], &big()).expect(200).body, big());
            conn.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(conn.reply().body, b"/a");
            assert_eq!(conn.reply().body, b"/b");
        }
        assert_eq!(client.get("/x", &[]).body, b"/x");
        std::thread::sleep(PARKED);
    }
    // It wakes to a head in pieces as well.
    for conn in &mut conns {
        conn.send("GET /pieces HT");
        std::thread::sleep(Duration::from_millis(200));
        conn.send("TP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(conn.reply().body, b"/pieces");
    }
}

#[test]
fn a_parked_connection_that_wakes_to_nonsense_is_refused_as_any_other() {
    let app = echo();
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.get("/", &[]).expect(200);
    std::thread::sleep(PARKED);
    conn.send("GET / HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n");
    assert_eq!(conn.reply().status, 400);
    assert!(conn.closed().is_empty());
}

#[test]
fn pipelined_requests_are_answered_in_their_order() {
    let app = echo();
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    let one = |number: usize| match number % 3 {
        0 => format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n"),
        1 => format!("POST /{number} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n{number:05}"),
        _ => format!(
            "POST /{number} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{number:05}\r\n0\r\n\r\n"
        ),
    };
    let all: String = (0..50).map(one).collect();
    // Cut where it hurts.
    for piece in all.as_bytes().chunks(37) {
        conn.send(piece);
    }
    for number in 0..50 {
        let expected = if number % 3 == 0 {
            format!("/{number}")
        } else {
            format!("{number:05}")
        };
        assert_eq!(conn.reply().expect(200).body, expected.as_bytes());
    }
}

#[test]
fn connection_close_is_the_client_s_last_word() {
    let app = echo();
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    let reply = conn.get("/", &[("Connection", "close")]).expect(200);
    assert_eq!(reply.header("connection"), Some("close"));
    assert!(conn.closed().is_empty());
    let mut old = proxy.conn();
    old.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    let reply = old.reply().expect(200);
    assert_eq!(reply.header("connection"), Some("keep-alive"));
    old.send("GET / HTTP/1.0\r\n\r\n");
    old.reply().expect(200);
    assert!(old.closed().is_empty());
}

/// Takes its time over `/slow`.
fn slow(go: &Signal) -> Origin {
    let go = go.clone();
    Origin::start(move |call| {
        call.body()?;
        if call.path() == "/slow" {
            call.wait(&go);
        }
        call.answer(200, &[("Content-Type", "application/json")], &big())
    })
}

#[test]
fn a_client_that_ends_its_side_still_gets_its_answers() {
    let go = Signal::new();
    let (app, ca, path) = (slow(&go), Ca::new(), folder("edge").join("http.sock"));
    let unix = format!("- address: \"unix:{}\"", path.display());
    let pair = ca.issue(&["a.example"]);
    let tls = format!(
        "- address: 127.0.0.2:0\n  tls: {{ certificates: [{}] }}",
        pair.yaml()
    );
    let proxy = Setup::before(&app)
        .listen(&format!("- address: 127.0.0.1:0\n{unix}\n{tls}"))
        .start();
    let get = "GET /slow HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";
    let post = "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody";
    let old = "GET /slow HTTP/1.0\r\n\r\n";
    let mut conns = Vec::new();
    for request in [
        get.to_owned(),
        post.to_owned(),
        old.to_owned(),
        get.repeat(3),
    ] {
        for mut conn in [proxy.conn(), Conn::unix(&path)] {
            conn.send(&request);
            conn.stream().half_close().unwrap();
            conns.push((conn, request.matches("HTTP/1").count()));
        }
    }
    // Long enough for whoever would give up on them.
    std::thread::sleep(PARKED);
    go.fire();
    for (mut conn, answers) in conns {
        for _ in 0..answers {
            assert_eq!(conn.reply().expect(200).decoded(), big());
        }
        assert!(conn.closed().is_empty(), "nothing more can come");
    }
    assert!(
        proxy
            .access_lines()
            .iter()
            .all(|line| line["ended_by"].is_null())
    );
}

#[test]
fn a_client_that_ends_its_side_within_an_answer_gets_the_rest() {
    let (begun, go) = (Signal::new(), Signal::new());
    let (told, wait) = (begun.clone(), go.clone());
    let app = Origin::start(move |call| {
        call.chunked(200, &[("Content-Type", "text/event-stream")])?;
        call.chunk("data: 1\n\n")?;
        told.fire();
        call.wait(&wait);
        call.chunk("data: 2\n\n")?;
        call.end()
    });
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.request("GET", "/", &[("Accept-Encoding", "gzip")], b"");
    let head = conn.head();
    begun.wait();
    conn.stream().half_close().unwrap();
    std::thread::sleep(PARKED);
    go.fire();
    assert_eq!(conn.rest(head).decoded(), b"data: 1\n\ndata: 2\n\n");
}

/// Waits for the client to leave before it answers.
fn waiting(left: &Signal) -> Origin {
    let left = left.clone();
    Origin::start(move |call| {
        call.gone()?;
        left.fire();
        Ok(())
    })
}

#[test]
fn a_client_that_closes_while_its_answer_is_computed_is_noticed() {
    let (ca, path) = (Ca::new(), folder("edge").join("http.sock"));
    let pair = ca.issue(&["a.example"]);
    let tls = format!(
        "- address: 127.0.0.2:0\n  tls: {{ certificates: [{}] }}",
        pair.yaml()
    );
    let unix = format!("- address: \"unix:{}\"", path.display());
    for kind in 0..3 {
        let left = Signal::new();
        let app = waiting(&left);
        let listen = format!("- address: 127.0.0.1:0\n{tls}\n{unix}");
        let proxy = Setup::before(&app).listen(&listen).start();
        let mut conn = match kind {
            0 => proxy.conn(),
            1 => Conn::tls(proxy.addr(1), "a.example", &ca),
            _ => Conn::unix(&path),
        };
        conn.request("GET", "/x", &[], b"");
        eventually("the request", || app.requests().pop());
        // In order, not by a reset: what it sends looks as if it had only ended its side.
        conn.stream().close().unwrap();
        drop(conn);
        left.wait();
        assert_eq!(proxy.access("/x")["ended_by"], "client");
        proxy.until("thinwire_connections", &[], |count| count == 0.0);
    }
}

#[test]
fn a_client_that_vanishes_within_an_answer_is_noticed_by_its_reset() {
    let left = Signal::new();
    let seen = left.clone();
    let app = Origin::start(move |call| {
        call.chunked(200, &[("Content-Type", "text/event-stream")])?;
        while call.chunk("data: x\n\n").is_ok() {
            call.pause(Duration::from_millis(10));
        }
        seen.fire();
        Ok(())
    });
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.request("GET", "/x", &[], b"");
    conn.head();
    drop(conn);
    left.wait();
    assert_eq!(proxy.access("/x")["ended_by"], "client");
}

#[test]
fn an_upload_whose_client_ends_its_side_too_early_is_none() {
    let app = echo();
    let proxy = Proxy::before(&app);
    for request in [
        "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf",
        "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ] {
        let mut conn = proxy.conn();
        conn.send(request);
        conn.stream().half_close().unwrap();
        let said = conn.closed();
        assert!(
            !said.starts_with(b"HTTP/1.1 200"),
            "{}",
            String::from_utf8_lossy(&said)
        );
        // Not even half of it looks whole to the app.
        eventually("its end", || (app.open() == 0).then_some(()));
        assert!(app.requests().iter().all(|seen| !seen.whole));
    }
}

#[test]
fn what_a_client_sends_while_it_waits_is_its_next_request() {
    let go = Signal::new();
    let app = slow(&go);
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.request("GET", "/slow", &[], b"");
    eventually("the request", || app.requests().pop());
    conn.stream()
        .write_all(b"GET /next HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    go.fire();
    assert_eq!(conn.reply().expect(200).body, big());
    assert_eq!(conn.reply().expect(200).body, big());
    assert_eq!(app.last().head.line, "GET /next HTTP/1.1");
}
