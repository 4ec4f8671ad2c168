//! Copies that grew old: validated, sent meanwhile, or standing in for an app that failed.

use super::*;

/// Five seconds past its time.
const OLD: (&str, &str) = ("Age", "15");

#[test]
fn a_304_keeps_the_bytes_and_renews_the_head() {
    let app = Origin::start(|call| {
        call.body()?;
        let tag = ("ETag", "\"a\"");
        if asked(call, "if-none-match") == Some("\"a\"") {
            let fields = [tag, ("Cache-Control", "max-age=600"), ("X-New", "1")];
            return call.answer(304, &fields, b"");
        }
        let json = ("Content-Type", "application/json");
        call.answer(
            200,
            &[tag, ("Cache-Control", "max-age=10"), OLD, json],
            &big(),
        )
    });
    let proxy = caching_with(&app, "densify: false");
    let gzip = [("accept-encoding", "gzip")];
    proxy.get("/x", &gzip).expect(200);
    let renewed = proxy.get("/x", &gzip).expect(200);
    assert_eq!(said(&renewed), "thinwire; fwd=stale; fwd-status=304");
    assert_eq!(
        (renewed.header("x-new"), renewed.decoded()),
        (Some("1"), big())
    );
    let hit = proxy.get("/x", &gzip);
    is_hit(&hit);
    assert_eq!(hit.header("x-new"), Some("1"));
    assert_eq!(
        proxy.metrics().sum("thinwire_encodes_total", &[]),
        1.0,
        "the bytes are the same"
    );
    let labels = [("route", "everything"), ("result", "revalidated")];
    proxy.until("thinwire_cache_requests_total", &labels, |count| {
        count == 1.0
    });
}

#[test]
fn a_client_that_revalidates_a_stale_copy_gets_its_304() {
    let app = json(&[("ETag", "\"a\""), ("Cache-Control", "max-age=10"), OLD]);
    let proxy = caching(&app);
    proxy.get("/x", &[]).expect(200);
    let held = [("accept-encoding", "br"), ("if-none-match", "\"a-br\"")];
    let reply = proxy.get("/x", &held).expect(304);
    assert_eq!(reply.header("etag"), Some("\"a-br\""));
    assert_eq!(app.requests().len(), 2);
}

#[test]
fn a_304_about_other_bytes_is_never_put_to_the_old_ones() {
    let app = Origin::start(|call| {
        call.body()?;
        let tag = match asked(call, "if-none-match") {
            // As if the stored tag had been that of other bytes.
            Some(_) => return call.answer(304, &[("ETag", "\"b\"")], b""),
            None => ("ETag", "\"a\""),
        };
        call.answer(200, &[tag, ("Cache-Control", "max-age=10"), OLD], b"a")
    });
    let proxy = caching(&app);
    for count in [1, 3] {
        let reply = proxy.get("/x", &[]).expect(200);
        assert_eq!((reply.body, app.requests().len()), (b"a".to_vec(), count));
    }
    assert_eq!(app.last().head.field("if-none-match"), None, "asked anew");
}

#[test]
fn a_304_whose_content_encoding_changed_is_never_applied_to_old_bytes() {
    let coded = crate::support::decode::gzip(b"the coded body");
    let app = {
        let coded = coded.clone();
        Origin::start(move |call| {
            call.body()?;
            let tag = ("ETag", "\"a\"");
            let fresh = ("Cache-Control", "max-age=600");
            if asked(call, "if-none-match").is_some() {
                return call.answer(304, &[tag, fresh, ("Content-Encoding", "br")], b"");
            }
            let fields = [
                tag,
                ("Cache-Control", "max-age=10"),
                OLD,
                ("Content-Encoding", "gzip"),
            ];
            call.answer(200, &fields, &coded)
        })
    };
    let proxy = caching(&app);
    for _ in 0..3 {
        let reply = proxy
            .get("/x", &[("accept-encoding", "gzip, br")])
            .expect(200);
        assert_eq!((reply.coding(), &reply.body), ("gzip", &coded));
    }
}

#[test]
fn stale_while_revalidate_answers_at_once_and_asks_once() {
    let go = crate::support::Signal::new();
    let app = {
        let go = go.clone();
        Origin::start(move |call| {
            call.body()?;
            if asked(call, "if-none-match").is_some() {
                call.wait(&go);
                let fields = [("ETag", "\"b\""), ("Cache-Control", "max-age=600")];
                return call.answer(200, &fields, b"new");
            }
            let fresh = ("Cache-Control", "max-age=10, stale-while-revalidate=600");
            call.answer(200, &[("ETag", "\"a\""), fresh, OLD], b"old")
        })
    };
    let proxy = caching(&app);
    proxy.get("/x", &[]);
    for _ in 0..5 {
        let reply = proxy.get("/x", &[]);
        is_hit(&reply);
        assert!(said(&reply).ends_with("; ttl=-5") || said(&reply).contains("ttl=-"));
        assert_eq!(reply.body, b"old");
    }
    go.fire();
    crate::support::eventually("the new copy", || {
        (proxy.get("/x", &[]).body == b"new").then_some(())
    });
    assert_eq!(app.requests().len(), 2);
    let labels = [("route", "everything"), ("result", "stale")];
    assert!(
        proxy
            .metrics()
            .sum("thinwire_cache_requests_total", &labels)
            >= 5.0
    );
}

#[test]
fn stale_if_error_stands_in_for_an_app_that_fails() {
    for (said_by_app, key, expected) in [
        ("max-age=10, stale-if-error=600", "reuse: true", 200),
        ("max-age=10", "stale_if_error: 10m", 200),
        ("max-age=10", "reuse: true", 503),
        ("max-age=10, must-revalidate", "stale_if_error: 10m", 503),
    ] {
        let count = std::sync::atomic::AtomicUsize::new(0);
        let app = Origin::start(move |call| {
            call.body()?;
            match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                0 => {
                    let fields = [("ETag", "\"a\""), ("Cache-Control", said_by_app), OLD];
                    call.answer(200, &fields, b"old")
                }
                1 => call.answer(503, &[], b"failed"),
                _ => call.reset(),
            }
        });
        let proxy = caching_with(&app, key);
        proxy.get("/x", &[]).expect(200);
        let reply = proxy.get("/x", &[]).expect(expected);
        if expected == 200 {
            assert_eq!(
                (said(&reply), reply.body),
                (
                    "thinwire; fwd=stale; fwd-status=503".into(),
                    b"old".to_vec()
                )
            );
            assert_eq!(
                proxy.get("/x", &[]).expect(200).body,
                b"old",
                "nobody answers"
            );
        }
    }
}

#[test]
fn requests_say_which_copies_they_take() {
    let app = counting(&[("Cache-Control", "max-age=100"), ("Age", "50")]);
    let proxy = caching(&app);
    let ask = |control: &str| proxy.get("/x", &[("cache-control", control)]);
    assert_eq!(ask("").body, b"0");
    assert_eq!(ask("max-age=90").body, b"0");
    assert_eq!(ask("min-fresh=20").body, b"0");
    assert_eq!(ask("only-if-cached").body, b"0");
    for (control, expected) in [("no-cache", "1"), ("max-age=0", "2"), ("min-fresh=60", "3")] {
        let reply = ask(control);
        assert_eq!(reply.text(), expected, "{control}");
        assert!(said(&reply).contains("fwd=request"), "{}", said(&reply));
    }
    assert_eq!(
        ask("no-store").body,
        b"3",
        "it may be answered from here (section 5.2.1.5)"
    );
    proxy
        .get("/y", &[("cache-control", "only-if-cached")])
        .expect(504);
    let unkept = proxy.get("/z", &[("cache-control", "no-store")]).text();
    assert_ne!(proxy.get("/z", &[]).text(), unkept);
}

#[test]
fn unsafe_requests_that_succeed_make_invalid_what_they_may_have_changed() {
    let app = Origin::start(|call| {
        call.body()?;
        match (call.method(), call.path()) {
            ("GET", _) => call.answer(200, &[("Cache-Control", "max-age=600")], b"x"),
            (_, "/fails") => call.answer(500, &[], b""),
            (_, "/moves") => call.answer(201, &[("Location", "/made")], b""),
            _ => call.answer(204, &[], b""),
        }
    });
    let proxy = caching(&app);
    for (method, path, gone, kept) in [
        ("POST", "/x", "/x", "/y"),
        ("DELETE", "/x", "/x", "/y"),
        ("FROB", "/x", "/x", "/y"),
        ("PUT", "/moves", "/made", "/fails"),
        ("POST", "/fails", "/none", "/fails"),
    ] {
        for path in [gone, kept] {
            proxy.get(path, &[]);
            is_hit(&proxy.get(path, &[]));
        }
        let reply = proxy.ask(method, path, &[], b"body");
        assert_eq!(said(&reply), "thinwire; fwd=method", "{method}");
        is_hit(&proxy.get(kept, &[]));
        if gone != "/none" {
            assert!(
                !said(&proxy.get(gone, &[])).contains("hit"),
                "{method} {path}"
            );
        }
    }
}

#[test]
fn head_says_that_a_copy_is_stale_or_still_good() {
    for (tag, hit) in [("\"a\"", true), ("\"b\"", false)] {
        let app = Origin::start(move |call| {
            call.body()?;
            let fresh = ("Cache-Control", "max-age=600");
            match call.method() {
                "HEAD" => call.raw_head(200, &[("ETag", tag), fresh, ("Content-Length", "1")]),
                _ => call.answer(
                    200,
                    &[("ETag", "\"a\""), ("Cache-Control", "max-age=10"), OLD],
                    b"x",
                ),
            }
        });
        let proxy = caching(&app);
        proxy.get("/x", &[]);
        proxy.ask("HEAD", "/x", &[], b"").expect(200);
        assert_eq!(said(&proxy.get("/x", &[])).contains("hit"), hit, "{tag}");
    }
}
