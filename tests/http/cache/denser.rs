//! Denser when idle.

use super::*;
use crate::support::eventually;

#[test]
fn what_is_asked_for_again_is_made_denser_under_the_same_tag() {
    let app = json(&[("Cache-Control", "max-age=600"), ("ETag", "\"a\"")]);
    let proxy = caching(&app);
    let codings = ["br", "gzip", "zstd"];
    let ask = |coding: &str| {
        let reply = proxy.get("/x", &[("accept-encoding", coding)]);
        let tag = format!("\"a-{coding}\"");
        assert_eq!(
            (reply.coding(), reply.header("etag")),
            (coding, Some(&*tag))
        );
        assert_eq!(reply.decoded(), big());
        reply.body.len()
    };
    for coding in codings {
        let first = ask(coding);
        let denser = eventually("a denser copy", || {
            Some(ask(coding)).filter(|&len| len < first)
        });
        assert!(denser < first * 98 / 100, "{coding}: {first} {denser}");
        let labels = [("route", "-"), ("kind", "cache"), ("coding", coding)];
        assert!(proxy.metrics().sum("thinwire_encodes_total", &labels) >= 1.0);
    }
    assert_eq!(app.requests().len(), 1);
}

#[test]
fn where_it_is_off_no_codec_runs_for_it() {
    let app = json(&[("Cache-Control", "max-age=600")]);
    let proxy = Setup::before(&app)
        .routes_before(&format!(
            "- name: dense\n  match: {{ path: /dense }}\n  upstream: app\n  {ON}"
        ))
        .route("cache: { enabled: true, densify: false }")
        .start();
    let gzip = [("accept-encoding", "gzip")];
    for path in ["/x", "/x", "/x", "/dense", "/dense"] {
        proxy.get(path, &gzip);
    }
    // Once the one that wants it had its turn, so had the other.
    let dense = [("kind", "cache")];
    proxy.until("thinwire_encodes_total", &dense, |runs| runs == 1.0);
    let first = proxy.get("/x", &gzip).body.len();
    eventually("the denser copy", || {
        (proxy.get("/dense", &gzip).body.len() < first).then_some(())
    });
    assert_eq!(proxy.get("/x", &gzip).body.len(), first);
    assert_eq!(proxy.metrics().sum("thinwire_encodes_total", &dense), 1.0);
}
