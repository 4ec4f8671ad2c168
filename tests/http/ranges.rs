//! Ranges are of plain bytes, and never of ours.

use super::support::*;

const JSON: (&str, &str) = ("Content-Type", "application/json");
const GZIP: (&str, &str) = ("accept-encoding", "gzip, br, zstd");

/// An app with one resource of big JSON, tagged and dated, that serves one range at a time.
fn ranged() -> Origin {
    Origin::start(|call| {
        let body = big();
        let range = call.head.field("range").and_then(|range| {
            let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
            let first: usize = first.parse().ok()?;
            Some((
                first,
                last.parse().unwrap_or(body.len() - 1).min(body.len() - 1),
            ))
        });
        let own = [
            JSON,
            ("ETag", "\"a\""),
            ("Accept-Ranges", "bytes"),
            ("Last-Modified", DATE),
        ];
        let holds = call
            .head
            .field("if-range")
            .is_none_or(|held| held == "\"a\"" || held == DATE);
        match range.filter(|_| holds) {
            None => call.answer(200, &own, &body),
            Some((first, last)) if first <= last => {
                let range = format!("bytes {first}-{last}/{}", body.len());
                let fields = [&own[..], &[("Content-Range", &range)]].concat();
                call.answer(206, &fields, &body[first..=last])
            }
            Some(_) => {
                let range = format!("bytes */{}", body.len());
                call.answer(416, &[JSON, ("Content-Range", &range)], &json_of(2000))
            }
        }
    })
}

const DATE: &str = "Sat, 29 Oct 1994 19:43:31 GMT";

#[test]
fn a_part_passes_untouched() {
    let app = ranged();
    let proxy = Proxy::before(&app);
    for range in ["bytes=0-", "bytes=5000-60000", "bytes=102000-"] {
        for reply in proxy.both("GET", "/", &[GZIP, ("range", range)]) {
            let reply = reply.expect(206);
            assert_eq!(app.last().head.field("range"), Some(range));
            assert_eq!(reply.header("content-encoding"), None);
            assert_eq!(reply.header("etag"), Some("\"a\""));
            assert_eq!(reply.header("accept-ranges"), Some("bytes"));
            let stated = reply.header("content-range").expect("a Content-Range");
            let (first, last) = stated["bytes ".len()..]
                .split('/')
                .next()
                .unwrap()
                .split_once('-')
                .unwrap();
            let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
            assert!(
                reply.body == big()[first..=last],
                "{range} over {}",
                reply.version
            );
            let length = (last - first + 1).to_string();
            assert_eq!(reply.header("content-length"), Some(length.as_str()));
        }
    }
    assert_eq!(proxy.access("/")["reason"], "range");
}

#[test]
fn ten_parts_joined_are_the_plain_body() {
    let app = ranged();
    let proxy = Proxy::before(&app);
    let (mut conn, h2) = (proxy.conn(), proxy.h2());
    let whole = proxy.get("/", &[GZIP]);
    assert_ne!(whole.coding(), "identity");
    let (mut first, mut second) = (Vec::new(), Vec::new());
    let part = big().len().div_ceil(10);
    for number in 0..10 {
        let range = format!("bytes={}-{}", number * part, (number + 1) * part - 1);
        let fields = [GZIP, ("range", &range)];
        first.extend(conn.get("/", &fields).expect(206).body);
        second.extend(h2.get("/", &fields).expect(206).body);
    }
    assert!(first == big() && second == big());
    assert!(whole.decoded() == first);
}

#[test]
fn several_parts_in_one_body_pass_untouched() {
    let part = |range: &str, text: &str| {
        format!(
            "--B\r\nContent-Type: application/json\r\nContent-Range: bytes {range}/102400\r\n\r\n{text}\r\n"
        )
    };
    let body =
        part("0-999", &"a".repeat(1000)) + &part("5000-5999", &"b".repeat(1000)) + "--B--\r\n";
    // Text, so that only its status keeps it plain.
    for kind in ["multipart/byteranges; boundary=B", "text/plain"] {
        let app = Origin::answer(206, &[("Content-Type", kind)], body.clone());
        let proxy = Proxy::before(&app);
        for reply in proxy.both("GET", "/", &[GZIP, ("range", "bytes=0-999,5000-5999")]) {
            let reply = reply.expect(206);
            assert_eq!(
                (reply.header("content-type"), reply.coding()),
                (Some(kind), "identity")
            );
            assert!(reply.body == body.as_bytes());
        }
    }
}

#[test]
fn an_unsatisfiable_range_is_told_plain() {
    let app = ranged();
    let proxy = Proxy::before(&app);
    for reply in proxy.both("GET", "/", &[GZIP, ("range", "bytes=200000-")]) {
        let reply = reply.expect(416);
        let range = format!("bytes */{}", big().len());
        assert_eq!(reply.header("content-range"), Some(range.as_str()));
        assert_eq!(
            (reply.coding(), reply.decoded()),
            ("identity", json_of(2000))
        );
    }
}

#[test]
fn an_app_that_ignores_ranges_is_compressed_as_ever() {
    let app = Origin::json(big());
    let proxy = Proxy::before(&app);
    for reply in proxy.both(
        "GET",
        "/",
        &[("accept-encoding", "gzip"), ("range", "bytes=0-99")],
    ) {
        assert_eq!(reply.expect(200).coding(), "gzip");
    }
}

#[test]
fn a_coded_body_offers_no_ranges_and_a_plain_one_those_of_the_app() {
    let app = ranged();
    let proxy = Proxy::before(&app);
    for coding in CODINGS {
        for method in ["GET", "HEAD"] {
            for reply in proxy.both(method, "/", &[("accept-encoding", coding)]) {
                assert_eq!(
                    (reply.coding(), reply.header("accept-ranges")),
                    (coding, None)
                );
            }
        }
    }
    for reply in proxy.both("GET", "/", &[]) {
        assert_eq!(reply.header("accept-ranges"), Some("bytes"));
    }
}

#[test]
fn if_range_gets_a_part_only_where_it_surely_means_plain_bytes() {
    let app = ranged();
    let proxy = Proxy::before(&app);
    let takes = "gzip, br, zstd";
    let table = [
        ("\"a\"", takes, 206),
        ("\"a\"", "identity", 206),
        // Our forms, also after the client has changed its mind.
        ("\"a-gzip\"", takes, 200),
        ("\"a-br\"", takes, 200),
        ("\"a-zstd\"", "identity", 200),
        // Weak tags are no validators of bytes.
        ("W/\"a\"", takes, 200),
        ("W/\"a\"", "identity", 200),
        ("W/\"a-gzip\"", takes, 200),
        // A date is the same for both, so it tells them apart only for who takes no coding.
        (DATE, takes, 200),
        (DATE, "gzip;q=0.1", 200),
        (DATE, "identity", 206),
        // Changed since.
        ("\"b\"", takes, 200),
    ];
    for (held, accept, status) in table {
        let fields = [
            ("accept-encoding", accept),
            ("range", "bytes=0-99"),
            ("if-range", held),
        ];
        for reply in proxy.both("GET", "/", &fields) {
            let reply = reply.expect(status);
            let case = format!("{held} with {accept} over {}", reply.version);
            if status == 206 {
                assert!(reply.body == big()[..100], "{case}");
            } else {
                assert!(reply.decoded() == big(), "{case}");
                assert_eq!(reply.coding() == "identity", accept == "identity", "{case}");
            }
        }
    }
}

#[test]
fn if_range_without_a_range_changes_nothing() {
    let app = ranged();
    let proxy = Proxy::before(&app);
    for held in ["\"a\"", "\"a-gzip\"", "W/\"a\""] {
        for reply in proxy.both(
            "GET",
            "/",
            &[("accept-encoding", "gzip"), ("if-range", held)],
        ) {
            assert_eq!(reply.expect(200).coding(), "gzip", "{held}");
        }
    }
}

#[test]
fn a_route_that_is_off_leaves_if_range_to_the_app() {
    let app = ranged();
    let proxy = Proxy::with(&app, "compress: { enabled: false }");
    let fields = [GZIP, ("range", "bytes=0-99"), ("if-range", DATE)];
    for reply in proxy.both("GET", "/", &fields) {
        assert!(reply.expect(206).body == big()[..100]);
        assert_eq!(app.last().head.field("if-range"), Some(DATE));
    }
}
