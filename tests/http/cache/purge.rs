//! `POST /cache/purge` on the admin address.

use super::*;
use crate::support::Conn;

fn purge(proxy: &Proxy, fields: Fields<'_>, body: &str) -> Reply {
    let json = [("content-type", "application/json")];
    let fields = [&json, fields].concat();
    Conn::open(proxy.admin_addr()).ask("POST", "/cache/purge", &fields, body.as_bytes())
}

#[track_caller]
fn purged(proxy: &Proxy, body: &str) -> u64 {
    let reply = purge(proxy, &[], body).expect(200);
    reply.json()["purged"].as_u64().expect("a number")
}

fn tagged() -> Origin {
    Origin::start(|call| {
        call.body()?;
        let tags = match call.path() {
            "/a/1" => ("Surrogate-Key", "red blue"),
            _ => ("Cache-Tag", "blue, green"),
        };
        let json = ("Content-Type", "application/json");
        call.answer(200, &[tags, json, ("Cache-Control", "max-age=600")], &big())
    })
}

fn fill(proxy: &Proxy, targets: &[&str]) {
    for target in targets {
        for coding in ["identity", "gzip", "br"] {
            proxy
                .get(target, &[("accept-encoding", coding)])
                .expect(200);
        }
    }
}

#[test]
fn every_coding_of_the_url_is_gone() {
    let app = tagged();
    let proxy = caching(&app);
    fill(&proxy, &["/a/1", "/a/2"]);
    let url = format!(r#"{{"url": "{}"}}"#, proxy.url("/a/1"));
    assert_eq!(purged(&proxy, &url), 1, "objects, not variants");
    assert_eq!(purged(&proxy, &url), 0);
    is_hit(&proxy.get("/a/2", &[("accept-encoding", "gzip")]));
    let anew = proxy.get("/a/1", &[("accept-encoding", "gzip")]);
    assert!(said(&anew).contains("fwd=uri-miss"), "{}", said(&anew));
    assert_eq!(app.requests().len(), 3);
}

#[test]
fn prefixes_and_tags_take_all_that_they_name() {
    let app = tagged();
    let proxy = caching(&app);
    let all = ["/a/1", "/a/2", "/b"];
    fill(&proxy, &all);
    let prefix = format!(r#"{{"prefix": "{}"}}"#, proxy.url("/a/"));
    assert_eq!(purged(&proxy, &prefix), 2);
    is_hit(&proxy.get("/b", &[]));
    fill(&proxy, &all);
    assert_eq!(purged(&proxy, r#"{"tag": "red"}"#), 1);
    assert_eq!(purged(&proxy, r#"{"tag": "green"}"#), 2);
    assert_eq!(purged(&proxy, r#"{"tag": "blue"}"#), 0);
    fill(&proxy, &all);
    assert_eq!(purged(&proxy, r#"{"tag": "blue"}"#), 3);
    let held = proxy.metrics().sum("thinwire_cache_bytes", &[]);
    assert_eq!(held, 0.0);
}

#[test]
fn a_url_is_purged_in_the_form_that_its_route_keeps() {
    let app = counting(&[("Cache-Control", "max-age=600")]);
    let proxy = caching_with(&app, "query: none");
    proxy.get("/x?any", &[]);
    let url = format!(r#"{{"url": "{}"}}"#, proxy.url("/x?other"));
    assert_eq!(purged(&proxy, &url), 1);
}

#[test]
fn what_is_no_purge_is_refused() {
    let app = counting(&[("Cache-Control", "max-age=600")]);
    let proxy = caching(&app);
    for body in [
        "",
        "{}",
        r#"{"url": "/x"}"#,
        r#"{"url": 1}"#,
        r#"{"tag": "a", "url": "http://a/"}"#,
    ] {
        purge(&proxy, &[], body).expect(400);
    }
    let mut conn = Conn::open(proxy.admin_addr());
    conn.ask(
        "POST",
        "/cache/purge",
        &[("content-type", "text/plain")],
        br#"{"tag": "a"}"#,
    )
    .expect(400);
    let reply = conn.get("/cache/purge", &[]).expect(405);
    assert_eq!(reply.header("allow"), Some("POST"));
    for elsewhere in [
        ("origin", "https://evil.example"),
        ("sec-fetch-site", "cross-site"),
    ] {
        purge(&proxy, &[elsewhere], r#"{"tag": "a"}"#).expect(403);
    }
    purge(&proxy, &[("host", "evil.example")], r#"{"tag": "a"}"#).expect(403);
}

#[test]
fn with_a_token_only_its_bearer_purges() {
    let app = counting(&[("Cache-Control", "max-age=600")]);
    let yaml = Setup::before(&app).route(ON).yaml();
    let yaml = yaml.replace(
        "  address: 127.0.0.1:0\nlog",
        "  address: 127.0.0.1:0\n  token: secret\nlog",
    );
    let proxy = Proxy::start(&yaml);
    purge(&proxy, &[], r#"{"tag": "a"}"#).expect(401);
    purge(
        &proxy,
        &[("authorization", "Bearer wrong")],
        r#"{"tag": "a"}"#,
    )
    .expect(401);
    purge(
        &proxy,
        &[("authorization", "Bearer secret")],
        r#"{"tag": "a"}"#,
    )
    .expect(200);
}

#[test]
fn an_answer_from_before_a_purge_is_not_kept_after_it() {
    let (asked_for, go) = (crate::support::Signal::new(), crate::support::Signal::new());
    let count = std::sync::atomic::AtomicUsize::new(0);
    let app = {
        let (asked_for, go) = (asked_for.clone(), go.clone());
        Origin::start(move |call| {
            call.body()?;
            let number = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            if number == 0 {
                asked_for.fire();
                call.wait(&go);
            }
            call.answer(
                200,
                &[("Cache-Control", "max-age=600")],
                number.to_string().as_bytes(),
            )
        })
    };
    let proxy = caching(&app);
    let mut conn = proxy.conn();
    conn.request("GET", "/x", &[], b"");
    asked_for.wait();
    purged(&proxy, &format!(r#"{{"url": "{}"}}"#, proxy.url("/x")));
    go.fire();
    assert_eq!(conn.reply().body, b"0");
    assert_eq!(proxy.get("/x", &[]).body, b"1");
}
