//! What an app sends that two parsers could read differently, or that is no HTTP at all: a 502, or a
//! break where the head was sent, never a guess.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::json;

use crate::support::{Origin, Proxy, big};

/// Each of these is an answer that two parsers could read differently, or none at all.
const MALFORMED: [(&str, &str); 19] = [
    (
        "/both",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "/twice",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    ),
    (
        "/same",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    ),
    (
        "/list",
        "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc",
    ),
    ("/sign", "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc"),
    (
        "/coding",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "/chunked-twice",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    ),
    (
        "/old-coding",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ),
    ("/lf", "HTTP/1.1 200 OK\nContent-Length: 3\n\nabc"),
    (
        "/nul",
        "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 3\r\n\r\nabc",
    ),
    (
        "/cr",
        "HTTP/1.1 200 OK\r\nX: a\rb\r\nContent-Length: 3\r\n\r\nabc",
    ),
    ("/colon", "HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\nabc"),
    (
        "/fold",
        "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 3\r\n\r\nabc",
    ),
    (
        "/name",
        "HTTP/1.1 200 OK\r\n: a\r\nContent-Length: 3\r\n\r\nabc",
    ),
    ("/status", "HTTP/1.1 20 OK\r\nContent-Length: 3\r\n\r\nabc"),
    (
        "/version",
        "HTTP/2.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
    ),
    ("/none", "hello\r\n\r\n"),
    ("/cut", "HTTP/1.1 200 OK\r\nContent-Le"),
    ("/silence", ""),
];

#[test]
fn an_answer_that_two_parsers_could_read_differently_is_a_502() {
    let app = Origin::start(|call| {
        let path = call.path().to_owned();
        let known = MALFORMED.iter().find(|(name, _)| *name == path);
        let Some((_, raw)) = known else {
            return call.answer(200, &[], b"fine");
        };
        call.send(raw)?;
        call.close()
    });
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    for (path, _) in MALFORMED {
        for asked in [&[][..], &[("accept-encoding", "gzip")]] {
            let mut conn = proxy.conn();
            let reply = conn.get(path, asked);
            assert_eq!(reply.status, 502, "{path}: {:?}", reply.body);
            // It is the app's fault: the client's connection stays.
            conn.get("/fine", &[]).expect(200);
        }
        client.get(path, &[]).expect(502);
        let line = proxy.access(path);
        assert_eq!(
            (&line["status"], &line["ended_by"]),
            (&json!(502), &json!("upstream"))
        );
        assert!(
            line["error"]
                .as_str()
                .is_some_and(|error| !error.is_empty()),
            "{line}"
        );
    }
    let failed = [("status", "502"), ("route", "everything")];
    let all = (MALFORMED.len() * 3) as f64;
    proxy.until("thinwire_responses_total", &failed, |sum| sum == all);
}

#[test]
fn bytes_behind_an_answer_are_not_the_next_one() {
    let app = Origin::start(|call| {
        match call.path() {
        "/more" => call.send(
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfineHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        ),
        _ => call.answer(200, &[], b"good"),
    }
    });
    let proxy = Proxy::before(&app);
    for _ in 0..20 {
        assert_eq!(proxy.get("/more", &[]).text(), "fine");
        assert_eq!(proxy.get("/next", &[]).text(), "good");
    }
}

#[test]
fn chunks_of_the_app_that_are_malformed_never_look_clean() {
    let app = Origin::start(|call| {
        call.chunked(200, &[("Content-Type", "application/json")])?;
        call.chunk(big())?;
        match call.path() {
            "/size" => call.send("0x3\r\nabc\r\n0\r\n\r\n"),
            "/end" => call.send("3\r\nabcd\r\n0\r\n\r\n"),
            "/lf" => call.send("3\nabc\r\n0\r\n\r\n"),
            _ => call.send("0\r\nX : 1\r\n\r\n"),
        }
    });
    let proxy = Proxy::before(&app);
    for path in ["/size", "/end", "/lf", "/trailer"] {
        for coding in ["gzip", "br", "zstd", "identity"] {
            let mut conn = proxy.conn();
            conn.request("GET", path, &[("Accept-Encoding", coding)], b"");
            // A 502 where the head was not sent yet, else a break.
            if let Ok(reply) = conn.try_reply() {
                assert_eq!(reply.status, 502, "{path} {coding}");
            }
            assert_eq!(
                proxy.access(path)["ended_by"],
                "upstream",
                "{path} {coding}"
            );
        }
    }
}
