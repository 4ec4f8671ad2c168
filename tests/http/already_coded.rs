//! What the app coded itself, or wants left alone, passes to the byte.

use std::io::Write as _;

use super::support::*;

const JSON: (&str, &str) = ("Content-Type", "application/json");
const EVERY: (&str, &str) = ("accept-encoding", "gzip, br, zstd");

fn gzipped(plain: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(plain).unwrap();
    gzip.finish().unwrap()
}

#[test]
fn a_coding_of_the_apps_passes_untouched_whoever_asked() {
    // The bytes need not be what they are said to be: nobody here may look.
    let body = big();
    let codings: [&[&str]; 12] = [
        &["br"],
        &["gzip"],
        &["GZIP"],
        &["x-gzip"],
        &["zstd"],
        &["deflate"],
        &["dcb"],
        &["something-new"],
        &["gzip, gzip"],
        &["gzip", "gzip"],
        &["identity, br"],
        &["br, identity"],
    ];
    for lines in codings {
        let mut fields = vec![
            JSON,
            ("ETag", "\"a\""),
            ("Accept-Ranges", "bytes"),
            ("Content-Digest", "x"),
        ];
        fields.extend(lines.iter().map(|line| ("Content-Encoding", *line)));
        let app = Origin::answer(200, &fields, body.clone());
        let proxy = Proxy::before(&app);
        for accept in [
            &[EVERY][..],
            &[("accept-encoding", "identity;q=0, gzip")],
            &[],
        ] {
            for method in ["GET", "HEAD"] {
                for reply in proxy.both(method, "/", accept) {
                    let case = format!("{lines:?} to {method} {accept:?} over {}", reply.version);
                    assert_eq!(reply.all("content-encoding"), lines, "{case}");
                    assert_eq!(reply.header("etag"), Some("\"a\""), "{case}");
                    assert_eq!(reply.header("accept-ranges"), Some("bytes"), "{case}");
                    assert_eq!(reply.header("content-digest"), Some("x"), "{case}");
                    assert_eq!(
                        reply.header("content-length"),
                        Some(body.len().to_string().as_str())
                    );
                    assert!(
                        reply.body == if method == "GET" { &body[..] } else { b"" },
                        "{case}"
                    );
                }
            }
        }
        assert_eq!(proxy.access("/")["reason"], "already_coded");
    }
}

#[test]
fn a_stream_that_the_app_coded_passes_as_it_comes() {
    let app = Origin::start(|call| {
        call.chunked(
            200,
            &[
                JSON,
                ("Content-Encoding", "gzip"),
                ("Vary", "Accept-Encoding"),
            ],
        )?;
        for piece in gzipped(&big()).chunks(1000) {
            call.chunk(piece)?;
        }
        call.end()
    });
    let proxy = Proxy::before(&app);
    for reply in proxy.both("GET", "/", &[EVERY]) {
        assert_eq!((reply.coding(), reply.varies()), ("gzip", 1));
        assert!(reply.body == gzipped(&big()));
    }
}

#[test]
fn work_that_the_app_need_not_have_done_is_counted() {
    let app = Origin::start(|call| {
        let body = gzipped(&big());
        match call.path() {
            "/coded" => call.answer(200, &[JSON, ("Content-Encoding", "gzip")], &body),
            "/coded/image" => call.answer(
                200,
                &[("Content-Type", "image/png"), ("Content-Encoding", "gzip")],
                &body,
            ),
            "/opt-out" => call.answer(200, &[JSON, ("Content-Encoding", "identity")], &big()),
            _ => call.answer(200, &[JSON], &big()),
        }
    });
    let proxy = Setup::before(&app)
        .routes_before("- { name: off, match: { path: /coded/off }, upstream: app, compress: { enabled: false } }")
        .start();
    for path in ["/coded", "/coded", "/coded/image", "/opt-out", "/plain"] {
        proxy.get(path, &[EVERY]).expect(200);
    }
    // There the client's wish was passed on.
    proxy.get("/coded/off", &[EVERY]).expect(200);
    let labels = &[("route", "everything"), ("kind", "http")];
    proxy.until("thinwire_app_compressed_total", labels, |sum| sum == 3.0);
    assert_eq!(
        proxy.metrics().sum("thinwire_app_compressed_total", &[]),
        3.0
    );
}

#[test]
fn an_opt_out_is_plain_to_the_byte() {
    let opt_outs = [
        ("Content-Encoding", "identity"),
        ("Content-Encoding", "Identity"),
        ("Content-Encoding", "none"),
        ("Content-Encoding", "identity, none"),
        ("Thinwire-Compress", "off"),
        ("thinwire-compress", "OFF"),
    ];
    for opt_out in opt_outs {
        let app = Origin::start(move |call| {
            let fields = [JSON, ("ETag", "\"a\""), ("Accept-Ranges", "bytes"), opt_out];
            if call.path() == "/length" {
                return call.answer(200, &fields, BODY);
            }
            call.chunked(200, &fields)?;
            call.chunk(BODY)?;
            call.end()
        });
        let proxy = Proxy::before(&app);
        for accept in [EVERY, ("accept-encoding", "gzip, identity;q=0")] {
            for path in ["/length", "/chunks"] {
                for reply in proxy.both("GET", path, &[accept]) {
                    let case = format!("{opt_out:?} {path} over {}", reply.version);
                    // It is a word between the app and us.
                    assert_eq!(reply.header("content-encoding"), None, "{case}");
                    assert_eq!(reply.header("thinwire-compress"), None, "{case}");
                    assert_eq!(
                        (reply.header("etag"), reply.varies()),
                        (Some("\"a\""), 0),
                        "{case}"
                    );
                    assert_eq!(reply.header("accept-ranges"), Some("bytes"), "{case}");
                    assert!(reply.body == BODY, "{case}");
                }
            }
            assert_eq!(proxy.access("/length")["reason"], "disabled");
        }
    }
}

/// Compressible, of no length that another body has.
const BODY: &[u8] = include_bytes!("already_coded.rs");

#[test]
fn another_word_of_the_apps_is_no_opt_out_and_not_passed_on() {
    for word in ["on", "offset", ""] {
        let app = Origin::answer(200, &[JSON, ("Thinwire-Compress", word)], big());
        let proxy = Proxy::before(&app);
        for reply in proxy.both("GET", "/", &[("accept-encoding", "gzip")]) {
            assert_eq!(
                (reply.coding(), reply.header("thinwire-compress")),
                ("gzip", None),
                "{word}"
            );
        }
        let plain = proxy.get("/", &[]);
        assert_eq!(
            (plain.header("thinwire-compress"), plain.varies()),
            (None, 1)
        );
    }
    // Nor is an empty Content-Encoding.
    let app = Origin::answer(200, &[JSON, ("Content-Encoding", "")], big());
    let reply = Proxy::before(&app).get("/", &[("accept-encoding", "gzip")]);
    assert_eq!(reply.all("content-encoding"), ["gzip"]);
    assert!(reply.decoded() == big());
}

#[test]
fn an_h2_app_without_a_length_is_compressed() {
    let app = H2Origin::start(|mut call| async move {
        call.head(200, &[JSON], false)?;
        let size = if call.path() == "/long" {
            3 << 20
        } else {
            100 << 10
        };
        call.data(json_of(size), true).await
    });
    let proxy = Proxy::before(&app);
    for coding in CODINGS {
        for (path, size) in [("/whole", 100 << 10), ("/long", 3 << 20)] {
            for reply in proxy.both("GET", path, &[("accept-encoding", coding)]) {
                assert_eq!(reply.coding(), coding, "{path} over {}", reply.version);
                assert!(
                    reply.decoded() == json_of(size),
                    "{path} over {}",
                    reply.version
                );
            }
        }
    }
}

#[test]
fn bytes_behind_a_101_pass_untouched() {
    let app = Origin::start(|call| {
        let agreed = [
            JSON,
            ("Connection", "upgrade"),
            ("Upgrade", "chat"),
            ("ETag", "\"a\""),
        ];
        call.raw_head(101, &agreed)?;
        call.send(b"hello ")?;
        let heard = call.read_until(b"\n")?;
        call.send(heard)?;
        call.send(big())?;
        call.close()
    });
    let proxy = Proxy::with(&app, "upgrades: [websocket, chat]");
    let mut conn = proxy.conn();
    let fields = [EVERY, ("connection", "upgrade"), ("upgrade", "chat")];
    conn.request("GET", "/chat", &fields, b"");
    let head = conn.any_head().expect("an answer");
    assert!(head.line.contains(" 101 "), "{}", head.line);
    for (name, value) in [
        ("content-encoding", None),
        ("vary", None),
        ("etag", Some("\"a\"")),
    ] {
        assert_eq!(head.field(name), value);
    }
    assert_eq!(conn.read_until(b"hello "), b"hello ");
    conn.send(b"one line\n");
    assert!(conn.closed() == [b"one line\n", &big()[..]].concat());
}

#[test]
fn bytes_behind_the_200_to_an_extended_connect_pass_untouched() {
    // One frame each way: a short one of the client's, a long one of the app's.
    const MASKED: &[u8] = b"\x81\x82\0\0\0\0hi";
    let length = (big().len() as u64).to_be_bytes();
    let frame = [b"\x81\x7f", &length[..], &big()].concat();
    let sent = frame.clone();
    let app = Origin::start(move |call| {
        let accept = accept_for(call.head.field("sec-websocket-key").unwrap_or_default());
        let agreed = [
            JSON,
            ("Connection", "upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Accept", &accept),
        ];
        call.raw_head(101, &agreed)?;
        std::io::Read::read_exact(call.stream(), &mut [0; MASKED.len()])?;
        call.send(&sent)?;
        call.gone()
    });
    let proxy = Proxy::before(&app);
    let mut stream = proxy.h2().connect(
        "websocket",
        "/ws",
        &[EVERY, ("sec-websocket-version", "13")],
    );
    let head = stream.head().expect(200);
    assert_eq!(
        (head.header("content-encoding"), head.header("vary")),
        (None, None)
    );
    stream.send(MASKED, false);
    let mut came = Vec::new();
    while came.len() < frame.len() {
        came.extend(stream.piece().expect("more of the frame"));
    }
    assert!(came == frame);
}

/// RFC 6455 section 4.2.2.
fn accept_for(key: &str) -> String {
    use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
    use base64::Engine as _;
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    base64::prelude::BASE64_STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes()))
}
