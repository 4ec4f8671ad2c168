//! Vary says that Accept-Encoding mattered exactly where it could have.

use super::support::*;

const GZIP: (&str, &str) = ("accept-encoding", "gzip");

/// An app that answers with these fields and this body, and the proxy before it.
fn before(fields: Fields<'_>, body: Vec<u8>) -> (Origin, Proxy) {
    let app = Origin::answer(200, fields, body);
    let proxy = Proxy::before(&app);
    (app, proxy)
}

const JSON: (&str, &str) = ("Content-Type", "application/json");

#[test]
fn the_coded_and_the_plain_variant_both_say_it() {
    let (_app, proxy) = before(&[JSON], big());
    let asks = [
        &[GZIP][..],
        &[("accept-encoding", "br")],
        &[("accept-encoding", "zstd")],
        &[("accept-encoding", "identity")],
        &[("accept-encoding", "identity;q=1, gzip;q=0.5")],
        &[("accept-encoding", "")],
        &[("accept-encoding", "br;q=abc")],
        &[],
    ];
    for fields in asks {
        for method in ["GET", "HEAD", "POST"] {
            for reply in proxy.both(method, "/", fields) {
                assert_eq!(
                    reply.all("vary"),
                    ["Accept-Encoding"],
                    "{method} {fields:?}"
                );
            }
        }
    }
    let old = proxy.conn().get_1_0("/", &[]);
    assert_eq!(old.all("vary"), ["Accept-Encoding"]);
}

#[test]
fn what_is_plain_for_its_size_or_bytes_says_it_too() {
    // Another Accept-Encoding, with identity;q=0, would have got these coded.
    for body in [json_of(100), noise(64 * 1024)] {
        let (_app, proxy) = before(&[JSON], body);
        for reply in proxy.both("GET", "/", &[GZIP]) {
            assert_eq!((reply.coding(), reply.varies()), ("identity", 1));
        }
    }
}

#[test]
fn what_is_never_compressed_gets_none() {
    let png = ("Content-Type", "image/png");
    let never: [(&str, Vec<(&str, &str)>); 6] = [
        ("a type that is not listed", vec![png]),
        ("no type", vec![]),
        ("coded by the app", vec![JSON, ("Content-Encoding", "br")]),
        ("the app's word", vec![JSON, ("Thinwire-Compress", "off")]),
        ("an opt-out", vec![JSON, ("Content-Encoding", "identity")]),
        (
            "no-transform",
            vec![JSON, ("Cache-Control", "no-transform")],
        ),
    ];
    for (why, fields) in never {
        let (_app, proxy) = before(&fields, big());
        for reply in proxy.both("GET", "/", &[GZIP]) {
            assert_eq!(reply.all("vary"), [""; 0], "{why}");
            assert!(reply.body == big(), "{why}");
        }
        for reply in proxy.both("HEAD", "/", &[]) {
            assert_eq!(reply.all("vary"), [""; 0], "{why}");
        }
    }
    // What the app said of its image stays.
    let (_app, proxy) = before(&[png, ("Vary", "Accept")], noise(2000));
    for reply in proxy.both("GET", "/", &[GZIP]) {
        assert_eq!(reply.all("vary"), ["Accept"]);
    }
}

#[test]
fn a_route_that_is_off_adds_none() {
    let app = Origin::json(big());
    let proxy = Proxy::with(&app, "compress: { enabled: false }");
    for reply in proxy.both("GET", "/", &[GZIP]) {
        assert_eq!((reply.coding(), reply.all("vary")), ("identity", vec![]));
    }
}

#[test]
fn an_answer_without_a_body_of_its_own_gets_none() {
    for (status, fields) in [
        (204, vec![]),
        (206, vec![JSON, ("Content-Range", "bytes 0-9/99")]),
    ] {
        let app = Origin::answer(
            status,
            &fields,
            if status == 204 { "" } else { "0123456789" },
        );
        for reply in Proxy::before(&app).both("GET", "/", &[GZIP]) {
            assert_eq!(reply.all("vary"), [""; 0], "{status}");
        }
    }
    // Nor one that the proxy makes itself, which is the same for all.
    let app = Origin::json(big());
    let proxy = Setup::before(&app)
        .yaml()
        .replace("path: /", "path: /elsewhere");
    let reply = Proxy::start(&proxy).get("/", &[GZIP]).expect(404);
    assert_eq!(reply.all("vary"), [""; 0]);
}

#[test]
fn one_member_is_enough_and_the_apps_own_stay() {
    let table: [(&[&str], &[&str]); 9] = [
        (&["accept-encoding"], &["accept-encoding"]),
        (&["Accept-Encoding"], &["Accept-Encoding"]),
        (&["Origin, ACCEPT-ENCODING"], &["Origin, ACCEPT-ENCODING"]),
        (
            &["Origin", "Cookie, accept-encoding"],
            &["Origin", "Cookie, accept-encoding"],
        ),
        (&["*"], &["*"]),
        (&["Origin", "*"], &["Origin", "*"]),
        (&["Origin"], &["Origin, Accept-Encoding"]),
        (
            &["Origin", "Cookie"],
            &["Origin, Accept-Encoding", "Cookie"],
        ),
        (
            &["X-Accept-Encoding"],
            &["X-Accept-Encoding, Accept-Encoding"],
        ),
    ];
    for (from_app, to_client) in table {
        let mut fields = vec![JSON];
        fields.extend(from_app.iter().map(|line| ("Vary", *line)));
        let (_app, proxy) = before(&fields, big());
        for fields in [&[GZIP][..], &[]] {
            for reply in proxy.both("GET", "/", fields) {
                assert_eq!(
                    reply.all("vary"),
                    to_client,
                    "{from_app:?} {}",
                    reply.version
                );
            }
        }
    }
}

#[test]
fn a_304_varies_as_the_200_does_that_it_stands_for() {
    let app = Origin::answer(304, &[JSON, ("ETag", "\"a\"")], "");
    let proxy = Proxy::before(&app);
    for tag in ["\"a\"", "\"a-gzip\""] {
        for reply in proxy.both("GET", "/", &[GZIP, ("if-none-match", tag)]) {
            assert_eq!((reply.status, reply.varies()), (304, 1), "{tag}");
        }
    }
}
