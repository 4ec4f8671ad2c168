//! Attempts to give one client what was made for another, or for nobody.

use super::*;
use crate::support::Conn;

const FRESH: (&str, &str) = ("Cache-Control", "max-age=600");

/// An app that tells which host it was asked for.
fn hosts() -> Origin {
    Origin::start(|call| {
        call.body()?;
        let host = asked(call, "host").unwrap_or("-").to_owned();
        let tag = ("ETag", "\"same\"");
        call.answer(
            200,
            &[FRESH, tag, ("Surrogate-Key", "red")],
            host.as_bytes(),
        )
    })
}

#[test]
fn two_hosts_in_one_request_are_refused_and_nothing_is_kept() {
    let app = hosts();
    let proxy = caching(&app);
    for fields in [
        "Host: a.example\r\nHost: evil.example\r\n",
        "Host: a.example, evil.example\r\n",
        "Host: a.example\r\n evil.example\r\n",
        "Host : evil.example\r\nHost: a.example\r\n",
    ] {
        let mut conn = proxy.conn();
        conn.send(format!("GET /x HTTP/1.1\r\n{fields}\r\n"));
        conn.reply().expect(400);
    }
    let reply = proxy.get("/x", &[("host", "a.example")]);
    assert_eq!(
        (reply.body, app.requests().len()),
        (b"a.example".to_vec(), 1)
    );
}

#[test]
fn what_is_left_of_a_request_is_no_second_one() {
    let app = hosts();
    let proxy = caching(&app);
    let inner = "GET /x HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    for head in [
        format!(
            "Content-Length: {}\r\nTransfer-Encoding: chunked\r\n",
            inner.len() + 5
        ),
        format!("Content-Length: 0\r\nContent-Length: {}\r\n", inner.len()),
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n".to_owned(),
    ] {
        let mut conn = proxy.conn();
        conn.send(format!(
            "POST /y HTTP/1.1\r\nHost: a.example\r\n{head}\r\n0\r\n\r\n{inner}"
        ));
        let reply = conn.reply();
        assert!(
            (400..=501).contains(&reply.status),
            "{head}: {}",
            reply.status
        );
        let after = String::from_utf8_lossy(&conn.closed()).into_owned();
        assert!(!after.contains("HTTP/1.1"), "{head}: {after}");
    }
    assert_eq!(proxy.get("/x", &[("host", "a.example")]).body, b"a.example");
    assert_eq!(app.requests().len(), 1);
}

#[test]
fn tags_of_one_host_mean_nothing_for_another() {
    let app = hosts();
    let proxy = caching(&app);
    for host in ["a.example", "b.example"] {
        proxy.get("/x", &[("host", host)]);
    }
    for host in ["a.example", "b.example"] {
        let held = proxy.get("/x", &[("host", host), ("if-none-match", "\"same\"")]);
        held.expect(304);
        let whole = proxy.get("/x", &[("host", host), ("if-none-match", "\"other\"")]);
        is_hit(&whole);
        assert_eq!(whole.text(), host, "each has its own");
    }
    assert_eq!(app.requests().len(), 2);
    // An operator's tag is one for all hosts: more is forgotten, and nothing mixed up.
    let mut admin = Conn::open(proxy.admin_addr());
    let json = [("content-type", "application/json")];
    let reply = admin.ask("POST", "/cache/purge", &json, br#"{"tag": "red"}"#);
    assert_eq!(reply.expect(200).json()["purged"], 2);
}

#[test]
fn a_vary_that_no_key_holds_prevents_keeping() {
    let many: Vec<_> = (0..11).map(|number| format!("X-{number}")).collect();
    let many = many.join(", ");
    for (vary, value) in [(&*many, "x".to_owned()), ("X-0", "x".repeat(5_000))] {
        let app = Origin::answer(200, &[FRESH, ("Vary", vary)], "x");
        let proxy = caching(&app);
        for _ in 0..2 {
            let reply = proxy.get("/x", &[("x-0", &*value)]).expect(200);
            assert!(said(&reply).contains("detail=\"vary\""), "{}", said(&reply));
        }
        assert_eq!(app.requests().len(), 2);
    }
}

#[test]
fn a_page_that_looks_like_a_file_is_as_private_as_it_says() {
    // Cache deception: the app ignores what follows the account's path.
    let app = Origin::start(|call| {
        call.body()?;
        let name = asked(call, "cookie").unwrap_or("nobody").to_owned();
        let fields = [("Content-Type", "text/html"), ("Set-Cookie", "seen=1")];
        call.answer(200, &fields, name.as_bytes())
    });
    let proxy = caching_with(&app, "default_ttl: 10m");
    for target in [
        "/account.css",
        "/account/x.css",
        "/account;x.css",
        "/account%2fx.css",
        "/account%00.css",
        "/account?x.css",
    ] {
        let victim = proxy.get(target, &[("cookie", "id=victim")]);
        if victim.status == 200 {
            assert_eq!(victim.text(), "id=victim");
            assert_eq!(proxy.get(target, &[]).text(), "nobody", "{target}");
        }
    }
}

#[test]
fn errors_that_a_client_causes_are_not_kept_for_others() {
    let app = Origin::start(|call| {
        call.body()?;
        if asked(call, "x-bad").is_some() {
            return call.answer(400, &[], b"bad");
        }
        call.answer(200, &[FRESH], b"good")
    });
    let proxy = caching(&app);
    proxy.get("/x", &[("x-bad", "1")]).expect(400);
    assert_eq!(proxy.get("/x", &[]).expect(200).body, b"good");
}
