//! The strict gate over real sockets: what two parsers could read differently gets its status, a
//! closed connection, an access line and a metric.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::{Value, json};

use crate::support::{Origin, Proxy, Reply, eventually};

/// A proxy before an app that answers anything.
fn proxy() -> (Origin, Proxy) {
    let app = Origin::start(|call| {
        call.body()?;
        call.answer(200, &[], b"fine")
    });
    let proxy = Proxy::before(&app);
    (app, proxy)
}

/// The status of what is refused, the connection closed behind it, a record, and the count.
#[track_caller]
fn refused(proxy: &Proxy, raw: &[u8], status: u16, word: &str) -> Reply {
    let counted = [("reason", word)];
    let before = proxy.metrics().sum("thinwire_refused_total", &counted);
    let lines = count(proxy, status);
    let mut conn = proxy.conn();
    let shown = String::from_utf8_lossy(&raw[..raw.len().min(120)]).into_owned();
    // It may have had enough before the end.
    let _ = conn.try_send(raw);
    let reply = conn
        .try_reply()
        .unwrap_or_else(|broken| panic!("{shown:?}: {broken}"));
    assert_eq!(reply.status, status, "{shown:?}");
    assert_eq!(reply.header("connection"), Some("close"), "{shown:?}");
    assert!(reply.text().starts_with(&status.to_string()), "{shown:?}");
    assert!(conn.closed().is_empty(), "{shown:?}: nothing may follow");
    proxy.until("thinwire_refused_total", &counted, |sum| {
        sum == before + 1.0
    });
    eventually("an access line", || {
        (count(proxy, status) == lines + 1).then_some(())
    });
    reply
}

fn count(proxy: &Proxy, status: u16) -> usize {
    let lines = proxy.access_lines();
    lines
        .iter()
        .filter(|line| line["status"] == json!(status))
        .count()
}

const GET: &str = "GET /x HTTP/1.1\r\nHost: a\r\n";

#[test]
fn a_head_that_two_parsers_could_read_differently_is_a_400() {
    let (app, proxy) = proxy();
    let te = "Transfer-Encoding: chunked\r\n";
    for (raw, word) in [
        (
            format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n{te}\r\n0\r\n\r\n"),
            "length_and_coding",
        ),
        (
            format!("POST / HTTP/1.1\r\nHost: a\r\n{te}Content-Length: 3\r\n\r\n0\r\n\r\n"),
            "length_and_coding",
        ),
        (
            format!("{GET}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"),
            "repeated_length",
        ),
        (
            format!("{GET}Content-Length: 3, 3\r\n\r\nabc"),
            "repeated_length",
        ),
        (
            format!("{GET}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc"),
            "repeated_length",
        ),
        (format!("{GET}Content-Length: +3\r\n\r\nabc"), "bad_length"),
        (format!("{GET}Content-Length: 0x3\r\n\r\nabc"), "bad_length"),
        (format!("{GET}Content-Length: \r\n\r\n"), "bad_length"),
        (
            format!("{GET}Content-Length: 99999999999999999999\r\n\r\n"),
            "bad_length",
        ),
        (format!("{GET}{te}{te}\r\n0\r\n\r\n"), "bad_transfer_coding"),
        (
            format!("{GET}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
            "bad_transfer_coding",
        ),
        (
            format!("{GET}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
            "bad_transfer_coding",
        ),
        (
            format!("{GET}Transfer-Encoding:\r\n\r\n0\r\n\r\n"),
            "bad_transfer_coding",
        ),
        (
            format!("GET /x HTTP/1.0\r\n{te}\r\n0\r\n\r\n"),
            "transfer_coding_in_http10",
        ),
        ("GET /x HTTP/1.1\nHost: a\n\n".to_owned(), "bare_lf"),
        (format!("{GET}X: 1\n\r\n"), "bare_lf"),
        (format!("{GET}X: 1\rY: 2\r\n\r\n"), "bare_cr"),
        (format!("{GET}X: a\0b\r\n\r\n"), "control_byte"),
        (format!("{GET}X: a\x01b\r\n\r\n"), "control_byte"),
        (format!("{GET}X : 1\r\n\r\n"), "space_before_colon"),
        (
            format!("{GET}Content-Length : 3\r\n\r\nabc"),
            "space_before_colon",
        ),
        (format!("{GET}X: 1\r\n folded\r\n\r\n"), "folded_field"),
        (format!("{GET}X: 1\r\n\tfolded\r\n\r\n"), "folded_field"),
        (format!("{GET}: 1\r\n\r\n"), "bad_field_name"),
        (format!("{GET}X\r\n\r\n"), "bad_field_name"),
        (format!("{GET}X(y): 1\r\n\r\n"), "bad_field_name"),
        ("GET /x HTTP/1.1\r\n\r\n".to_owned(), "no_host"),
        (format!("{GET}Host: a\r\n\r\n"), "repeated_host"),
        (
            "GET /x HTTP/1.1\r\nHost: a b\r\n\r\n".to_owned(),
            "bad_host",
        ),
        (
            "GET  /x HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "request_line",
        ),
        (
            "GET /x  HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "request_line",
        ),
        ("GET /x\r\nHost: a\r\n\r\n".to_owned(), "request_line"),
        (
            " GET /x HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "request_line",
        ),
        (
            "G@T /x HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "bad_method",
        ),
        ("\x16\x03\x01\x02".to_owned(), "bad_method"),
        (
            "GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "bad_target",
        ),
        ("GET x HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), "bad_target"),
        (
            "GET /x http/1.1\r\nHost: a\r\n\r\n".to_owned(),
            "bad_version",
        ),
        (
            "GET /x HTTP/11\r\nHost: a\r\n\r\n".to_owned(),
            "bad_version",
        ),
    ] {
        refused(&proxy, raw.as_bytes(), 400, word);
    }
    assert_eq!(app.accepted(), 0, "the app heard of none");
    let lines = proxy.access_lines();
    assert!(
        lines
            .iter()
            .all(|line| line["ended_by"] == "client" && line["route"] == "-")
    );
    // What could be read of it is on record.
    let legible = ["GET", "/x", "a"].map(|text| json!(text));
    let named = |line: &Value| ["method", "path", "host"].map(|key| line[key].clone()) == legible;
    assert!(lines.iter().filter(|line| named(line)).count() > 15);
}

#[test]
fn what_is_too_long_unknown_or_of_another_version_has_its_own_status() {
    let (app, proxy) = proxy();
    let long = "x".repeat(40 << 10);
    let field = format!("X: {}\r\n", "v".repeat(1000));
    for (raw, status, word) in [
        (
            format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"),
            414,
            "target_too_long",
        ),
        (format!("{GET}X: {long}\r\n\r\n"), 431, "head_too_large"),
        (
            format!("{GET}{}\r\n", field.repeat(40)),
            431,
            "head_too_large",
        ),
        (
            format!("{GET}{}\r\n", "X: 1\r\n".repeat(150)),
            431,
            "too_many_fields",
        ),
        (
            format!("{GET}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
            501,
            "unknown_transfer_coding",
        ),
        (
            format!("{GET}Transfer-Encoding: br\r\n\r\n"),
            501,
            "unknown_transfer_coding",
        ),
        (
            "GET /x HTTP/2.0\r\nHost: a\r\n\r\n".to_owned(),
            505,
            "unsupported_version",
        ),
        (
            "GET /x HTTP/1.2\r\nHost: a\r\n\r\n".to_owned(),
            505,
            "unsupported_version",
        ),
        (
            "GET /x HTTP/0.9\r\n\r\n".to_owned(),
            505,
            "unsupported_version",
        ),
    ] {
        refused(&proxy, raw.as_bytes(), status, word);
        let answered =
            [("status", &*status.to_string()), ("route", "-")].map(|(a, b)| (a, b.to_owned()));
        let answered = answered.each_ref().map(|(a, b)| (*a, b.as_str()));
        proxy.until("thinwire_responses_total", &answered, |sum| sum > 0.0);
    }
    assert_eq!(app.accepted(), 0);
}

#[test]
fn a_head_of_the_size_that_is_allowed_passes() {
    let (app, proxy) = proxy();
    let field = format!("X: {}\r\n", "v".repeat(995));
    let reply = {
        let mut conn = proxy.conn();
        conn.send(format!("{GET}{}\r\n", field.repeat(32)));
        conn.reply()
    };
    reply.expect(200);
    assert_eq!(app.last().head.all("x").len(), 32);
}

#[test]
fn an_h2_head_that_is_too_large_is_a_431_too() {
    let (app, proxy) = proxy();
    let long = "v".repeat(20 << 10);
    let client = proxy.h2();
    client
        .get("/large", &[("x", &long), ("y", &long)])
        .expect(431);
    client.get("/fits", &[("x", &long)]).expect(200);
    assert_eq!(app.requests().len(), 1);
    assert_eq!(proxy.access("/large")["status"], 431);
}

#[test]
fn a_head_that_is_late_is_a_408_and_an_idle_connection_is_not_late() {
    let app = Origin::json("{}");
    let timeouts = "timeouts: { request_head: 400ms }";
    let proxy = crate::support::Setup::before(&app)
        .defaults(timeouts)
        .start();
    // Idle from the start, and between two requests, for longer than a head may take.
    let mut fresh = proxy.conn();
    let mut kept = proxy.conn();
    kept.get("/before", &[]).expect(200);
    refused(
        &proxy,
        b"GET /late HTTP/1.1\r\nHost: a\r\nX: ",
        408,
        "head_timeout",
    );
    refused(&proxy, b"G", 408, "head_timeout");
    refused(&proxy, b"\r\nGET /late", 408, "head_timeout");
    let line = proxy.access("/late");
    assert_eq!(
        (&line["method"], &line["ended_by"]),
        (&json!("GET"), &json!("client"))
    );
    fresh.get("/fresh", &[]).expect(200);
    kept.get("/after", &[]).expect(200);
    // On a connection that was parked, too.
    kept.send("GET /late-again HTTP/1.1\r\n");
    kept.reply().expect(408);
    kept.closed();
    let answered = [("status", "408"), ("route", "-")];
    proxy.until("thinwire_responses_total", &answered, |sum| sum == 4.0);
}

#[test]
fn a_body_whose_chunks_are_malformed_is_a_400_and_never_complete() {
    let (app, proxy) = proxy();
    for chunks in [
        "zz\r\nabc\r\n0\r\n\r\n",
        "0x3\r\nabc\r\n0\r\n\r\n",
        "+3\r\nabc\r\n0\r\n\r\n",
        " 3\r\nabc\r\n0\r\n\r\n",
        "3 \r\nabc\r\n0\r\n\r\n",
        "-1\r\nabc\r\n0\r\n\r\n",
        "3\nabc\r\n0\r\n\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "3\r\nabc\n0\r\n\r\n",
        "3;a\nb\r\nabc\r\n0\r\n\r\n",
        "00000000000000003\r\nabc\r\n0\r\n\r\n",
        "\r\n3\r\nabc\r\n0\r\n\r\n",
        "3\r\nabc\r\n0\r\nX : 1\r\n\r\n",
        "3\r\nabc\r\n0\r\n folded\r\n\r\n",
        "3\r\nabc\r\n0\r\nX: 1\n\r\n",
    ] {
        let mut conn = proxy.conn();
        let target = format!("/{}", count(&proxy, 400));
        conn.send(format!(
            "POST {target} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"
        ));
        let reply = conn
            .try_reply()
            .unwrap_or_else(|broken| panic!("{chunks:?}: {broken}"));
        assert_eq!(reply.status, 400, "{chunks:?}");
        assert!(conn.closed().is_empty(), "{chunks:?}");
        let line = proxy.access(&target);
        assert_eq!(
            (&line["status"], &line["ended_by"]),
            (&json!(400), &json!("client"))
        );
    }
    let whole = app.requests().into_iter().filter(|seen| seen.whole);
    assert_eq!(whole.count(), 0);
    let answered = [("status", "400")];
    proxy.until("thinwire_responses_total", &answered, |sum| sum == 15.0);
}

#[test]
fn well_formed_chunks_with_all_that_is_allowed_pass() {
    let (app, proxy) = proxy();
    let mut conn = proxy.conn();
    for _ in 0..2 {
        conn.send(
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\nTrailer: X\r\n\r\n\
             3;a=\"b\"\r\nabc\r\n00A\r\n0123456789\r\n000\r\nX: 1\r\n\r\n",
        );
        conn.reply().expect(200);
        assert_eq!(app.last().body, b"abc0123456789");
        assert!(app.last().whole);
    }
}

#[test]
fn a_refused_request_behind_good_ones_does_not_hurt_them() {
    let (app, proxy) = proxy();
    let mut conn = proxy.conn();
    conn.send(format!(
        "{GET}\r\nPOST /y HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc{GET}X : 1\r\n\r\n{GET}\r\n"
    ));
    conn.reply().expect(200);
    conn.reply().expect(200);
    conn.reply().expect(400);
    assert!(
        conn.closed().is_empty(),
        "what follows a refusal is never served"
    );
    assert_eq!(app.requests().len(), 2);
    assert_eq!(app.last().body, b"abc");
}

#[test]
fn a_body_that_ends_early_is_no_request() {
    let (app, proxy) = proxy();
    for body in [
        "Content-Length: 10\r\n\r\nabc",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nab",
    ] {
        let mut conn = proxy.conn();
        conn.send(format!("POST /cut HTTP/1.1\r\nHost: a\r\n{body}"));
        conn.stream().half_close().unwrap();
        conn.closed();
    }
    eventually("the app's connections to end", || {
        (app.open() == 0).then_some(())
    });
    assert!(app.requests().iter().all(|seen| !seen.whole));
    proxy.until("thinwire_responses_total", &[("status", "400")], |sum| {
        sum == 2.0
    });
}
