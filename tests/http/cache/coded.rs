//! One plain copy, and each coding of it made once.

use super::*;
use crate::support::{json_of, noise};

const KEPT: Fields<'_> = &[("Cache-Control", "max-age=600"), ("ETag", "\"a\"")];

#[test]
fn plain_first_then_coded_and_the_app_is_asked_once() {
    let app = json(KEPT);
    let proxy = caching(&app);
    let plain = proxy.get("/x", &[]).expect(200);
    assert_eq!(
        (plain.coding(), plain.header("etag")),
        ("identity", Some("\"a\""))
    );
    assert!(
        said(&plain).starts_with("thinwire; fwd=uri-miss; stored"),
        "{}",
        said(&plain)
    );
    for (coding, tag) in [
        ("gzip", "\"a-gzip\""),
        ("br", "\"a-br\""),
        ("zstd", "\"a-zstd\""),
    ] {
        let coded = proxy.get("/x", &[("accept-encoding", coding)]).expect(200);
        is_hit(&coded);
        assert_eq!((coded.coding(), coded.header("etag")), (coding, Some(tag)));
        assert_eq!(
            coded.header("content-length"),
            Some(&*coded.body.len().to_string())
        );
        assert_eq!(coded.varies(), 1);
        assert!(coded.header("age").is_some());
        assert_eq!(coded.decoded(), big());
    }
    assert_eq!(app.requests().len(), 1);
}

#[test]
fn coded_first_then_plain_byte_for_byte() {
    let app = json(KEPT);
    let proxy = caching(&app);
    let coded = proxy.get("/x", &[("accept-encoding", "gzip")]);
    assert_eq!((coded.coding(), coded.decoded()), ("gzip", big()));
    let plain = proxy.get("/x", &[]);
    is_hit(&plain);
    assert_eq!((plain.coding(), plain.varies()), ("identity", 1));
    assert_eq!(plain.body, big());
    assert_eq!(app.requests().len(), 1);
}

#[test]
fn a_thousand_hits_cost_one_encode_a_coding() {
    let app = json(KEPT);
    let proxy = caching_with(&app, "densify: false");
    let mut conn = proxy.conn();
    for number in 0..1002 {
        let coding = ["gzip", "br", "zstd"][number % 3];
        let reply = conn.get("/x", &[("accept-encoding", coding)]);
        assert_eq!(reply.coding(), coding);
    }
    for coding in ["gzip", "br", "zstd"] {
        let encodes = proxy
            .metrics()
            .sum("thinwire_encodes_total", &[("coding", coding)]);
        assert_eq!(encodes, 1.0, "{coding}");
    }
    assert_eq!(app.requests().len(), 1);
    let labels = [("route", "everything"), ("result", "hit")];
    proxy.until("thinwire_cache_requests_total", &labels, |hits| {
        hits == 1001.0
    });
    let line = proxy.access("/x");
    assert_eq!(line["cache"], "miss");
}

#[test]
fn an_answer_that_comes_slowly_is_coded_once_too() {
    let app = Origin::start(|call| {
        call.body()?;
        call.chunked(200, &[("Content-Type", "application/json"), KEPT[0]])?;
        for piece in big().chunks(40 * 1024) {
            call.chunk(piece)?;
            call.pause(std::time::Duration::from_millis(20));
        }
        call.end()
    });
    let proxy = caching_with(&app, "densify: false");
    for _ in 0..3 {
        let reply = proxy.get("/x", &[("accept-encoding", "gzip")]);
        assert_eq!((reply.coding(), reply.decoded()), ("gzip", big()));
    }
    let encodes = proxy.metrics().sum("thinwire_encodes_total", &[]);
    assert_eq!((encodes, app.requests().len()), (1.0, 1));
}

#[test]
fn a_long_body_is_coded_in_slices_and_kept() {
    let body = json_of(6 * 1024 * 1024);
    let app = Origin::answer(
        200,
        &[("Content-Type", "application/json"), KEPT[0]],
        body.clone(),
    );
    let proxy = caching_with(&app, "densify: false");
    assert_eq!(proxy.get("/x", &[]).body, body);
    for _ in 0..2 {
        let reply = proxy.get("/x", &[("accept-encoding", "gzip")]);
        assert_eq!((reply.coding(), reply.decoded() == body), ("gzip", true));
    }
    let encodes = proxy.metrics().sum("thinwire_encodes_total", &[]);
    assert_eq!((encodes, app.requests().len()), (1.0, 1));
}

#[test]
fn vary_accept_encoding_does_not_prevent_caching() {
    let app = json(&[KEPT[0], ("Vary", "Accept-Encoding")]);
    let proxy = caching(&app);
    for accept in ["gzip", "br", "identity", "gzip, br", "*"] {
        let reply = proxy.get("/x", &[("accept-encoding", accept)]);
        assert_eq!((reply.decoded(), reply.varies()), (big(), 1));
    }
    assert_eq!(app.requests().len(), 1);
}

#[test]
fn what_does_not_get_smaller_is_found_out_once_and_sent_plain() {
    let body = noise(100 * 1024);
    let app = Origin::answer(
        200,
        &[("Content-Type", "application/json"), KEPT[0]],
        body.clone(),
    );
    let proxy = caching(&app);
    for _ in 0..3 {
        let reply = proxy.get("/x", &[("accept-encoding", "gzip")]);
        assert_eq!((reply.coding(), &reply.body), ("identity", &body));
    }
    assert_eq!(proxy.metrics().sum("thinwire_encodes_total", &[]), 0.0);
}

#[test]
fn what_the_app_coded_is_kept_as_it_is_and_given_to_who_accepts_it() {
    let coded = crate::support::decode::gzip(&big());
    let app = Origin::answer(
        200,
        &[
            ("Content-Type", "application/json"),
            ("Content-Encoding", "gzip"),
            KEPT[0],
        ],
        coded.clone(),
    );
    let proxy = caching(&app);
    for _ in 0..2 {
        let reply = proxy.get("/x", &[("accept-encoding", "gzip")]);
        assert_eq!((reply.coding(), &reply.body), ("gzip", &coded));
    }
    assert_eq!(app.requests().len(), 1);
    let reply = proxy.get("/x", &[("accept-encoding", "br")]);
    assert!(!said(&reply).contains("hit"), "{}", said(&reply));
    assert_eq!(app.requests().len(), 2, "the app may have another for it");
    is_hit(&proxy.get("/x", &[("accept-encoding", "gzip")]));
}

#[test]
fn padding_differs_from_hit_to_hit() {
    let app = json(KEPT);
    let proxy = Setup::before(&app)
        .route("compress: { breach: { pad: 64B } }\ncache: { enabled: true }")
        .start();
    let lengths: std::collections::HashSet<_> = (0..30)
        .map(|_| {
            let reply = proxy.get("/x", &[("accept-encoding", "gzip")]);
            assert_eq!(reply.decoded(), big());
            reply.body.len()
        })
        .collect();
    assert!(lengths.len() > 5, "{lengths:?}");
    assert_eq!(app.requests().len(), 1);
}

#[test]
fn over_http2_as_well() {
    let app = json(KEPT);
    let proxy = caching(&app);
    let h2 = proxy.h2();
    for _ in 0..2 {
        let reply = h2.get("/x", &[("accept-encoding", "br")]);
        assert_eq!((reply.coding(), reply.decoded()), ("br", big()));
    }
    assert_eq!(app.requests().len(), 1);
}

#[test]
fn the_gauge_tells_what_is_held() {
    let app = json(KEPT);
    let proxy = caching_with(&app, "densify: false");
    proxy.get("/x", &[("accept-encoding", "gzip")]);
    let held = |coding| {
        proxy
            .metrics()
            .sum("thinwire_cache_bytes", &[("coding", coding)])
    };
    assert!(held("identity") >= 100.0 * 1024.0);
    assert!(held("gzip") > 0.0 && held("gzip") < 50.0 * 1024.0);
    assert_eq!(held("br"), 0.0);
}
