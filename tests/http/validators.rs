//! Entity tags and conditional requests across a coding that only the client sees.

use super::support::*;

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// An app whose one resource has this tag: 304 and 412 as RFC 9110 section 13 has them.
fn tagged(tag: &'static str) -> Origin {
    Origin::start(move |call| {
        call.body()?;
        let list = |name: &str| call.head.all(name).join(", ");
        let strong = tag.trim_start_matches("W/");
        let names = |list: &str, tag: &str| list.split(", ").any(|member| member == tag);
        let (held, wanted) = (list("if-none-match").replace("W/", ""), list("if-match"));
        let fields = [JSON, ("ETag", tag), ("Cache-Control", "no-cache")];
        if held == "*" || names(&held, strong) {
            return call.answer(304, &fields[1..], b"");
        }
        if !(wanted.is_empty() || wanted == "*" || names(&wanted, tag)) {
            return call.answer(412, &fields, b"{}");
        }
        call.answer(200, &fields, BODY.as_bytes())
    })
}

/// A body of some size, the same for all.
const BODY: &str = include_str!("validators.rs");

#[test]
fn the_coded_body_has_a_tag_of_its_own() {
    let app = Origin::start(|call| {
        let fields = [JSON, ("ETag", "\"a\"")];
        if call.path() == "/whole" {
            return call.answer(200, &fields, &big());
        }
        call.chunked(200, &fields)?;
        call.chunk(json_of(3 << 20))?;
        call.end()
    });
    let proxy = Proxy::before(&app);
    for path in ["/whole", "/streamed"] {
        for coding in CODINGS {
            for reply in proxy.both("GET", path, &[("accept-encoding", coding)]) {
                let tag = format!("\"a-{coding}\"");
                assert_eq!(reply.coding(), coding, "{path} over {}", reply.version);
                assert_eq!(reply.header("etag"), Some(tag.as_str()), "{path}");
            }
        }
        for fields in [&[][..], &[("accept-encoding", "identity")]] {
            for reply in proxy.both("GET", path, fields) {
                assert_eq!(reply.header("etag"), Some("\"a\""), "{path}");
            }
        }
    }
}

#[test]
fn a_weak_tag_is_the_same_for_every_form() {
    for tag in ["W/\"a\"", "W/\"a-gzip\"", "W/\"\""] {
        let app = Origin::answer(200, &[JSON, ("ETag", tag)], big());
        let proxy = Proxy::before(&app);
        for coding in ["identity", "gzip", "br", "zstd"] {
            for reply in proxy.both("GET", "/", &[("accept-encoding", coding)]) {
                assert_eq!((reply.coding(), reply.header("etag")), (coding, Some(tag)));
            }
        }
    }
}

#[test]
fn odd_tags_get_a_form_or_stay() {
    let table = [
        (Some("\"\""), Some("\"-br\"")),
        (Some("\"a,b\""), Some("\"a,b-br\"")),
        (Some("\"a-gzip\""), Some("\"a-gzip-br\"")),
        // No tags by the grammar: not ours to mend.
        (Some("abc"), Some("abc")),
        (Some("w/\"a\""), Some("w/\"a\"")),
        (None, None),
    ];
    for (from_app, to_client) in table {
        let tag = from_app.map(|tag| ("ETag", tag));
        let app = Origin::answer(200, &[&[JSON][..], tag.as_slice()].concat(), big());
        for reply in Proxy::before(&app).both("GET", "/", &[("accept-encoding", "br")]) {
            assert_eq!((reply.coding(), reply.header("etag")), ("br", to_client));
        }
    }
}

#[test]
fn the_next_request_revalidates_under_the_tag_that_the_client_holds() {
    for (tag, coded) in [("\"a\"", "\"a-{}\""), ("W/\"a\"", "W/\"a\"")] {
        let app = tagged(tag);
        let proxy = Proxy::before(&app);
        let (mut conn, h2) = (proxy.conn(), proxy.h2());
        for coding in ["zstd", "br", "gzip", "identity"] {
            let expected = if coding == "identity" {
                tag.to_owned()
            } else {
                coded.replace("{}", coding)
            };
            let mut accept = vec![("accept-encoding", coding)];
            let first = conn.get("/", &accept).expect(200);
            assert_eq!(first.header("etag"), Some(expected.as_str()));
            accept.push(("if-none-match", &expected));
            for method in ["GET", "HEAD"] {
                for reply in [
                    conn.ask(method, "/", &accept, b""),
                    h2.ask(method, "/", &accept, b""),
                ] {
                    let reply = reply.expect(304);
                    assert_eq!(
                        reply.header("etag"),
                        Some(expected.as_str()),
                        "{}",
                        reply.version
                    );
                    assert_eq!(reply.header("content-encoding"), None);
                    assert_eq!(reply.header("cache-control"), Some("no-cache"));
                    assert!(reply.body.is_empty());
                    assert!(app.last().head.all("if-none-match")[0].contains(tag));
                }
            }
            // Nothing of a body was left on the connection.
            assert_eq!(conn.get("/", &accept[..1]).expect(200).text(), BODY);
        }
    }
}

#[test]
fn another_state_is_sent_whole() {
    let app = tagged("\"a\"");
    let proxy = Proxy::before(&app);
    for held in [
        "\"other-gzip\"",
        "\"other\"",
        "\"a-\"",
        "\"a-gzi\"",
        "\"agzip\"",
        "\"b\", \"c-br\"",
    ] {
        let fields = [("accept-encoding", "gzip"), ("if-none-match", held)];
        for reply in proxy.both("GET", "/", &fields) {
            let reply = reply.expect(200);
            assert_eq!(
                (reply.coding(), reply.header("etag")),
                ("gzip", Some("\"a-gzip\""))
            );
            assert_eq!(reply.text(), BODY);
        }
    }
}

#[test]
fn lists_weak_forms_and_several_lines_are_understood() {
    let table: [(&[&str], &[&str], &str); 9] = [
        (&["\"a-gzip\""], &["\"a\", \"a-gzip\""], "\"a-gzip\""),
        // Another coding's form than the one that is asked for now.
        (&["\"a-br\""], &["\"a\", \"a-br\""], "\"a-br\""),
        (
            &["\"b-gzip\", \"a-zstd\""],
            &["\"b\", \"b-gzip\", \"a\", \"a-zstd\""],
            "\"a-zstd\"",
        ),
        // Weakened by a cache on the way.
        (&["W/\"a-gzip\""], &["W/\"a\", W/\"a-gzip\""], "\"a-gzip\""),
        (
            &["W/\"x\",\"a-gzip\" , \"c,d\""],
            &["W/\"x\", \"a\", \"a-gzip\", \"c,d\""],
            "\"a-gzip\"",
        ),
        (
            &["\"b\"", "\"a-gzip\""],
            &["\"b\"", "\"a\", \"a-gzip\""],
            "\"a-gzip\"",
        ),
        // The client's plain copy, among others.
        (&["\"a\""], &["\"a\""], "\"a\""),
        (
            &["\"b-gzip\", \"a\""],
            &["\"b\", \"b-gzip\", \"a\""],
            "\"a\"",
        ),
        (&["*"], &["*"], "\"a\""),
    ];
    let app = tagged("\"a\"");
    let proxy = Proxy::before(&app);
    for (said, asked, answered) in table {
        let mut fields = vec![("accept-encoding", "gzip")];
        fields.extend(said.iter().map(|line| ("if-none-match", *line)));
        for reply in proxy.both("GET", "/", &fields) {
            assert_eq!(app.last().head.all("if-none-match"), asked);
            assert_eq!(reply.expect(304).header("etag"), Some(answered), "{said:?}");
        }
    }
}

#[test]
fn a_tag_of_the_apps_own_that_ends_like_ours_is_found_too() {
    // Apache's mod_deflate, and static servers that keep coded files.
    let app = tagged("\"x-gzip\"");
    let proxy = Proxy::before(&app);
    for (said, asked) in [
        ("\"x-gzip\"", "\"x\", \"x-gzip\""),
        ("\"x-gzip-br\"", "\"x-gzip\", \"x-gzip-br\""),
    ] {
        for reply in proxy.both(
            "GET",
            "/",
            &[("accept-encoding", "br"), ("if-none-match", said)],
        ) {
            assert_eq!(reply.expect(304).header("etag"), Some(said));
            assert_eq!(app.last().head.field("if-none-match"), Some(asked));
        }
    }
    let reply = proxy.ask("PUT", "/", &[("if-match", "\"x-gzip\"")], b"new");
    assert_eq!(reply.status, 200);
}

#[test]
fn a_write_under_our_form_of_the_tag_reaches_its_state() {
    let app = tagged("\"a\"");
    let proxy = Proxy::before(&app);
    let table = [
        ("\"a-gzip\"", 200, "\"a\", \"a-gzip\""),
        ("\"a-br\"", 200, "\"a\", \"a-br\""),
        ("\"a-zstd\"", 200, "\"a\", \"a-zstd\""),
        (
            "\"b-br\", \"a-br\"",
            200,
            "\"b\", \"b-br\", \"a\", \"a-br\"",
        ),
        ("\"a\"", 200, "\"a\""),
        ("*", 200, "*"),
        ("\"other-gzip\"", 412, "\"other\", \"other-gzip\""),
        // Strong comparison: a weak tag never holds, so it is not made into one that might.
        ("W/\"a-gzip\"", 412, "W/\"a-gzip\""),
        ("W/\"a\"", 412, "W/\"a\""),
    ];
    for (said, status, asked) in table {
        let fields = &[("if-match", said), ("accept-encoding", "gzip")][..];
        let replies = [
            proxy.ask("PUT", "/", fields, b"new"),
            proxy.h2().ask("PUT", "/", fields, b"new"),
        ];
        for reply in replies {
            assert_eq!(reply.status, status, "{said} over {}", reply.version);
            let seen = app.last();
            assert_eq!(seen.head.field("if-match"), Some(asked));
            assert_eq!(seen.body, b"new");
        }
    }
}

#[test]
fn a_304_of_an_app_without_a_tag_in_it_gets_none() {
    let app = Origin::answer(304, &[("Cache-Control", "max-age=5")], "");
    let proxy = Proxy::before(&app);
    for reply in proxy.both(
        "GET",
        "/",
        &[("if-none-match", "\"a-gzip\""), ("accept-encoding", "gzip")],
    ) {
        let reply = reply.expect(304);
        assert_eq!(
            (reply.header("etag"), reply.header("content-length")),
            (None, None)
        );
    }
}

#[test]
fn dates_pass_as_they_are() {
    let date = "Sat, 29 Oct 1994 19:43:31 GMT";
    let app = Origin::answer(200, &[JSON, ("Last-Modified", date)], big());
    let proxy = Proxy::before(&app);
    let fields = [
        ("accept-encoding", "gzip"),
        ("if-modified-since", date),
        ("if-unmodified-since", date),
    ];
    for reply in proxy.both("GET", "/", &fields) {
        assert_eq!(
            (reply.coding(), reply.header("last-modified")),
            ("gzip", Some(date))
        );
        for name in ["if-modified-since", "if-unmodified-since"] {
            assert_eq!(app.last().head.field(name), Some(date));
        }
    }
}

#[test]
fn a_route_that_is_off_leaves_tags_alone() {
    let app = tagged("\"a\"");
    let proxy = Proxy::with(&app, "compress: { enabled: false }");
    let fields = [("if-none-match", "\"a-gzip\""), ("accept-encoding", "gzip")];
    for reply in proxy.both("GET", "/", &fields) {
        assert_eq!(reply.expect(200).header("etag"), Some("\"a\""));
        assert_eq!(app.last().head.field("if-none-match"), Some("\"a-gzip\""));
    }
}
