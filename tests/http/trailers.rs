//! Trailers: always over HTTP/2; over HTTP/1 those that were announced, to who said to take them.

use std::io;

use crate::support::{Call, Fields, H2Origin, Origin, Proxy};

/// Announces `x-sum`, and sends more than that.
fn chunked(call: &mut Call<'_>) -> io::Result<()> {
    call.body()?;
    call.chunked(
        200,
        &[
            ("Trailer", "X-Sum, Content-Length"),
            ("Content-Type", "image/png"),
        ],
    )?;
    call.chunk("body")?;
    let trailers = [("X-Sum", "7"), ("X-Silent", "8"), ("Content-Length", "9")];
    call.end_with(&trailers)
}

const TAKES: [(&str, &str); 2] = [("Connection", "TE"), ("TE", "trailers")];

fn h2_app() -> H2Origin {
    let trailers = [("x-sum", "7"), ("x-silent", "8"), ("set-cookie", "a=1")];
    H2Origin::answer(
        &[("trailer", "x-sum"), ("content-type", "image/png")],
        "body",
        &trailers,
    )
}

#[test]
fn an_http1_client_gets_announced_trailers_if_it_takes_them() {
    let (one, two) = (Origin::start(chunked), h2_app());
    for proxy in [Proxy::before(&one), Proxy::before(&two)] {
        let mut conn = proxy.conn();
        let reply = conn.get("/", &TAKES).expect(200);
        assert_eq!(reply.trailers, [("x-sum".to_owned(), "7".to_owned())]);
        let reply = conn.get("/", &[]).expect(200);
        assert!(reply.trailers.is_empty(), "{:?}", reply.trailers);
        assert_eq!(reply.body, b"body");
    }
}

#[test]
fn an_h2_client_gets_all_that_may_be_trailers() {
    let (one, two) = (Origin::start(chunked), h2_app());
    for proxy in [Proxy::before(&one), Proxy::before(&two)] {
        for fields in [&[("te", "trailers")][..], &[]] {
            let reply = proxy.h2().get("/", fields).expect(200);
            assert_eq!(reply.body, b"body");
            assert_eq!(reply.trailer("x-sum"), Some("7"));
            assert_eq!(reply.trailer("x-silent"), Some("8"));
            assert_eq!(reply.trailers.len(), 2, "{:?}", reply.trailers);
        }
    }
}

/// An upload over HTTP/1.1 with these trailers.
fn upload(proxy: &Proxy, announced: &str, trailers: &str) {
    let mut conn = proxy.conn();
    let framing = "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n";
    let announced = format!("Trailer: {announced}\r\n");
    conn.send(format!(
        "POST / HTTP/1.1\r\nHost: a\r\n{announced}{framing}{trailers}\r\n"
    ));
    conn.reply().expect(200);
}

/// Answers when it has all, and keeps what came behind the body.
fn collecting() -> (H2Origin, std::sync::Arc<std::sync::Mutex<http::HeaderMap>>) {
    let kept = std::sync::Arc::new(std::sync::Mutex::new(http::HeaderMap::new()));
    let seen = std::sync::Arc::clone(&kept);
    let app = H2Origin::start(move |mut call| {
        let seen = std::sync::Arc::clone(&seen);
        async move {
            let (_, trailers) = call.body().await?;
            *seen.lock().unwrap() = trailers;
            call.head(200, &[], true)
        }
    });
    (app, kept)
}

/// What a client may not say behind a body: who took it for a field of the head would be fooled.
const FORGED: &str = "X-Forwarded-For: 10.0.0.1\r\nAuthorization: Bearer x\r\nHost: evil\r\n";

#[test]
fn an_app_gets_the_trailers_of_a_request_and_no_forged_ones() {
    let app = Origin::start(|call| {
        call.body()?;
        call.answer(200, &[], b"")
    });
    let proxy = Proxy::before(&app);
    let names = "X-Sum, X-Forwarded-For, Authorization, Host";
    upload(
        &proxy,
        names,
        &format!("X-Sum: 7\r\nX-Silent: 8\r\n{FORGED}"),
    );
    let seen = app.last();
    assert_eq!(seen.body, b"body");
    assert_eq!(seen.trailers, [("x-sum".to_owned(), "7".to_owned())]);
    let (app, kept) = collecting();
    let proxy = Proxy::before(&app);
    upload(&proxy, names, &format!("X-Sum: 7\r\n{FORGED}"));
    let seen = kept.lock().unwrap().clone();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(seen["x-sum"], "7");
}

#[test]
fn trailers_of_an_h2_request_reach_both_kinds_of_apps() {
    let one = Origin::start(|call| {
        call.body()?;
        call.answer(200, &[], b"")
    });
    let (two, kept) = collecting();
    for (proxy, announce) in [(Proxy::before(&one), true), (Proxy::before(&two), false)] {
        let fields: Fields<'_> = if announce {
            &[("trailer", "x-sum")]
        } else {
            &[]
        };
        let mut stream = proxy.h2().start("POST", "/", fields, false);
        stream.send(b"body", false);
        stream.end_with(&[("x-sum", "7"), ("x-forwarded-for", "10.0.0.1")]);
        stream.reply().expect(200);
    }
    assert_eq!(one.last().trailers, [("x-sum".to_owned(), "7".to_owned())]);
    let seen = kept.lock().unwrap().clone();
    assert_eq!((seen.len(), &seen["x-sum"]), (1, &"7".parse().unwrap()));
}

#[test]
fn an_app_learns_whether_its_client_takes_trailers() {
    let app = Origin::answer(200, &[], "fine");
    let proxy = Proxy::before(&app);
    proxy.get("/", &TAKES).expect(200);
    let seen = app.last().head;
    assert_eq!(seen.field("te"), Some("trailers"));
    // TE is the connection's own: who sends it says so (RFC 9110 section 10.1.4).
    assert_eq!(
        seen.field("connection")
            .map(str::to_ascii_lowercase)
            .as_deref(),
        Some("te")
    );
    proxy.h2().get("/", &[("te", "trailers")]).expect(200);
    assert_eq!(app.last().head.field("te"), Some("trailers"));
    for fields in [&[("TE", "gzip, deflate;q=0.5")][..], &[]] {
        proxy.get("/", fields).expect(200);
        assert_eq!(app.last().head.field("te"), None);
    }
    let app = H2Origin::answer(&[], "fine", &[]);
    Proxy::before(&app).get("/", &TAKES).expect(200);
    let request = app.requests().pop().expect("a request");
    assert_eq!(request.headers()["te"], "trailers");
    assert!(!request.headers().contains_key("connection"));
}
