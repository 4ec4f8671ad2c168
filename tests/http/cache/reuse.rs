//! Same bytes, same work: also where nothing may be cached.

use super::*;

const GZIP: Fields<'_> = &[("accept-encoding", "gzip")];

fn encodes(proxy: &Proxy) -> f64 {
    proxy.metrics().sum("thinwire_encodes_total", &[])
}

#[test]
fn identical_answers_are_coded_once_and_the_app_is_asked_each_time() {
    let app = json(&[("Cache-Control", "no-store")]);
    let proxy = Proxy::before(&app);
    for number in 0..5 {
        let path = format!("/{number}");
        let reply = proxy.get(&path, GZIP);
        assert_eq!((reply.coding(), reply.decoded()), ("gzip", big()));
        assert_eq!(reply.header("cache-status"), None, "caching is off");
        let line = proxy.access(&path);
        let expected = if number == 0 {
            serde_json::Value::Null
        } else {
            "reuse".into()
        };
        assert_eq!(line["cache"], expected);
        assert_eq!(
            (line["coding"].as_str(), line["reason"].as_str()),
            (Some("gzip"), Some("compressed"))
        );
        assert_eq!(line["bytes_before"], big().len());
    }
    assert_eq!((encodes(&proxy), app.requests().len()), (1.0, 5));
    let labels = [("route", "everything"), ("result", "reuse")];
    proxy.until("thinwire_cache_requests_total", &labels, |count| {
        count == 4.0
    });
    proxy.get("/br", &[("accept-encoding", "br")]);
    assert_eq!(encodes(&proxy), 2.0, "another coding");
}

#[test]
fn one_other_byte_is_another_body() {
    let app = Origin::start(|call| {
        call.body()?;
        let mut body = big();
        let last = body.len() - 2;
        body[last] = call.path().as_bytes()[1];
        call.answer(200, &[("Content-Type", "application/json")], &body)
    });
    let proxy = Proxy::before(&app);
    for path in ["/a", "/b", "/c"] {
        let mut expected = big();
        let last = expected.len() - 2;
        expected[last] = path.as_bytes()[1];
        assert_eq!(proxy.get(path, GZIP).decoded(), expected);
    }
    assert_eq!(encodes(&proxy), 3.0);
}

#[test]
fn where_it_is_off_or_lengths_are_hidden_nothing_is_reused() {
    for route in [
        "cache: { reuse: false }",
        "compress: { breach: { pad: 64B } }",
    ] {
        let app = json(&[]);
        let proxy = Proxy::with(&app, route);
        for _ in 0..3 {
            assert_eq!(proxy.get("/x", GZIP).decoded(), big());
        }
        assert_eq!(encodes(&proxy), 3.0, "{route}");
    }
}

#[test]
fn routes_that_hide_what_they_compress_share_with_none() {
    let app = json(&[]);
    let proxy = Setup::before(&app)
        .routes_before(
            "- name: guarded\n  match: { path: /guarded }\n  upstream: app\n\
             \x20 compress: { breach: { cross_site: plain } }",
        )
        .start();
    for path in ["/open", "/guarded", "/open", "/guarded"] {
        proxy.get(path, GZIP);
    }
    assert_eq!(encodes(&proxy), 2.0);
}

#[test]
fn it_is_bounded_by_the_memory() {
    let app = Origin::start(|call| {
        call.body()?;
        let body = [call.path().as_bytes(), &big()[..20_000]].concat();
        call.answer(200, &[("Content-Type", "application/json")], &body)
    });
    let proxy = Setup::before(&app).top("cache: { memory: 256KiB }").start();
    let mut conn = proxy.conn();
    for number in 0..300 {
        conn.get(&format!("/{number}"), GZIP).expect(200);
    }
    let held = proxy.metrics().sum("thinwire_cache_bytes", &[]);
    assert!(held > 0.0 && held <= 256.0 * 1024.0, "{held}");
}
