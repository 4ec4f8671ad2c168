//! Answers: what is announced, what is compressed, what passes.

use super::support::grpc::*;
use super::support::*;

/// Answers with these messages, one DATA frame each.
fn app(more: Fields<'_>, bodies: Vec<Vec<u8>>) -> H2Origin {
    let fields: Vec<(String, String)> = [&[GRPC], more]
        .concat()
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    H2Origin::start(move |mut call| {
        let (fields, bodies) = (fields.clone(), bodies.clone());
        async move {
            call.body().await?;
            let fields: Vec<_> = fields
                .iter()
                .map(|(n, v)| (n.as_str(), v.as_str()))
                .collect();
            call.head(200, &fields, false)?;
            for body in bodies {
                call.data(body, false).await?;
            }
            call.end_with(&[OK])
        }
    })
}

fn ask(proxy: &Proxy, more: Fields<'_>) -> Reply {
    call(
        &proxy.h2(),
        "/pkg.Service/Method",
        more,
        &message(0, b"ask"),
    )
    .expect(200)
}

#[test]
fn a_coding_is_announced_and_each_message_decided_by_itself() {
    // Rules 1 and 6, and BEHAVIOUR.md: ten small messages and a large one.
    let large = records(200_000);
    let mut bodies = vec![message(0, &[7; 30]); 10];
    bodies.insert(5, message(0, &large));
    let app = app(&[], bodies);
    let proxy = Proxy::before(&app);
    let reply = ask(&proxy, &[TAKES_GZIP]);
    assert_eq!(reply.header("grpc-encoding"), Some("gzip"));
    assert_eq!(
        (reply.header("content-encoding"), status(&reply)),
        (None, Some("0"))
    );
    let found = messages(&reply.body);
    let flags: Vec<_> = found.iter().map(|(flags, _)| *flags).collect();
    assert_eq!(flags, [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]);
    assert!(found[5].1.len() < large.len() / 2);
    let plain = plain(&reply.body, "gzip");
    assert!(plain[5] == large && plain[4] == [7; 30] && plain.len() == 11);
    let metrics = proxy.metrics();
    let count = |form| {
        let labels = [
            ("route", "everything"),
            ("direction", "to_client"),
            ("form", form),
        ];
        metrics.sum("thinwire_grpc_messages_total", &labels)
    };
    assert_eq!(
        (count("compressed"), count("plain"), count("recoded")),
        (1.0, 10.0, 0.0)
    );
    let labels = [("kind", "grpc"), ("coding", "gzip")];
    assert_eq!(metrics.sum("thinwire_encodes_total", &labels), 1.0);
    assert_eq!(
        metrics.sum("thinwire_plain_bytes_total", &labels),
        200_000.0
    );
    assert!(metrics.sum("thinwire_codec_seconds_total", &labels) > 0.0);
    let line = proxy.access("/pkg.Service/Method");
    assert_eq!(
        (&line["coding"], &line["reason"]),
        (&"gzip".into(), &"compressed".into())
    );
    assert_eq!(line["bytes_after"], reply.body.len());
    assert_eq!(line["ended_by"], serde_json::Value::Null);
}

#[test]
fn only_what_the_client_lists_is_announced() {
    // Rule 2; rule 4: deflate is the zlib format.
    let body = records(50_000);
    let app = app(&[], vec![message(0, &body)]);
    let proxy = Proxy::with(&app, "grpc: { encodings: [zstd, gzip, deflate] }");
    for (takes, encoding) in [
        (Some("identity,deflate,gzip"), Some("gzip")),
        (Some("identity, deflate"), Some("deflate")),
        (Some("zstd,gzip"), Some("zstd")),
        (Some("identity"), None),
        (Some("snappy"), None),
        (None, None),
    ] {
        let fields: Vec<_> = takes
            .map(|takes| ("grpc-accept-encoding", takes))
            .into_iter()
            .collect();
        let reply = ask(&proxy, &fields);
        assert_eq!(reply.header("grpc-encoding"), encoding, "{takes:?}");
        let found = messages(&reply.body);
        assert_eq!(found[0].0, u8::from(encoding.is_some()), "{takes:?}");
        assert!(plain(&reply.body, encoding.unwrap_or("identity")) == [body.clone()]);
    }
    for reason in ["not_accepted", "compressed"] {
        let count = proxy.until("thinwire_responses_total", &[("reason", reason)], |n| {
            n >= 3.0
        });
        assert_eq!(count, 3.0, "{reason}");
    }
}

#[test]
fn empty_small_and_random_messages_stay_plain() {
    // Rules 5 and 6.
    let noise = noise(100_000);
    let bodies = [&b""[..], &[1; 1023], &noise];
    let framed = bodies.iter().map(|body| message(0, body)).collect();
    let app = app(&[], framed);
    let proxy = Proxy::before(&app);
    let reply = ask(&proxy, &[TAKES_GZIP]);
    assert_eq!(reply.header("grpc-encoding"), Some("gzip"));
    let expected: Vec<_> = bodies.iter().map(|body| (0, body.to_vec())).collect();
    assert!(messages(&reply.body) == expected);
    assert_eq!(
        proxy.access("/pkg.Service/Method")["reason"],
        "incompressible"
    );
    assert_eq!(
        proxy
            .metrics()
            .sum("thinwire_encodes_total", &[("kind", "grpc")]),
        0.0
    );
}

#[test]
fn a_message_beyond_the_limit_streams_through_plain() {
    let large = records(300_000);
    let bodies = vec![message(0, &large), message(0, &records(90_000))];
    let app = app(&[], bodies);
    let proxy = Proxy::with(&app, "grpc: { max_message: 100KiB }");
    let reply = ask(&proxy, &[TAKES_GZIP]);
    let found = messages(&reply.body);
    assert_eq!((found[0].0, found[1].0), (0, 1));
    assert!(plain(&reply.body, "gzip") == [large, records(90_000)]);
}

#[test]
fn what_the_app_compressed_passes_byte_identical_to_who_takes_it() {
    // Rule 7.
    let body = records(30_000);
    let coded = message(1, &gzip(&body));
    let app = app(
        &[("grpc-encoding", "gzip")],
        vec![coded.clone(), message(0, &[1; 50])],
    );
    let proxy = Proxy::before(&app);
    let reply = ask(&proxy, &[TAKES_GZIP]);
    assert_eq!(reply.header("grpc-encoding"), Some("gzip"));
    assert!(reply.body == [coded, message(0, &[1; 50])].concat());
    ask(&proxy, &[TAKES_GZIP]);
    let labels = [("kind", "grpc"), ("route", "everything")];
    assert_eq!(
        proxy
            .metrics()
            .sum("thinwire_app_compressed_total", &labels),
        2.0
    );
    let told = |line: &str| line.contains("compresses gRPC messages itself");
    proxy.wait_for_log("a warning", told);
    assert_eq!(
        proxy.log().iter().filter(|line| told(line)).count(),
        1,
        "once a route"
    );
    assert_eq!(
        app.requests()[0].headers()["grpc-accept-encoding"],
        "identity"
    );
}

#[test]
fn what_the_app_compressed_is_inflated_for_who_does_not_take_it() {
    // Rule 7, G6.
    let body = records(30_000);
    let framed = vec![message(1, &gzip(&body)), message(1, &[]), message(0, &body)];
    let app = app(&[("grpc-encoding", "gzip")], framed);
    let proxy = Proxy::with(&app, "grpc: { encodings: [zstd, gzip] }");
    for takes in [&[][..], &[("grpc-accept-encoding", "identity")]] {
        let reply = ask(&proxy, takes);
        assert_eq!(reply.header("grpc-encoding"), None);
        assert!(messages(&reply.body) == [(0, body.clone()), (0, vec![]), (0, body.clone())]);
    }
    // To another coding, where the client takes that.
    let reply = ask(&proxy, &[("grpc-accept-encoding", "zstd")]);
    assert_eq!(reply.header("grpc-encoding"), Some("zstd"));
    let flags: Vec<_> = messages(&reply.body)
        .iter()
        .map(|(flags, _)| *flags)
        .collect();
    assert_eq!(flags, [1, 0, 1]);
    assert!(plain(&reply.body, "zstd") == [body.clone(), vec![], body]);
    let labels = [("direction", "to_client"), ("form", "recoded")];
    assert_eq!(
        proxy.metrics().sum("thinwire_grpc_messages_total", &labels),
        6.0
    );
}

#[test]
fn a_message_of_the_app_that_inflates_beyond_the_limit_ends_the_call_with_status_8() {
    let bomb = message(1, &gzip(&vec![0; 10 << 20]));
    let app = app(
        &[("grpc-encoding", "gzip")],
        vec![message(0, b"first"), bomb],
    );
    let proxy = Proxy::before(&app);
    let reply = ask(&proxy, &[]);
    assert_eq!(messages(&reply.body), [(0, b"first".to_vec())]);
    assert_eq!(status(&reply), Some("8"));
    assert_eq!(proxy.access("/pkg.Service/Method")["ended_by"], "upstream");
}

#[test]
fn a_compressed_message_without_an_encoding_ends_the_call_with_status_13() {
    // Rule 3: what was announced is ours, so it must not reach the client under it.
    let app = app(
        &[],
        vec![message(0, b"first"), message(1, &gzip(b"second"))],
    );
    let proxy = Proxy::before(&app);
    let reply = ask(&proxy, &[TAKES_GZIP]);
    assert_eq!(messages(&reply.body), [(0, b"first".to_vec())]);
    assert_eq!(status(&reply), Some("13"));
}

#[test]
fn data_frames_mean_nothing_to_messages() {
    // Rule 11, and BEHAVIOUR.md: 1+4, three messages in one frame, 2 MB.
    let large = records(2 << 20);
    let framed = message(0, &large);
    let three = [
        message(0, b"a"),
        message(0, &records(5_000)),
        message(0, b""),
    ]
    .concat();
    let mut frames = vec![framed[..1].to_vec(), framed[1..5].to_vec()];
    frames.extend(framed[5..].chunks(10_007).map(<[u8]>::to_vec));
    frames.push(three);
    frames.extend(message(0, b"single bytes").iter().map(|byte| vec![*byte]));
    let app = app(&[], frames);
    let proxy = Proxy::before(&app);
    for takes in [&[TAKES_GZIP][..], &[]] {
        let reply = ask(&proxy, takes);
        let plain = plain(&reply.body, "gzip");
        let rest = [&b"a"[..], &records(5_000), b"", b"single bytes"];
        assert!(plain[0] == large && plain[1..] == rest);
    }
}

#[test]
fn no_http_coding_is_ever_put_on_it() {
    // Rule 9.
    for content_type in [
        "application/grpc",
        "application/grpc+proto",
        "application/grpc+json",
    ] {
        let body = message(0, &records(50_000));
        let app = H2Origin::answer(&[("content-type", content_type)], body.clone(), &[OK]);
        let proxy = Setup::before(&app)
            .route("compress: { types: [\"*/*\"], min_size: 0B }\ngrpc: { compress: false }")
            .start();
        let fields = [
            ("content-type", content_type),
            TE,
            ("accept-encoding", "gzip, br, zstd"),
        ];
        let mut stream = proxy.h2().start("POST", "/s/m", &fields, false);
        stream.send(&message(0, b"ask"), true);
        let reply = stream.reply();
        assert_eq!(reply.header("content-type"), Some(content_type));
        assert!(reply.header("content-encoding").is_none() && reply.body == body);
        assert!(reply.header("grpc-encoding").is_none(), "{content_type}");
        assert_eq!(proxy.access("/s/m")["reason"], "disabled");
    }
}

#[test]
fn a_route_of_one_method_can_be_switched_off() {
    // Rule 24.
    let body = message(0, &records(50_000));
    let app = app(&[], vec![body.clone()]);
    let off = "- { name: off, match: { path: =/pkg.Service/Secret }, upstream: app, grpc: { compress: false } }";
    let proxy = Setup::before(&app).routes_before(off).start();
    let client = proxy.h2();
    let secret = call(
        &client,
        "/pkg.Service/Secret",
        &[TAKES_GZIP],
        &message(0, b""),
    );
    assert!(secret.body == body && secret.header("grpc-encoding").is_none());
    // Where we do not compress, the app may.
    let asked = app.requests();
    assert_eq!(asked[0].headers()["grpc-accept-encoding"], TAKES_GZIP.1);
    let open = call(
        &client,
        "/pkg.Service/Open",
        &[TAKES_GZIP],
        &message(0, b""),
    );
    assert_eq!(messages(&open.body)[0].0, 1);
}

#[test]
fn messages_leave_as_they_are_done() {
    // Rules 11 and 19, G7: nothing waits for a second message, nor for the end of the request.
    let app = H2Origin::start(|mut call| async move {
        call.head(200, &[GRPC], false)?;
        while let Some(piece) = call.piece().await? {
            call.data(piece, false).await?;
        }
        call.end_with(&[OK])
    });
    let proxy = Proxy::before(&app);
    let mut stream = begin(&proxy.h2(), "/s/echo", &[TAKES_GZIP]);
    let reply = stream.head().expect(200);
    let mut seen = Vec::new();
    for body in [&b"small"[..], &records(9_000), b"", &records(60_000)] {
        stream.send(&message(0, body), false);
        let mut arrived = Vec::new();
        loop {
            arrived.extend(stream.piece().expect("an echo"));
            let length = arrived
                .get(1..5)
                .map(|length| u32::from_be_bytes(length.try_into().unwrap()));
            if length.is_some_and(|length| arrived.len() == length as usize + 5) {
                break;
            }
        }
        assert!(plain(&arrived, "gzip") == [body]);
        seen.push(arrived[0]);
    }
    assert_eq!(seen, [0, 1, 0, 1]);
    stream.send(b"", true);
    let reply = stream.rest(reply);
    assert_eq!(status(&reply), Some("0"));
}

#[test]
fn an_answer_in_another_type_passes_as_http() {
    let app = H2Origin::answer(&[("content-type", "text/plain")], "sorry", &[]);
    let proxy = Proxy::before(&app);
    let reply = ask(&proxy, &[TAKES_GZIP]);
    assert_eq!(reply.body, b"sorry");
    assert!(reply.header("grpc-encoding").is_none());
}
