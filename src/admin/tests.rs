#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use super::*;
use crate::telemetry::{CONTENT_TYPE, Metrics};

fn admin(address: &str, token: &str) -> (AdminHandle, Readiness) {
    let readiness = Readiness::default();
    let metrics = Metrics::new();
    let handle = start(AdminState {
        address: address.parse().unwrap(),
        token: token.to_owned(),
        readiness: readiness.clone(),
        config: Box::new(|| json!({ "drain": "30s" })),
        purge: Box::new(|purge| match purge {
            Purge::Tag(tag) => Some(Box::pin(std::future::ready(tag.len()))),
            Purge::Url(_) | Purge::Prefix(_) => None,
        }),
        metrics: Box::new(move || metrics.encode()),
    });
    (handle.unwrap(), readiness)
}

/// The whole answer to raw bytes.
fn raw(admin: &AdminHandle, request: &str) -> String {
    let port = admin.address().port();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn ask(admin: &AdminHandle, line: &str, fields: &[&str]) -> String {
    let host = if fields.iter().any(|field| field.starts_with("Host:")) {
        ""
    } else {
        "Host: localhost:9900\r\n"
    };
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    raw(
        admin,
        &format!("{line} HTTP/1.1\r\n{host}{fields}Connection: close\r\n\r\n"),
    )
}

fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or(answer)
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

#[test]
fn a_probe_sees_the_process_come_and_go() {
    let (admin, readiness) = admin("127.0.0.1:0", "");
    let ready = || {
        let answer = ask(&admin, "GET /ready", &[]);
        (status(&answer).to_owned(), body(&answer).to_owned())
    };
    assert_eq!(ready(), ("503".into(), "starting\n".into()));
    readiness.ready();
    assert_eq!(ready(), ("200".into(), "ready\n".into()));
    readiness.draining();
    assert_eq!(ready(), ("503".into(), "draining\n".into()));
    let live = ask(&admin, "GET /live", &[]);
    assert_eq!((status(&live), body(&live)), ("200", "live\n"));
}

#[test]
fn a_scraper_gets_prometheus_text() {
    let (admin, _) = admin("127.0.0.1:0", "");
    let answer = ask(&admin, "GET /metrics?format=any", &[]);
    assert_eq!(status(&answer), "200");
    assert!(
        answer.contains(&format!("content-type: {CONTENT_TYPE}\r\n")),
        "{answer}"
    );
    assert!(
        body(&answer).contains("# TYPE thinwire_connections gauge\n"),
        "{answer}"
    );
}

#[test]
fn no_answer_is_kept_or_guessed_at_and_none_is_for_other_origins() {
    let (admin, _) = admin("127.0.0.1:0", "secret");
    for path in ["/", "/live", "/ready", "/metrics", "/config", "/nothing"] {
        let answer = ask(
            &admin,
            &format!("GET {path}"),
            &["Origin: https://example.org"],
        );
        assert!(
            answer.contains("cache-control: no-store\r\n"),
            "{path}: {answer}"
        );
        assert!(
            answer.contains("x-content-type-options: nosniff\r\n"),
            "{path}: {answer}"
        );
        assert!(!answer.contains("access-control"), "{path}: {answer}");
    }
}

#[test]
fn a_head_has_no_body_but_its_length() {
    let (admin, _) = admin("127.0.0.1:0", "");
    let answer = ask(&admin, "HEAD /live", &[]);
    assert_eq!((status(&answer), body(&answer)), ("200", ""));
    assert!(answer.contains("content-length: 5\r\n"), "{answer}");
}

#[test]
fn other_methods_and_paths_are_refused() {
    let (admin, _) = admin("127.0.0.1:0", "");
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "get", "NONSENSE"] {
        let answer = ask(&admin, &format!("{method} /metrics"), &[]);
        assert_eq!(status(&answer), "405", "{method}");
        assert!(answer.contains("allow: GET, HEAD\r\n"), "{answer}");
    }
    for line in [
        "GET /nothing",
        "GET /live/",
        "GET //live",
        "POST /cache/purges",
        "GET /LIVE",
    ] {
        assert_eq!(status(&ask(&admin, line, &[])), "404", "{line}");
    }
}

#[test]
fn with_a_token_the_private_pages_want_it() {
    let (admin, _) = admin("127.0.0.1:0", "a long secret");
    for path in ["/config", "/"] {
        for fields in [
            &[][..],
            &["Authorization: Bearer a long secre"],
            &["Authorization: Bearer a long secret!"],
            &["Authorization: Bearer"],
            &["Authorization: Basic a long secret"],
            &["Authorization: a long secret"],
            &[
                "Authorization: Bearer no",
                "Authorization: Bearer a long secret",
            ],
        ] {
            let answer = ask(&admin, &format!("GET {path}"), fields);
            assert_eq!(status(&answer), "401", "{fields:?}");
            assert!(answer.contains("www-authenticate: Bearer"), "{answer}");
            assert!(!body(&answer).contains("drain"), "{answer}");
        }
        for fields in [
            &["Authorization: Bearer a long secret"][..],
            &[
                "authorization: bearer a long secret",
                "Host: proxy.example.org",
            ],
        ] {
            assert_eq!(status(&ask(&admin, &format!("GET {path}"), fields)), "200");
        }
    }
    for path in ["/live", "/metrics"] {
        assert_eq!(
            status(&ask(&admin, &format!("GET {path}"), &[])),
            "200",
            "open to all"
        );
    }
}

#[test]
fn without_a_token_loopback_sees_the_configuration() {
    let (admin, _) = admin("127.0.0.1:0", "");
    for host in ["localhost", "LOCALHOST:9900", "127.0.0.1:1", "[::1]:9900"] {
        let answer = ask(&admin, "GET /config", &[&format!("Host: {host}")]);
        assert_eq!(status(&answer), "200", "{host}");
        let json: Value = serde_json::from_str(body(&answer)).unwrap();
        assert_eq!(json, json!({ "drain": "30s" }));
    }
    assert_eq!(status(&raw(&admin, "GET /config HTTP/1.0\r\n\r\n")), "200");
    assert_eq!(status(&ask(&admin, "GET /", &[])), "200");
}

#[test]
fn a_name_that_was_pointed_at_loopback_sees_nothing() {
    let (admin, _) = admin("127.0.0.1:0", "");
    for fields in [
        &["Host: rebound.example.org:9900"][..],
        &["Host: localhost.example.org"],
        &["Host: 127.0.0.1.example.org"],
        &["Host: @"],
        &["Host:"],
    ] {
        let answer = ask(&admin, "GET /config", fields);
        assert_eq!(status(&answer), "403", "{fields:?}: {answer}");
    }
    let absolute = ask(
        &admin,
        "GET http://rebound.example.org/config",
        &["Host: localhost"],
    );
    assert_eq!(status(&absolute), "403");
}

#[test]
fn without_a_token_other_addresses_show_only_what_is_open() {
    let (admin, readiness) = admin("0.0.0.0:0", "");
    readiness.ready();
    for path in ["/config", "/"] {
        assert_eq!(
            status(&ask(&admin, &format!("GET {path}"), &[])),
            "403",
            "{path}"
        );
    }
    for path in ["/live", "/ready", "/metrics"] {
        assert_eq!(
            status(&ask(&admin, &format!("GET {path}"), &[])),
            "200",
            "{path}"
        );
    }
}

#[test]
fn a_head_without_an_end_and_a_body_without_one_are_not_kept() {
    let (admin, _) = admin("127.0.0.1:0", "");
    let long = format!("X: {}", "x".repeat(64 * 1024));
    assert_eq!(status(&ask(&admin, "GET /live", &[&long])), "431");
    // Its answer comes although the body never does.
    let answer = ask(&admin, "POST /live", &["Content-Length: 1000000000"]);
    assert_eq!(status(&answer), "405");
}

#[test]
fn more_connections_than_are_held_at_once_are_answered_in_turn() {
    let (admin, _) = admin("127.0.0.1:0", "");
    let mut kept: Vec<_> = (0..64)
        .map(|_| {
            let mut stream = TcpStream::connect(admin.address()).unwrap();
            stream
                .write_all(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
                .unwrap();
            // Answered: it holds its place.
            stream.read_exact(&mut [0; 12]).unwrap();
            stream
        })
        .collect();
    let mut late = TcpStream::connect(admin.address()).unwrap();
    late.write_all(b"GET /live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let again = &mut kept[0];
    again
        .write_all(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    again.read_exact(&mut [0; 256]).unwrap();
    late.set_nonblocking(true).unwrap();
    let early = late.peek(&mut [0]).unwrap_err();
    assert_eq!(early.kind(), io::ErrorKind::WouldBlock, "it waits");
    late.set_nonblocking(false).unwrap();
    kept.truncate(63);
    let mut answer = String::new();
    late.read_to_string(&mut answer).unwrap();
    assert_eq!(status(&answer), "200");
}

#[test]
fn stopping_ends_idle_connections() {
    let (admin, _) = admin("127.0.0.1:0", "");
    let mut stream = TcpStream::connect(admin.address()).unwrap();
    stream
        .write_all(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    stream.read_exact(&mut [0; 12]).unwrap();
    admin.stop();
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).unwrap();
    assert!(rest.ends_with(b"live\n"));
}

#[test]
fn an_address_that_is_taken_is_an_error() {
    let (admin, readiness) = admin("127.0.0.1:0", "");
    let again = start(AdminState {
        address: admin.address(),
        token: String::new(),
        readiness,
        config: Box::new(|| Value::Null),
        purge: Box::new(|_| None),
        metrics: Box::new(String::new),
    });
    assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AddrInUse);
}
