//! Lengths that are exact or not there, heads without bodies, and bodies without bytes.

use super::support::wire::Framing;
use super::support::*;

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// A body at every path, told and framed in every way that HTTP/1 has.
fn framed() -> Origin {
    Origin::start(|call| {
        call.body()?;
        let tag = ("ETag", "\"a\"");
        match call.path() {
            "/length" => call.answer(200, &[JSON, tag], &big()),
            "/long" => call.answer(200, &[JSON, tag], &json_of(3 << 20)),
            "/small" => call.answer(200, &[JSON, tag], &json_of(100)),
            "/chunks" => {
                call.chunked(200, &[JSON, tag])?;
                if call.method() == "HEAD" {
                    return Ok(());
                }
                for piece in big().chunks(1000) {
                    call.chunk(piece)?;
                }
                call.end()
            }
            "/close" => {
                call.raw_head(200, &[JSON, tag, ("Connection", "close")])?;
                call.send(big())?;
                call.close()
            }
            path => {
                let status: u16 = path[1..].parse().expect("a status");
                call.answer(status, &[JSON], &big())
            }
        }
    })
}

#[test]
fn a_coded_answer_has_its_exact_length_or_none_and_the_connection_lives_on() {
    let app = framed();
    let proxy = Proxy::with(&app, PATIENT);
    let (mut conn, h2) = (proxy.conn(), proxy.h2());
    for coding in CODINGS {
        for path in ["/length", "/long", "/chunks", "/close"] {
            let fields = &[("accept-encoding", coding)][..];
            for reply in [conn.get(path, fields), h2.get(path, fields)] {
                assert_eq!(reply.coding(), coding, "{path}");
                let plain = if path == "/long" {
                    json_of(3 << 20)
                } else {
                    big()
                };
                assert!(
                    reply.decoded() == plain,
                    "{path} in {coding} over {}",
                    reply.version
                );
                let length = reply.body.len().to_string();
                // Complete at once, so coded in one shot: its length is known.
                if path == "/length" {
                    assert_eq!(reply.header("content-length"), Some(length.as_str()));
                } else if let Some(stated) = reply.header("content-length") {
                    assert_eq!(stated, length, "{path}");
                } else if reply.version == "HTTP/1.1" {
                    assert_eq!(reply.framing, Framing::Chunked, "{path}");
                }
            }
        }
    }
    drop(conn);
    assert_eq!(
        proxy
            .metrics()
            .sum("thinwire_responses_total", &[("reason", "compressed")]),
        24.0
    );
}

#[test]
fn bodies_of_every_status_are_compressed() {
    let app = framed();
    let proxy = Proxy::before(&app);
    for status in [
        200, 201, 202, 203, 207, 301, 400, 401, 403, 404, 409, 422, 429, 500, 502, 503,
    ] {
        for coding in CODINGS {
            for reply in proxy.both("GET", &format!("/{status}"), &[("accept-encoding", coding)]) {
                let reply = reply.expect(status);
                assert_eq!((reply.coding(), reply.varies()), (coding, 1), "{status}");
                assert!(reply.decoded() == big(), "{status}");
            }
        }
    }
}

/// No bytes, told in every way.
fn empty() -> Origin {
    Origin::start(|call| match call.path() {
        "/length" => call.answer(200, &[JSON], b""),
        "/created" => call.answer(201, &[JSON], b""),
        "/missing" => call.answer(404, &[JSON], b""),
        "/204" => call.raw_head(204, &[JSON]),
        "/205" => call.answer(205, &[JSON], b""),
        "/304" => call.raw_head(304, &[JSON]),
        "/304-with-a-length" => call.raw_head(304, &[JSON, ("Content-Length", "102400")]),
        "/chunks" => {
            call.chunked(200, &[JSON])?;
            call.end()
        }
        "/events" => {
            call.chunked(200, &[("Content-Type", "text/event-stream")])?;
            call.end()
        }
        _ => {
            call.raw_head(200, &[JSON, ("Connection", "close")])?;
            call.close()
        }
    })
}

#[test]
fn what_is_empty_gets_no_coding_and_no_bytes() {
    let app = empty();
    let proxy = Proxy::with(&app, PATIENT);
    let (mut conn, h2) = (proxy.conn(), proxy.h2());
    let paths = [
        ("/length", 200),
        ("/created", 201),
        ("/missing", 404),
        ("/204", 204),
        ("/205", 205),
        ("/304", 304),
        ("/304-with-a-length", 304),
        ("/chunks", 200),
        ("/close", 200),
    ];
    for accept in ["gzip", "br", "zstd", "gzip, identity;q=0", "identity"] {
        for (path, status) in paths {
            let fields = &[("accept-encoding", accept)][..];
            for reply in [conn.get(path, fields), h2.get(path, fields)] {
                let reply = reply.expect(status);
                let case = format!("{path} to {accept} over {}", reply.version);
                assert_eq!(reply.header("content-encoding"), None, "{case}");
                assert_eq!(reply.body.len(), 0, "{case}");
                let stated = reply.header("content-length").unwrap_or("0");
                assert!(
                    stated == "0" || path == "/304-with-a-length",
                    "{case}: {stated}"
                );
            }
        }
    }
    // Events that end before the first are none, whatever announced them.
    for reply in proxy.both("GET", "/events", &[("accept-encoding", "gzip")]) {
        assert_eq!(reply.decoded(), b"");
    }
}

#[test]
fn an_empty_answer_over_h2_stays_empty() {
    let app = H2Origin::start(|mut call| async move {
        match call.path() {
            "/head-only" => call.head(200, &[JSON], true),
            "/empty-data" => {
                call.head(200, &[JSON], false)?;
                call.data("", true).await
            }
            "/204" => call.head(204, &[JSON], true),
            "/304" => call.head(304, &[JSON, ("etag", "\"a\"")], true),
            _ => call.head(200, &[JSON, ("content-length", "0")], true),
        }
    });
    let proxy = Proxy::with(&app, PATIENT);
    for path in ["/head-only", "/empty-data", "/204", "/304", "/length"] {
        for reply in proxy.both("GET", path, &[("accept-encoding", "gzip")]) {
            assert_eq!(
                reply.header("content-encoding"),
                None,
                "{path} over {}",
                reply.version
            );
            assert!(reply.body.is_empty(), "{path}");
        }
    }
}

/// What a HEAD has to say as its GET does.
fn said(reply: &Reply) -> [Vec<&str>; 5] {
    [
        "content-encoding",
        "vary",
        "etag",
        "content-type",
        "accept-ranges",
    ]
    .map(|name| reply.all(name))
}

#[test]
fn a_head_says_what_the_get_says_and_has_no_body() {
    let app = framed();
    let proxy = Proxy::before(&app);
    let (mut conn, h2) = (proxy.conn(), proxy.h2());
    for accept in [
        "gzip",
        "br",
        "zstd",
        "gzip, identity;q=0",
        "identity",
        "deflate",
    ] {
        let fields = &[("accept-encoding", accept)][..];
        for path in ["/length", "/long", "/chunks", "/small", "/404", "/500"] {
            let get = conn.get(path, fields);
            for head in [
                conn.ask("HEAD", path, fields, b""),
                h2.ask("HEAD", path, fields, b""),
            ] {
                let case = format!("{path} to {accept} over {}", head.version);
                assert_eq!(
                    (head.status, said(&head)),
                    (get.status, said(&get)),
                    "{case}"
                );
                assert!(head.body.is_empty(), "{case}");
                let length = head.header("content-length");
                if get.coding() == "identity" {
                    assert_eq!(length, get.header("content-length"), "{case}");
                } else {
                    assert_eq!(length, None, "{case}");
                }
            }
        }
        // Nothing of a body that was not sent is waited for.
        assert_eq!(conn.get("/length", fields).decoded(), big());
    }
}

#[test]
fn a_head_whose_length_is_unsaid_gets_the_coding_that_its_get_may_have() {
    // Only bytes could decide, and HEAD has none.
    let app = Origin::start(|call| call.raw_head(200, &[JSON, ("Transfer-Encoding", "chunked")]));
    let proxy = Proxy::before(&app);
    for reply in proxy.both("HEAD", "/", &[("accept-encoding", "br")]) {
        assert_eq!(
            (reply.coding(), reply.header("content-length")),
            ("br", None)
        );
    }
}

#[test]
fn a_head_of_what_stays_plain_keeps_its_length() {
    let app = Origin::answer(200, &[("Content-Type", "image/png")], noise(5000));
    let proxy = Proxy::before(&app);
    for reply in proxy.both("HEAD", "/", &[("accept-encoding", "gzip")]) {
        assert_eq!(reply.coding(), "identity");
        assert_eq!(reply.header("content-length"), Some("5000"));
    }
    let app = Origin::json("");
    for reply in Proxy::before(&app).both("HEAD", "/", &[("accept-encoding", "gzip")]) {
        assert_eq!(
            (reply.coding(), reply.header("content-length")),
            ("identity", Some("0"))
        );
    }
}

#[test]
fn a_head_goes_to_an_h2_app_as_well() {
    let app = H2Origin::start(|mut call| async move {
        let length = big().len().to_string();
        let fields = [JSON, ("content-length", length.as_str()), ("etag", "\"a\"")];
        if call.request.method() == "HEAD" {
            return call.head(200, &fields, true);
        }
        call.head(200, &fields, false)?;
        call.data(big(), true).await
    });
    let proxy = Proxy::before(&app);
    for coding in ["zstd", "br", "gzip", "identity"] {
        let fields = &[("accept-encoding", coding)][..];
        let [get, _] = proxy.both("GET", "/", fields);
        assert_eq!(get.coding(), coding);
        for head in proxy.both("HEAD", "/", fields) {
            assert_eq!(said(&head), said(&get), "{coding} over {}", head.version);
            assert_eq!(
                head.header("content-length").is_some(),
                coding == "identity"
            );
        }
    }
}

/// An app over h2 whose bodies end with trailers, of which two speak of the plain bytes.
fn with_trailers() -> H2Origin {
    let fields = [JSON, ("trailer", "sum, content-digest, etag")];
    let trailers = [
        ("sum", "42"),
        ("content-digest", "sha-256=:x:"),
        ("etag", "\"a\""),
    ];
    H2Origin::answer(&fields, big(), &trailers)
}

#[test]
fn trailers_follow_a_compressed_body() {
    let app = with_trailers();
    let proxy = Proxy::before(&app);
    for coding in CODINGS {
        let fields = &[("accept-encoding", coding), ("te", "trailers")][..];
        for reply in [proxy.get("/", fields), proxy.h2().get("/", &fields[..1])] {
            assert_eq!(reply.coding(), coding);
            assert!(reply.decoded() == big());
            let case = format!("{coding} over {}", reply.version);
            assert_eq!(reply.trailer("sum"), Some("42"), "{case}");
            assert_eq!(reply.trailer("content-digest"), None, "{case}");
            let tag = format!("\"a-{coding}\"");
            assert_eq!(reply.trailer("etag"), Some(tag.as_str()), "{case}");
            assert_eq!(reply.header("content-length"), None, "{case}");
        }
    }
    // Plain, they are all as they were.
    for reply in proxy.both("GET", "/", &[("te", "trailers")]) {
        assert!(reply.body == big());
        assert_eq!(reply.trailer("content-digest"), Some("sha-256=:x:"));
        assert_eq!(reply.trailer("etag"), Some("\"a\""));
    }
}

#[test]
fn a_client_that_takes_no_trailers_gets_the_body_without_them() {
    let app = with_trailers();
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    for fields in [&[("accept-encoding", "gzip")][..], &[]] {
        let reply = conn.get("/", fields);
        assert!(reply.decoded() == big());
        assert_eq!(reply.trailers, []);
    }
    let old = proxy
        .conn()
        .get_1_0("/", &[("Accept-Encoding", "gzip"), ("TE", "trailers")]);
    assert!(old.decoded() == big());
}

#[test]
fn trailers_of_an_http_1_app_pass_where_they_may() {
    let app = Origin::start(|call| {
        call.chunked(200, &[JSON, ("Trailer", "Sum, Content-Length")])?;
        call.chunk(big())?;
        call.end_with(&[
            ("Sum", "42"),
            ("Other", "1"),
            ("Content-Length", "3"),
            ("Set-Cookie", "a=b"),
        ])
    });
    let proxy = Proxy::before(&app);
    for accept in ["gzip", "identity"] {
        let [first, second] = proxy.both(
            "GET",
            "/",
            &[("accept-encoding", accept), ("te", "trailers")],
        );
        assert!(first.decoded() == big() && second.decoded() == big());
        // Over HTTP/1 those that were announced, over h2 all that may be trailers at all.
        assert_eq!(
            first.trailers,
            [("sum".to_owned(), "42".to_owned())],
            "{accept}"
        );
        let mut names: Vec<_> = second
            .trailers
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["other", "sum"], "{accept}");
    }
}
