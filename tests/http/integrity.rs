//! A body is exact or visibly broken, whoever broke it: never cut and clean-looking, never plain
//! under a coding. And what says something of the bytes says it of those that were sent.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io;

use ::h2::Reason;

use crate::support::origin::Call;
use crate::support::wire::Framing;
use crate::support::{
    Broken, Decoder, H2Call, H2Origin, Origin, Proxy, Reply, Setup, Signal, big, eventually,
    json_of,
};

const CODINGS: [&str; 4] = ["gzip", "br", "zstd", "identity"];
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// Sends a part of a body in the framing that the path begins with, waits for the test's signal that
/// `x-turn` names, and breaks off as the path ends.
fn breaking(call: &mut Call<'_>, turns: &[Signal]) -> io::Result<()> {
    let path = call.path().to_owned();
    let part = json_of(PART);
    if path.starts_with("/length") {
        call.raw_head(200, &[JSON, ("Content-Length", "5000000")])?;
        call.send(&part)?;
    } else if path.starts_with("/close") {
        call.raw_head(200, &[JSON, ("Connection", "close")])?;
        call.send(&part)?;
    } else {
        call.chunked(200, &[JSON])?;
        call.chunk(&part)?;
    }
    if let Some(turn) = call.head.field("x-turn") {
        call.wait(&turns[turn.parse::<usize>().unwrap()]);
    }
    match path.rsplit('/').next() {
        Some("reset") => call.reset(),
        Some("chunk") => {
            call.send("ff\r\nabc")?;
            call.close()
        }
        Some("size") => call.send("zz\r\n"),
        _ => call.close(),
    }
}

/// Bytes that an app sends before it breaks off.
const PART: usize = 40_000;

/// How apps break off. A body that ends with its connection can only be reset.
const BREAKS: [&str; 7] = [
    "/length/end",
    "/length/reset",
    "/chunked/end",
    "/chunked/reset",
    "/chunked/chunk",
    "/chunked/size",
    "/close/reset",
];

fn signals() -> Vec<Signal> {
    (0..BREAKS.len() * CODINGS.len())
        .map(|_| Signal::new())
        .collect()
}

fn breaking_app(turns: &[Signal]) -> Origin {
    let turns = turns.to_vec();
    Origin::start(move |call| breaking(call, &turns))
}

/// What came before the end is of the coding that was announced, as far as it goes.
fn still_coded(broken: &Broken, coding: &str) {
    let body = &broken.so_far.as_ref().expect("a head").body;
    let plain = Decoder::new(coding).push(body).expect("decodable so far");
    let known = plain.len().min(PART);
    assert!(json_of(PART)[..known] == plain[..known], "{coding}");
}

#[test]
fn a_body_that_the_app_cuts_is_cut_for_http1_clients() {
    let turns = signals();
    let app = breaking_app(&turns);
    let proxy = Proxy::before(&app);
    for (number, go) in turns.iter().enumerate() {
        let (path, coding) = (BREAKS[number / 4], CODINGS[number % 4]);
        let target = format!("{path}?{coding}");
        let mut conn = proxy.conn();
        let turn = number.to_string();
        let fields = [("Accept-Encoding", coding), ("X-Turn", turn.as_str())];
        conn.request("GET", &target, &fields, b"");
        let head = conn.head().expect(200);
        assert_eq!(head.coding(), coding, "{path}");
        go.fire();
        let broken = conn.try_rest(head).expect_err(&target);
        assert!(broken.was_cut(), "{target}: {broken}");
        still_coded(&broken, coding);
        let line = proxy.access(&target);
        assert_eq!(line["ended_by"], "upstream", "{line}");
    }
    proxy.until("thinwire_pool_jobs", &[], |jobs| jobs == 0.0);
}

#[test]
fn a_body_that_the_app_cuts_is_reset_for_http2_clients() {
    let turns = signals();
    let app = breaking_app(&turns);
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    for (number, go) in turns.iter().enumerate() {
        let (path, coding) = (BREAKS[number / 4], CODINGS[number % 4]);
        let turn = number.to_string();
        let fields = [("accept-encoding", coding), ("x-turn", turn.as_str())];
        let mut stream = client.start("GET", path, &fields, true);
        let head = stream.head().expect(200);
        assert_eq!(head.coding(), coding, "{path}");
        go.fire();
        let broken = stream.try_rest(head).expect_err(path);
        assert!(broken.was_cut(), "{path} {coding}: {broken}");
        // One stream's end is not the connection's.
        let reason = broken.reason();
        assert_eq!(reason, Some(Reason::INTERNAL_ERROR), "{path} {coding}");
        still_coded(&broken, coding);
    }
}

#[test]
fn a_body_that_the_app_cuts_is_a_reset_for_http10_clients() {
    let turns = signals();
    let app = breaking_app(&turns);
    let proxy = Proxy::before(&app);
    for (number, path) in BREAKS.into_iter().enumerate() {
        let mut conn = proxy.conn();
        conn.send(format!(
            "GET {path} HTTP/1.0\r\nAccept-Encoding: gzip\r\nX-Turn: {number}\r\n\r\n"
        ));
        let head = conn.head().expect(200);
        assert_eq!(head.coding(), "identity", "no length, no coding");
        let by_close = head.framing == Framing::Close;
        assert_eq!(by_close, !path.starts_with("/length"), "{path}");
        turns[number].fire();
        let broken = conn.try_rest(head).expect_err(path);
        let kind = broken.kind();
        assert_eq!(kind, Some(io::ErrorKind::ConnectionReset), "{path}");
    }
}

#[test]
fn a_body_that_breaks_off_before_the_head_was_sent_is_a_502() {
    let app = breaking_app(&[]);
    // So long a wait that the end comes within it.
    let proxy = Proxy::with(&app, "compress: { whole: { bytes: 8MiB, wait: 20s } }");
    let client = proxy.h2();
    for path in BREAKS {
        let reply = proxy.get(path, &[("Accept-Encoding", "gzip")]);
        assert_eq!((reply.status, reply.coding()), (502, "identity"), "{path}");
        assert!(reply.text().starts_with("502 Bad Gateway"), "{path}");
        let line = proxy.access(path);
        assert_eq!(
            (&line["status"], &line["ended_by"]),
            (&502.into(), &"upstream".into())
        );
        client.get(path, &[("accept-encoding", "br")]).expect(502);
    }
}

/// An app over h2c that sends some of a body, waits for the test, and ends its stream as the path
/// says.
fn h2_app(turns: &[Signal]) -> H2Origin {
    let turns = turns.to_vec();
    H2Origin::start(move |mut call: H2Call| {
        let turn = call.request.headers()["x-turn"].to_str().unwrap();
        let go = turns[turn.parse::<usize>().unwrap()].clone();
        async move {
            let path = call.path().to_owned();
            let fields = [
                ("content-type", "application/json"),
                ("content-length", "40000000"),
            ];
            let length = usize::from(path.starts_with("/length"));
            call.head(200, &fields[..=length], false)?;
            call.data(json_of(PART), false).await?;
            go.heard().await;
            call.reset(match path.rsplit('/').next() {
                Some("no_error") => Reason::NO_ERROR,
                Some("calm") => Reason::ENHANCE_YOUR_CALM,
                _ => Reason::CANCEL,
            });
            Ok(())
        }
    })
}

#[test]
fn an_h2_stream_reset_before_its_end_is_cut_whatever_its_reason() {
    let paths = ["/no_error", "/length/no_error", "/cancel", "/calm"];
    let turns = signals();
    let app = h2_app(&turns);
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    for (number, path) in paths.iter().flat_map(|path| [path; 4]).enumerate() {
        let coding = CODINGS[number % 4];
        let turn = number.to_string();
        let fields = [("accept-encoding", coding), ("x-turn", turn.as_str())];
        let (mut conn, target) = (proxy.conn(), format!("{path}?{coding}"));
        conn.request("GET", &target, &fields, b"");
        let mut stream = client.start("GET", &target, &fields, true);
        let (head, other) = (conn.head().expect(200), stream.head().expect(200));
        turns[number].fire();
        let broken = conn.try_rest(head).expect_err(path);
        assert!(broken.was_cut(), "{target}: {broken}");
        still_coded(&broken, coding);
        let broken = stream.try_rest(other).expect_err(path);
        assert!(broken.was_cut(), "{target}: {broken}");
        let reason = broken.reason().expect("a reason");
        assert_ne!(reason, Reason::NO_ERROR, "{target}");
        // What the app gave as its reason is passed on.
        assert_eq!(reason == Reason::ENHANCE_YOUR_CALM, *path == "/calm");
        let line = proxy.access(&target);
        assert_eq!(line["ended_by"], "upstream", "{line}");
    }
}

#[test]
fn an_h2_answer_that_is_complete_stays_so_when_its_request_is_reset() {
    // RFC 9113 section 8.1: an app that wants no more of the upload.
    let app = H2Origin::start(async |mut call: H2Call| {
        let length = big().len().to_string();
        let json = ("content-type", "application/json");
        match call.path() {
            "/length" => call.head(200, &[json, ("content-length", &length)], false)?,
            _ => call.head(200, &[json], false)?,
        }
        if call.path() == "/trailers" {
            call.data(big(), false).await?;
            call.end_with(&[("x-sum", "1")])?;
        } else {
            call.data(big(), true).await?;
        }
        // Leaving the upload unread: the stream is reset with NO_ERROR behind the answer.
        Ok(())
    });
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    for path in ["/length", "/open", "/trailers"] {
        for coding in CODINGS {
            let fields = [("accept-encoding", coding)];
            let mut stream = client.start("POST", path, &fields, false);
            // The answer may be complete before this is sent, and the stream over.
            let _ = stream.try_send(b"the beginning of an upload", false);
            let reply = stream.reply().expect(200);
            assert_eq!(reply.coding(), coding, "{path}");
            assert!(reply.decoded() == big(), "{path} {coding}");
        }
    }
}

#[test]
fn an_upload_over_h2_that_is_reset_is_no_complete_one_for_the_app() {
    let app = Origin::start(|call| {
        call.body()?;
        call.answer(200, &[], b"complete")
    });
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    for (reason, path) in [
        (Reason::NO_ERROR, "/no_error"),
        (Reason::CANCEL, "/cancel"),
        (Reason::INTERNAL_ERROR, "/internal"),
    ] {
        for round in 0..10 {
            let target = format!("{path}?{round}");
            let mut stream = client.start("POST", &target, &[], false);
            stream.send(b"a part", false);
            eventually("the part at the app", || {
                let seen = app.requests().into_iter().next_back()?;
                (seen.head.line.contains(&target) && seen.body == b"a part").then_some(())
            });
            stream.reset(reason);
            let line = proxy.access(&target);
            assert_eq!(line["ended_by"], "client", "{line}");
        }
    }
    eventually("the app's connections to end", || {
        (app.open() == 0).then_some(())
    });
    assert!(app.requests().iter().all(|seen| !seen.whole));
}

const DIGESTS: [(&str, &str); 4] = [
    ("Content-MD5", "Q2hlY2sgSW50ZWdyaXR5IQ=="),
    (
        "Content-Digest",
        "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:",
    ),
    (
        "Repr-Digest",
        "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:",
    ),
    (
        "Digest",
        "sha-256=X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=",
    ),
];

#[test]
fn digests_of_the_plain_bytes_do_not_go_with_coded_ones() {
    let app = Origin::start(|call| {
        let fields = [&[JSON], &DIGESTS[..]].concat();
        if call.path() == "/whole" {
            return call.answer(200, &fields, &big());
        }
        call.chunked(
            200,
            &[&fields[..], &[("Trailer", "Content-Digest")]].concat(),
        )?;
        call.chunk(big())?;
        call.end_with(&[
            ("Content-Digest", DIGESTS[1].1),
            ("X-Sum", "1"),
            ("ETag", "\"a\""),
        ])
    });
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    for path in ["/whole", "/stream"] {
        for coding in CODINGS {
            let fields = [("accept-encoding", coding), ("te", "trailers")];
            let reply = client.get(path, &fields);
            assert_eq!(reply.coding(), coding);
            assert!(reply.decoded() == big());
            for (name, value) in DIGESTS {
                let kept = (coding == "identity").then_some(value);
                assert_eq!(reply.header(name), kept, "{path} {coding} {name}");
            }
            if path == "/stream" {
                let kept = (coding == "identity").then_some(DIGESTS[1].1);
                assert_eq!(reply.trailer("content-digest"), kept, "{coding}");
                assert_eq!(reply.trailer("x-sum"), Some("1"));
                let tag = reply.trailer("etag").unwrap();
                assert_eq!(tag == "\"a\"", coding == "identity", "{tag}");
            }
        }
    }
}

#[test]
fn a_body_that_is_not_coded_keeps_its_digests() {
    let app = Origin::answer(
        200,
        &[&[("Content-Type", "image/png")], &DIGESTS[..]].concat(),
        big(),
    );
    let proxy = Proxy::before(&app);
    let reply = proxy.get("/", &[("Accept-Encoding", "gzip, br, zstd")]);
    assert_eq!(reply.coding(), "identity");
    for (name, value) in DIGESTS {
        assert_eq!(reply.header(name), Some(value));
    }
}

fn old(proxy: &Proxy, path: &str) -> Reply {
    let mut conn = proxy.conn();
    conn.send(format!(
        "GET {path} HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n"
    ));
    conn.reply().expect(200)
}

#[test]
fn an_http10_client_gets_a_coding_only_with_its_length() {
    let go = Signal::new();
    let heard = go.clone();
    let app = Origin::start(move |call| {
        if call.path() == "/whole" {
            return call.answer(200, &[JSON], &big());
        }
        let long = call.path() == "/long";
        call.chunked(200, &[JSON])?;
        call.chunk(big())?;
        if !long {
            call.wait(&heard);
        }
        for _ in 0..if long { 40 } else { 0 } {
            call.chunk(big())?;
        }
        call.end()
    });
    let proxy = Proxy::before(&app);
    let whole = old(&proxy, "/whole");
    assert_eq!(whole.coding(), "gzip");
    assert_eq!(whole.framing, Framing::Length(whole.body.len() as u64));
    assert!(whole.decoded() == big());

    // Longer than what is coded in one piece.
    let long = old(&proxy, "/long");
    assert_eq!((long.coding(), long.framing), ("identity", Framing::Close));
    assert!(long.body == big().repeat(41));
    assert_eq!(proxy.access("/long")["reason"], "version");

    let mut conn = proxy.conn();
    conn.send("GET /pausing HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n");
    let head = conn.head();
    go.fire();
    assert_eq!((head.coding(), head.framing), ("identity", Framing::Close));
    assert!(conn.rest(head).body == big());
    assert_eq!(proxy.access("/pausing")["reason"], "version");
}

#[test]
fn connect_is_not_served() {
    let app = Origin::json(big());
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.send("CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n");
    let reply = conn.reply().expect(405);
    assert!(reply.header("allow").is_some());
    let mut conn = proxy.conn();
    conn.send("CONNECT example.com:443 HTTP/1.0\r\n\r\n");
    conn.reply().expect(405);

    let request = http::Request::connect("example.com:443").body(()).unwrap();
    let mut stream = proxy.h2().begin(request, false);
    stream.reply().expect(405);
    let refused = [("status", "405"), ("route", "-")];
    proxy.until("thinwire_responses_total", &refused, |sum| sum == 3.0);
    assert_eq!(app.accepted(), 0);
}

#[test]
fn an_absolute_target_decides_on_the_host() {
    let app = Origin::json("{}");
    let routes = "- name: other\n  match: { host: [other.test] }\n  upstream: app\n  \
                  headers: { response: { set: { x-route: other } } }";
    let proxy = Setup::before(&app).routes_before(routes).start();
    let mut conn = proxy.conn();
    conn.send("GET http://other.test/a?b HTTP/1.1\r\nHost: one.test\r\n\r\n");
    let reply = conn.reply().expect(200);
    assert_eq!(reply.header("x-route"), Some("other"));
    let seen = app.last().head;
    assert_eq!(seen.line, "GET /a?b HTTP/1.1");
    assert_eq!(seen.field("host"), Some("other.test"));
    conn.send("GET http://one.test HTTP/1.1\r\nHost: other.test\r\n\r\n");
    assert_eq!(conn.reply().expect(200).header("x-route"), None);
    let seen = app.last().head;
    assert_eq!(seen.line, "GET / HTTP/1.1");
    assert_eq!(seen.field("host"), Some("one.test"));
    let line = proxy.access("/a?b");
    assert_eq!(line["host"], "other.test");
}

#[test]
fn nothing_reaches_the_app_of_an_upgrade_before_its_101() {
    let app = Origin::start(|call| {
        if call.path() == "/declines" {
            return call.answer(200, &[], b"no");
        }
        call.raw_head(101, &[("Upgrade", "chat"), ("Connection", "Upgrade")])?;
        let said = call.read_until("early")?;
        call.send([b"heard ", said.as_slice()].concat())
    });
    // Each network thread keeps its own connections to the app.
    let setup = Setup::before(&app)
        .top("network: { threads: 1 }")
        .route("upgrades: [chat]");
    let proxy = setup.start();
    let ask = |path: &str| {
        let mut conn = proxy.conn();
        conn.send(format!(
            "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n\x01early"
        ));
        conn
    };
    for round in 0..5 {
        // Declined, the bytes behind the head are a request of the client's, and no valid one.
        let mut conn = ask("/declines");
        conn.reply().expect(200);
        conn.reply().expect(400);
        // The app's connection carries the next exchange: nothing of them went there.
        proxy.get("/declines", &[]).expect(200);
        assert_eq!(app.accepted(), 1, "{round}");
    }
    let mut conn = ask("/agrees");
    conn.head().expect(101);
    assert_eq!(conn.read_until("early"), b"heard \x01early");
}
