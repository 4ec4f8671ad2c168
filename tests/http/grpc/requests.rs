//! Requests: what reaches the app, and what does not.

use std::sync::{Arc, Mutex};

use super::support::grpc::*;
use super::support::*;

/// Keeps what it is sent, and answers OK.
fn keeper() -> (H2Origin, Arc<Mutex<Vec<Vec<u8>>>>) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&kept);
    let app = H2Origin::start(move |mut call| {
        let seen = Arc::clone(&seen);
        async move {
            let (body, _) = call.body().await?;
            seen.lock().unwrap().push(body);
            call.head(200, &[GRPC], false)?;
            call.data(message(0, b"thanks"), false).await?;
            call.end_with(&[OK])
        }
    });
    (app, kept)
}

#[test]
fn compressed_requests_reach_the_app_plain() {
    // Rule 8.
    let (app, kept) = keeper();
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    let body = records(700_000);
    type Squeeze = fn(&[u8]) -> Vec<u8>;
    for (coding, squeeze) in [("gzip", gzip as Squeeze), ("deflate", zlib)] {
        let sent = [
            message(1, &squeeze(&body)),
            message(0, b"plain"),
            message(1, &squeeze(b"")),
        ];
        let reply = call(
            &client,
            "/s/m",
            &[("grpc-encoding", coding)],
            &sent.concat(),
        );
        assert_eq!(status(&reply), Some("0"));
        let offered = reply.list("grpc-accept-encoding");
        assert!(
            ["identity", "gzip"]
                .iter()
                .all(|coding| offered.contains(&(*coding).to_owned()))
        );
        let seen = kept.lock().unwrap().pop().unwrap();
        assert!(messages(&seen) == [(0, body.clone()), (0, b"plain".to_vec()), (0, vec![])]);
    }
    for asked in app.requests() {
        assert!(!asked.headers().contains_key("grpc-encoding"));
        assert_eq!(asked.headers()["te"], "trailers");
    }
    let count = |form| {
        let labels = [("direction", "to_app"), ("form", form)];
        proxy.metrics().sum("thinwire_grpc_messages_total", &labels)
    };
    assert_eq!((count("recoded"), count("plain")), (4.0, 2.0));
}

#[test]
fn requests_pass_as_they_are_where_the_route_says_so() {
    let (app, kept) = keeper();
    let proxy = Proxy::with(&app, "grpc: { requests: pass }");
    for coding in ["gzip", "snappy"] {
        let sent = [message(1, &gzip(b"as it is")), message(0, b"too")].concat();
        let reply = call(&proxy.h2(), "/s/m", &[("grpc-encoding", coding)], &sent);
        assert_eq!(status(&reply), Some("0"));
        assert!(reply.header("grpc-accept-encoding").is_none());
        assert_eq!(kept.lock().unwrap().pop().unwrap(), sent);
        let asked = app.requests().pop().unwrap();
        assert_eq!(asked.headers()["grpc-encoding"], coding);
    }
}

#[test]
fn a_megabyte_that_inflates_to_a_gigabyte_ends_with_status_8_and_little_memory() {
    // Rule 8, BEHAVIOUR.md.
    let (app, kept) = keeper();
    let proxy = Proxy::before(&app);
    let bomb = message(1, &gzip(&vec![0; 1 << 30]));
    assert!((900_000..1_200_000).contains(&bomb.len()), "{}", bomb.len());
    let (client, before) = (proxy.h2(), proxy.memory_kib());
    for _ in 0..6 {
        let reply = call(&client, "/s/m", &[("grpc-encoding", "gzip")], &bomb);
        assert_eq!(status(&reply), Some("8"));
    }
    let grown = proxy.memory_kib().saturating_sub(before);
    // Two threads' share of messages and what the allocator keeps; one gigabyte would show.
    assert!(grown < 128 << 10, "{grown} KiB");
    assert!(kept.lock().unwrap().is_empty());
    // A message that says it is larger is not even read.
    let mut stream = begin(&proxy.h2(), "/s/m", &[("grpc-encoding", "gzip")]);
    stream.send(&[1, 0xff, 0, 0, 0], false);
    assert_eq!(status(&stream.reply()), Some("8"));
}

#[test]
fn plain_messages_of_any_size_pass() {
    let (app, kept) = keeper();
    let proxy = Proxy::with(&app, "grpc: { max_message: 1KiB, min_size: 1KiB }");
    let sent = message(0, &noise(3 << 20));
    assert_eq!(status(&call(&proxy.h2(), "/s/m", &[], &sent)), Some("0"));
    assert!(kept.lock().unwrap().pop().unwrap() == sent);
}

#[test]
fn what_breaks_the_protocol_ends_with_status_13() {
    // Rules 3, 8 and 10. grpcio itself hangs on the half message.
    let (app, kept) = keeper();
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    let gzipped = ("grpc-encoding", "gzip");
    for (what, fields, body) in [
        ("no encoding", &[][..], message(1, &gzip(b"x"))),
        (
            "identity",
            &[("grpc-encoding", "identity")],
            message(1, &gzip(b"x")),
        ),
        ("reserved flags", &[], message(2, b"x")),
        (
            "reserved and compressed",
            &[gzipped],
            message(3, &gzip(b"x")),
        ),
        ("half a message", &[], message(0, b"whole")[..7].to_vec()),
        (
            "half a compressed message",
            &[gzipped],
            message(1, &gzip(b"x"))[..9].to_vec(),
        ),
        (
            "half a prefix",
            &[],
            [message(0, b"x"), vec![0, 0]].concat(),
        ),
        ("no gzip", &[gzipped], message(1, b"this is none")),
        (
            "cut gzip",
            &[gzipped],
            message(1, &gzip(b"this is cut")[..15]),
        ),
    ] {
        let reply = call(&client, "/s/m", fields, &body).expect(200);
        assert_eq!(status(&reply), Some("13"), "{what}");
        assert_eq!(reply.body, b"", "{what}");
        assert_eq!(
            reply.header("content-type"),
            Some("application/grpc"),
            "{what}"
        );
    }
    // Nothing complete came of it.
    eventually("the app's streams to end", || {
        (app.streams() == 0).then_some(())
    });
    assert!(kept.lock().unwrap().is_empty());
}

#[test]
fn half_a_message_is_refused_where_requests_pass_too() {
    let (app, _) = keeper();
    let proxy = Proxy::with(&app, "grpc: { requests: pass }");
    let reply = call(&proxy.h2(), "/s/m", &[], &message(0, b"whole")[..7]);
    assert_eq!(status(&reply), Some("13"));
}

#[test]
fn an_unknown_encoding_is_answered_with_ours_and_status_12() {
    // Rule 8.
    let (app, _) = keeper();
    let proxy = Proxy::before(&app);
    let reply = call(
        &proxy.h2(),
        "/s/m",
        &[("grpc-encoding", "snappy")],
        &message(1, b"x"),
    );
    assert_eq!((reply.status, status(&reply)), (200, Some("12")));
    assert!(
        reply
            .list("grpc-accept-encoding")
            .contains(&"gzip".to_owned())
    );
    assert!(app.requests().is_empty());
}

#[test]
fn a_fault_after_the_answer_began_is_told_in_its_trailers() {
    let app = H2Origin::start(|mut call| async move {
        call.head(200, &[GRPC], false)?;
        while let Some(piece) = call.piece().await? {
            call.data(piece, false).await?;
        }
        call.end_with(&[OK])
    });
    let proxy = Proxy::before(&app);
    let mut stream = begin(&proxy.h2(), "/s/echo", &[]);
    stream.send(&message(0, b"one"), false);
    let reply = stream.head();
    assert_eq!(stream.piece().unwrap(), message(0, b"one"));
    stream.send(&message(4, b"two"), false);
    let reply = stream.rest(reply);
    assert_eq!((status(&reply), reply.body.len()), (Some("13"), 0));
    eventually("the app's stream to end", || {
        (app.streams() == 0).then_some(())
    });
    assert_eq!(proxy.access("/s/echo")["ended_by"], "client");
}

#[test]
fn metadata_arrives_in_order_whatever_its_name() {
    // Rules 14, 16, 20, 25: -bin, duplicates, unknown grpc-*, the content type, attempts.
    let app = H2Origin::start(|mut call| async move {
        call.body().await?;
        let head = [
            ("content-type", "application/grpc+proto"),
            ("x-twice", "1"),
            ("x-twice", "2"),
            ("grpc-new", "thing"),
            ("key-bin", "AAEC/w"),
        ];
        call.head(200, &head, false)?;
        call.data(message(0, b""), false).await?;
        let details = "QUJD".repeat(3_000);
        let trailers = [
            OK,
            ("grpc-status-details-bin", &details),
            ("t-bin", "AAA"),
            ("t-bin", "BBB"),
            ("retry-after", "7"),
            ("authorization", "not secret"),
        ];
        call.end_with(&trailers)
    });
    let proxy = Proxy::before(&app);
    let fields = [
        ("grpc-timeout", "12345678m"),
        ("grpc-previous-rpc-attempts", "2"),
        ("key-bin", "AAEC/w"),
        ("x-twice", "a"),
        ("x-twice", "b"),
        ("x-long", &"y".repeat(16_000)),
        ("user-agent", "grpc-test/1"),
    ];
    let reply = call(&proxy.h2(), "/s/m", &fields, &message(0, b""));
    let asked = app.requests().pop().unwrap();
    for (name, value) in fields {
        let values: Vec<_> = asked.headers().get_all(name).iter().collect();
        assert!(
            values.contains(&&http::HeaderValue::from_str(value).unwrap()),
            "{name}"
        );
    }
    let twice: Vec<_> = asked.headers().get_all("x-twice").iter().collect();
    assert_eq!(twice, ["a", "b"]);
    assert_eq!(reply.header("content-type"), Some("application/grpc+proto"));
    assert_eq!(
        (reply.all("x-twice"), reply.header("grpc-new")),
        (vec!["1", "2"], Some("thing"))
    );
    assert_eq!(reply.header("key-bin"), Some("AAEC/w"));
    assert_eq!(
        reply.trailer("grpc-status-details-bin").unwrap().len(),
        12_000
    );
    let bins: Vec<_> = reply
        .trailers
        .iter()
        .filter(|(name, _)| name == "t-bin")
        .collect();
    assert_eq!((bins[0].1.as_str(), bins[1].1.as_str()), ("AAA", "BBB"));
    assert_eq!(reply.trailer("retry-after"), Some("7"));
    assert_eq!(reply.trailer("authorization"), Some("not secret"));
}
