//! WebSocket over HTTP/2: extended CONNECT (RFC 8441), put to an application that speaks HTTP/1.1.

use std::io::{self, Write as _};

use ::h2::Reason;
use ::h2::ext::Protocol;
use http::Request;

use super::upgrades::frame;
use crate::support::h2::H2Stream;
use crate::support::{Call, Fields, H2, H2Origin, Origin, Proxy, Signal, Uvicorn, big};

/// Asks for this protocol.
fn connect(client: &H2, protocol: &'static str, fields: Fields<'_>) -> H2Stream {
    let mut request = Request::connect("http://shop.example/ws?room=1");
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let mut request = request.body(()).unwrap();
    request
        .extensions_mut()
        .insert(Protocol::from_static(protocol));
    client.begin(request, false)
}

/// What RFC 6455 wants as the answer to the key that came.
fn accept(call: &Call<'_>) -> String {
    use base64::Engine as _;
    let key = call.head.field("sec-websocket-key").expect("a key");
    let guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    let sha1 = &aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY;
    let digest = aws_lc_rs::digest::digest(sha1, format!("{key}{guid}").as_bytes());
    base64::prelude::BASE64_STANDARD.encode(digest)
}

fn switch(call: &mut Call<'_>, accept: &str) -> io::Result<()> {
    let fields = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Accept", accept),
        ("Sec-WebSocket-Protocol", "chat"),
    ];
    call.raw_head(101, &fields)
}

/// As a WebSocket server would; then echoes up to `;` until the client leaves.
fn echo(call: &mut Call<'_>) -> io::Result<()> {
    let accept = accept(call);
    switch(call, &accept)?;
    while let Ok(piece) = call.read_until(";") {
        call.stream().write_all(&piece)?;
    }
    call.stream().write_all(b"bye")
}

fn read_until(stream: &mut H2Stream, end: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while !all.ends_with(end) {
        let piece = stream.try_piece().expect("a tunnel that works");
        all.extend(piece.unwrap_or_else(|| panic!("it ended after {all:?}")));
    }
    all
}

#[test]
fn a_websocket_over_h2_reaches_an_http1_application() {
    let app = Origin::start(echo);
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    let fields = [
        ("sec-websocket-version", "13"),
        ("sec-websocket-protocol", "chat"),
    ];
    let mut stream = connect(&client, "websocket", &fields);
    let head = stream.head();
    assert_eq!(head.status, 200);
    assert_eq!(head.header("sec-websocket-protocol"), Some("chat"));
    for absent in [
        "sec-websocket-accept",
        "upgrade",
        "connection",
        "content-length",
    ] {
        assert_eq!(head.header(absent), None, "{absent}");
    }
    let seen = app.last().head;
    assert_eq!(seen.line, "GET /ws?room=1 HTTP/1.1");
    assert_eq!(seen.field("host"), Some("shop.example"));
    assert_eq!(seen.field("upgrade"), Some("websocket"));
    assert_eq!(seen.field("sec-websocket-version"), Some("13"));
    assert_eq!(seen.field("via"), Some("2 thinwire"));
    stream.send(b"one;", false);
    assert_eq!(read_until(&mut stream, b";"), b"one;");
    // Other streams go on beside it.
    let long = [&big()[..], b";"].concat();
    stream.send(&long, false);
    assert_eq!(read_until(&mut stream, b";"), long);
    // The end of our side reaches the app, which still has something to say.
    stream.send(b"", true);
    assert_eq!(read_until(&mut stream, b"bye"), b"bye");
    while let Some(piece) = stream.try_piece().expect("an end in order") {
        assert!(piece.is_empty());
    }
    let line = proxy.access("/ws?room=1");
    assert_eq!(
        (&line["method"], &line["status"]),
        (&"CONNECT".into(), &200.into())
    );
    assert_eq!(
        (&line["reason"], &line["protocol"]),
        (&"upgrade".into(), &"HTTP/2.0".into())
    );
}

#[test]
fn a_client_that_resets_its_stream_leaves_the_application() {
    let left = Signal::new();
    let seen = left.clone();
    let app = Origin::start(move |call| {
        let accept = accept(call);
        switch(call, &accept)?;
        call.gone()?;
        seen.fire();
        Ok(())
    });
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    let mut stream = connect(&client, "websocket", &[]);
    stream.head().expect(200);
    stream.reset(Reason::CANCEL);
    left.wait();
    // The connection and its other streams live on.
    let mut next = connect(&client, "websocket", &[]);
    next.head().expect(200);
}

#[test]
fn an_application_that_declines_is_relayed_but_never_taken_for_agreement() {
    let app = Origin::start(|call| {
        let status = call
            .head
            .field("x-status")
            .unwrap_or("200")
            .parse()
            .unwrap_or(200);
        call.answer(
            status,
            &[("Content-Type", "text/plain")],
            b"no WebSocket here",
        )
    });
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    for status in ["403", "404", "500"] {
        let reply = connect(&client, "websocket", &[("x-status", status)]).reply();
        assert_eq!(reply.status.to_string(), status);
        assert_eq!(reply.body, b"no WebSocket here");
    }
    // A 2xx to CONNECT would open a tunnel that nobody stands behind.
    for status in ["200", "204"] {
        let reply = connect(&client, "websocket", &[("x-status", status)]).reply();
        assert_eq!(reply.status, 502, "{status}");
    }
    assert_eq!(client.get("/", &[]).status, 200);
}

#[test]
fn an_application_that_answers_another_handshake_is_no_websocket_server() {
    let app = Origin::start(|call| {
        switch(call, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")?;
        call.gone()
    });
    let proxy = Proxy::before(&app);
    assert_eq!(connect(&proxy.h2(), "websocket", &[]).reply().status, 502);
}

#[test]
fn other_protocols_and_routes_that_list_none_are_501() {
    let app = Origin::answer(200, &[], "fine");
    let proxy = Proxy::before(&app);
    assert_eq!(connect(&proxy.h2(), "connect-udp", &[]).reply().status, 501);
    let proxy = Proxy::with(&app, "upgrades: []");
    assert_eq!(connect(&proxy.h2(), "websocket", &[]).reply().status, 501);
    assert!(app.requests().is_empty());
}

#[test]
fn an_application_over_h2_is_not_asked_to_upgrade() {
    let app = H2Origin::answer(&[], "fine", &[]);
    let proxy = Proxy::before(&app);
    assert_eq!(connect(&proxy.h2(), "websocket", &[]).reply().status, 501);
    let fields = [("Connection", "upgrade"), ("Upgrade", "websocket")];
    let mut conn = proxy.conn();
    assert_eq!(conn.ask("GET", "/", &fields, b"").expect(200).body, b"fine");
    assert_eq!(conn.get("/", &[]).status, 200);
}

#[test]
fn a_silent_stream_is_closed() {
    let app = Origin::start(echo);
    let proxy = Proxy::with(&app, "websocket: { idle_timeout: 300ms }");
    let client = proxy.h2();
    let mut stream = connect(&client, "websocket", &[]);
    stream.head().expect(200);
    while stream.try_piece().is_ok_and(|piece| piece.is_some()) {}
    assert_eq!(proxy.access("/ws?room=1")["ended_by"], "proxy");
}

#[test]
fn a_real_websocket_application_is_reached_over_h2() {
    let app = Uvicorn::start("app");
    let proxy = Proxy::before(&app);
    let mut request = Request::connect("http://shop.example/echo")
        .body(())
        .unwrap();
    request
        .extensions_mut()
        .insert(Protocol::from_static("websocket"));
    request
        .headers_mut()
        .insert("sec-websocket-version", "13".parse().unwrap());
    let client = proxy.h2();
    let mut stream = client.begin(request, false);
    stream.head().expect(200);
    stream.send(&frame(1, b"hello"), false);
    assert_eq!(read_until(&mut stream, b"hello"), b"\x81\x05hello");
    stream.send(&frame(8, b"\x03\xe8"), false);
    assert_eq!(read_until(&mut stream, b"\x03\xe8"), b"\x88\x02\x03\xe8");
}
