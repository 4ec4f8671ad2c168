//! Requests that a copy answers in another way than whole: 304, HEAD, parts.

use super::*;

const KEPT: Fields<'_> = &[
    ("Cache-Control", "max-age=600"),
    ("ETag", "\"a\""),
    ("Last-Modified", "Sat, 29 Oct 1994 19:43:31 GMT"),
];

#[test]
fn a_304_comes_from_here_with_the_tag_that_the_client_holds() {
    let app = json(KEPT);
    let proxy = caching(&app);
    proxy.get("/x", &[]).expect(200);
    for held in ["\"a\"", "\"a-gzip\"", "\"a-br\"", "\"b\", \"a-zstd\""] {
        let fields = [("accept-encoding", "gzip, br"), ("if-none-match", held)];
        let reply = proxy.get("/x", &fields).expect(304);
        is_hit(&reply);
        let form = held.rsplit(", ").next();
        assert_eq!(reply.header("etag"), form, "{held}");
        assert_eq!(reply.header("content-type"), None);
        assert_eq!(reply.varies(), 1, "as the 200 that it stands for");
    }
    let since = [("if-modified-since", "Sun, 30 Oct 1994 19:43:31 GMT")];
    proxy.get("/x", &since).expect(304);
    let other = [("if-none-match", "\"other-gzip\""), since[0]];
    proxy.get("/x", &other).expect(200);
    assert_eq!(app.requests().len(), 1);
}

#[test]
fn a_client_that_revalidates_fills_an_empty_cache() {
    let app = json(KEPT);
    let proxy = caching(&app);
    let held = [("accept-encoding", "gzip"), ("if-none-match", "\"a-gzip\"")];
    let reply = proxy.get("/x", &held).expect(304);
    assert_eq!(reply.header("etag"), Some("\"a-gzip\""));
    assert_eq!(app.last().head.field("if-none-match"), None);
    proxy.until("thinwire_cache_bytes", &[("coding", "identity")], |bytes| {
        bytes > 0.0
    });
    is_hit(&proxy.get("/x", &[]));
    assert_eq!(app.requests().len(), 1);
}

#[test]
fn what_guards_a_write_goes_to_the_app() {
    let app = json(KEPT);
    let proxy = caching(&app);
    proxy.get("/x", &[]);
    let reply = proxy.get("/x", &[("if-match", "\"a-gzip\"")]);
    assert_eq!(said(&reply), "thinwire; fwd=bypass");
    assert_eq!(app.last().head.field("if-match"), Some("\"a\", \"a-gzip\""));
}

#[test]
fn head_is_answered_from_get() {
    let app = json(KEPT);
    let proxy = caching(&app);
    proxy.get("/x", &[]);
    let plain = proxy.ask("HEAD", "/x", &[], b"").expect(200);
    assert_eq!(
        plain.header("content-length"),
        Some(&*big().len().to_string())
    );
    let coded = proxy.ask("HEAD", "/x", &[("accept-encoding", "br")], b"");
    assert_eq!(
        (coded.coding(), coded.header("etag")),
        ("br", Some("\"a-br\""))
    );
    assert_eq!(coded.header("content-length"), None);
    for reply in [&plain, &coded] {
        is_hit(reply);
        assert!(reply.body.is_empty());
    }
    assert_eq!(app.requests().len(), 1);
}

#[test]
fn parts_come_from_a_whole_plain_copy() {
    let app = json(KEPT);
    let proxy = caching(&app);
    proxy.get("/x", &[("accept-encoding", "gzip")]);
    let (body, mut joined) = (big(), Vec::new());
    let size = body.len().div_ceil(10);
    for start in (0..body.len()).step_by(size) {
        let range = format!("bytes={start}-{}", start + size - 1);
        let fields = [("range", &*range), ("accept-encoding", "gzip, br")];
        let reply = proxy.get("/x", &fields).expect(206);
        is_hit(&reply);
        assert_eq!(
            (reply.coding(), reply.header("etag")),
            ("identity", Some("\"a\""))
        );
        let end = (start + size).min(body.len()) - 1;
        let expected = format!("bytes {start}-{end}/{}", body.len());
        assert_eq!(reply.header("content-range"), Some(&*expected));
        joined.extend_from_slice(&reply.body);
    }
    assert_eq!(joined, body);
    let reply = proxy.get("/x", &[("range", "bytes=999999-")]).expect(416);
    let expected = format!("bytes */{}", body.len());
    assert_eq!(reply.header("content-range"), Some(&*expected));
    for (condition, status) in [
        ("\"a\"", 206),
        ("\"b\"", 200),
        ("W/\"a\"", 200),
        ("\"a-gzip\"", 200),
    ] {
        let fields = [("range", "bytes=0-9"), ("if-range", condition)];
        proxy.get("/x", &fields).expect(status);
    }
    proxy.get("/x", &[("range", "bytes=0-1, 4-5")]).expect(200);
    assert_eq!(app.requests().len(), 1);
}

#[test]
fn a_part_that_no_copy_has_is_the_apps_and_kept_by_nobody() {
    let app = Origin::start(|call| {
        call.body()?;
        let fields = [("Cache-Control", "max-age=600"), ("ETag", "\"a\"")];
        match asked(call, "range") {
            None => call.answer(200, &fields, b"0123456789"),
            Some(_) => {
                let range = [("Content-Range", "bytes 2-4/10")];
                call.answer(206, &[&fields[..], &range].concat(), b"234")
            }
        }
    });
    let proxy = caching(&app);
    let reply = proxy.get("/x", &[("range", "bytes=2-4")]).expect(206);
    assert_eq!(reply.body, b"234");
    let whole = proxy.get("/x", &[]).expect(200);
    assert_eq!(whole.body, b"0123456789");
    assert!(said(&whole).contains("fwd=uri-miss"));
}
