//! Which coding an answer gets: Accept-Encoding as RFC 9110 section 12.5.3 has it.

use super::support::wire::Framing;
use super::support::*;

/// What a client says, and the coding that it gets; the policy's order is zstd, br, gzip.
const SAID: [(&str, &str); 34] = [
    // The client's weight wins, then the policy's order.
    ("gzip;q=0.4, br;q=0.6", "br"),
    ("gzip, deflate, br, zstd", "zstd"),
    ("gzip, br", "br"),
    ("gzip;q=0.8, br;q=0.8, zstd;q=0.7", "br"),
    ("gzip;q=1.0, br;q=0.999, zstd;q=0.999", "gzip"),
    ("gzip;q=0.001", "gzip"),
    // Refused, or plain is liked better.
    ("gzip;q=0", "identity"),
    ("gzip;q=0.000, br;q=0", "identity"),
    ("gzip;q=0, br", "br"),
    ("identity;q=1, gzip;q=0.5", "identity"),
    ("identity", "identity"),
    ("", "identity"),
    // Plain liked as much as a coding is no wish for plain.
    ("gzip, identity", "gzip"),
    ("identity, gzip;q=1.0", "gzip"),
    ("identity;q=0.5, gzip;q=0.5", "gzip"),
    // A star speaks for what is not named.
    ("*;q=0, gzip", "gzip"),
    ("identity;q=1, *;q=0", "identity"),
    ("*", "zstd"),
    ("zstd;q=0, *", "br"),
    ("gzip, *;q=0.1", "gzip"),
    // Names in any letter case, whole, and one old one.
    ("GZIP", "gzip"),
    ("Br", "br"),
    ("x-gzip", "gzip"),
    ("X-Gzip;Q=0.5", "gzip"),
    ("my-gzip", "identity"),
    ("gzipped, gzi, xgzip", "identity"),
    ("deflate", "identity"),
    ("compress, exi, pack200-gzip", "identity"),
    // No dictionary is at hand.
    ("dcb, dcz, br", "br"),
    ("dcb, dcz", "identity"),
    // What is no weight is not used, and no error.
    ("br;q=abc", "identity"),
    ("br;q=abc, gzip;q=0.1", "gzip"),
    ("br;q=1.5, zstd;q=-1, gzip", "gzip"),
    (" , ,, gzip ;q=0.5 , ", "gzip"),
];

#[test]
fn the_client_gets_the_coding_that_it_likes_best() {
    let app = Origin::json(big());
    let proxy = Proxy::before(&app);
    let (mut conn, h2) = (proxy.conn(), proxy.h2());
    for (said, coding) in SAID {
        let fields = &[("accept-encoding", said)][..];
        for reply in [conn.get("/", fields), h2.get("/", fields)] {
            let reply = reply.expect(200);
            let version = &reply.version;
            assert_eq!(reply.coding(), coding, "{said} over {version}");
            assert!(reply.decoded() == big(), "{said} over {version}");
            assert_eq!(reply.varies(), 1, "{said} over {version}");
        }
    }
}

#[test]
fn without_the_field_the_answer_is_plain_to_the_byte() {
    let app = Origin::json(big());
    let proxy = Proxy::before(&app);
    let replies = proxy.both("GET", "/", &[]);
    for reply in &replies {
        assert_eq!(reply.header("content-encoding"), None);
        assert!(reply.body == big());
        let length = big().len().to_string();
        assert_eq!(reply.header("content-length"), Some(length.as_str()));
    }
    assert_eq!(replies[0].framing, Framing::Length(big().len() as u64));
}

#[test]
fn several_lines_are_one_list() {
    let app = Origin::json(big());
    let proxy = Proxy::before(&app);
    let lines = [("accept-encoding", "gzip;q=0.5"), ("accept-encoding", "br")];
    for reply in proxy.both("GET", "/", &lines) {
        assert_eq!(reply.coding(), "br", "{}", reply.version);
    }
}

#[test]
fn a_client_that_refuses_plain_gets_small_bodies_coded() {
    let small = json_of(100);
    let app = Origin::json(small.clone());
    let proxy = Proxy::before(&app);
    for coding in CODINGS {
        for said in [
            format!("{coding}, identity;q=0"),
            format!("*;q=0, {coding}"),
        ] {
            for reply in proxy.both("GET", "/", &[("accept-encoding", &said)]) {
                assert_eq!(reply.coding(), coding, "{said} over {}", reply.version);
                assert_eq!(reply.decoded(), small);
            }
        }
        // One that merely takes it does not.
        let reply = proxy.get("/", &[("accept-encoding", coding)]);
        assert_eq!((reply.coding(), &reply.body), ("identity", &small));
    }
}

#[test]
fn a_client_that_refuses_plain_gets_even_noise_coded() {
    let app = Origin::json(noise(300));
    let proxy = Proxy::before(&app);
    for coding in CODINGS {
        let said = format!("{coding}, identity;q=0");
        for reply in proxy.both("GET", "/", &[("accept-encoding", &said)]) {
            assert_eq!(reply.coding(), coding, "{}", reply.version);
            assert_eq!(reply.decoded(), noise(300));
        }
    }
}

#[test]
fn what_was_executed_is_answered_plain_rather_than_not_at_all() {
    let app = Origin::json(big());
    let proxy = Proxy::before(&app);
    for said in ["identity;q=0", "*;q=0", "identity;q=0, my-gzip"] {
        let fields = &[("accept-encoding", said)][..];
        let (before, body) = (app.requests().len(), b"order=1");
        let replies = [
            proxy.ask("POST", "/orders", fields, body),
            proxy.h2().ask("POST", "/orders", fields, body),
        ];
        for reply in replies {
            let reply = reply.expect(200);
            assert_eq!(reply.header("content-encoding"), None, "{said}");
            assert!(reply.body == big(), "{said}");
        }
        let executed = &app.requests()[before..];
        let bodies: Vec<_> = executed.iter().map(|seen| seen.body.as_slice()).collect();
        assert_eq!(bodies, [body, body], "{said}");
    }
}

#[test]
fn every_method_with_an_answer_is_negotiated() {
    let app = Origin::json(big());
    let proxy = Proxy::before(&app);
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"] {
        for reply in proxy.both(method, "/", &[("accept-encoding", "br")]) {
            assert_eq!(reply.coding(), "br", "{method} over {}", reply.version);
            assert!(reply.decoded() == big());
        }
    }
}

#[test]
fn the_policys_order_and_choice_are_the_routes() {
    let app = Origin::json(big());
    let proxy = Setup::before(&app)
        .routes_before(
            "- { name: a, match: { path: /a }, upstream: app, compress: { encodings: [br, gzip] } }\n\
             - { name: b, match: { path: /b }, upstream: app, compress: { encodings: [gzip] } }",
        )
        .start();
    let every = &[("accept-encoding", "gzip, br, zstd")][..];
    for (path, coding) in [("/a", "br"), ("/b", "gzip"), ("/", "zstd")] {
        assert_eq!(proxy.get(path, every).coding(), coding, "{path}");
    }
    // The client's weight still comes first, and a star means what the policy has.
    let gzip = &[("accept-encoding", "gzip, br;q=0.9, zstd")][..];
    assert_eq!(proxy.get("/a", gzip).coding(), "gzip");
    let star = &[("accept-encoding", "*")][..];
    assert_eq!(proxy.get("/b", star).coding(), "gzip");
    let zstd = &[("accept-encoding", "zstd")][..];
    let reply = proxy.get("/b", zstd);
    assert_eq!((reply.coding(), reply.varies()), ("identity", 1));
}

#[test]
fn the_app_is_asked_for_plain_whatever_the_client_said() {
    let app = Origin::json(big());
    let proxy = Setup::before(&app)
        .routes_before(
            "- { name: off, match: { path: /off }, upstream: app, compress: { enabled: false } }",
        )
        .start();
    let lines = [("accept-encoding", "br"), ("accept-encoding", "gzip;q=0.5")];
    for fields in [&lines[..], &lines[..1], &[]] {
        for _ in proxy.both("GET", "/", fields) {
            assert_eq!(app.last().head.all("accept-encoding"), ["identity"]);
        }
    }
    // A route that is off leaves it to the two of them.
    proxy.get("/off", &lines);
    assert_eq!(app.last().head.all("accept-encoding"), ["br", "gzip;q=0.5"]);
    proxy.get("/off", &[]);
    assert_eq!(app.last().head.field("accept-encoding"), None);
}

#[test]
fn http_1_0_gets_a_coding_only_with_its_length() {
    let app = Origin::start(|call| match call.path() {
        "/whole" => call.answer(200, &[("Content-Type", "application/json")], &big()),
        "/long" => call.answer(
            200,
            &[("Content-Type", "application/json")],
            &json_of(3 << 20),
        ),
        _ => {
            call.chunked(200, &[("Content-Type", "text/event-stream")])?;
            call.chunk("data: 1\n\n".repeat(200))?;
            call.end()
        }
    });
    let proxy = Proxy::with(&app, PATIENT);
    for coding in CODINGS {
        let fields = &[("Accept-Encoding", coding)][..];
        let whole = proxy.conn().get_1_0("/whole", fields).expect(200);
        assert_eq!((whole.coding(), whole.varies()), (coding, 1));
        assert_eq!(whole.framing, Framing::Length(whole.body.len() as u64));
        assert!(whole.decoded() == big());
        // What could only be streamed is plain, and a dropped connection no end of it where it
        // has a length.
        let long = proxy.conn().get_1_0("/long", fields).expect(200);
        assert_eq!(
            (long.coding(), long.framing),
            ("identity", Framing::Length(long.body.len() as u64))
        );
        assert!(long.body == json_of(3 << 20));
        let events = proxy.conn().get_1_0("/events", fields).expect(200);
        assert_eq!(
            (events.coding(), events.framing),
            ("identity", Framing::Close)
        );
        assert_eq!(events.text(), "data: 1\n\n".repeat(200));
    }
    let line = proxy.access("/long");
    assert_eq!(
        (&line["reason"], &line["protocol"]),
        (&"version".into(), &"HTTP/1.0".into())
    );
}
