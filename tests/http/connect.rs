//! WebSocket over HTTP/2: extended CONNECT (RFC 8441), put to an application that speaks HTTP/1.1.

use std::io;

use ::h2::Reason;
use ::h2::ext::Protocol;
use http::Request;

use crate::support::h2::H2Stream;
use crate::support::websocket::{
    BINARY, CLOSE, FIN, HANDSHAKE, Socket, TEXT, accept, accept_for, code, echoing,
};
use crate::support::{Call, Fields, H2, H2Origin, Origin, Proxy, Signal, Uvicorn, big};

const VERSION: (&str, &str) = ("sec-websocket-version", "13");

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

fn opened(client: &H2, fields: Fields<'_>) -> Socket<H2Stream> {
    let mut stream = connect(client, "websocket", &[&[VERSION], fields].concat());
    stream.head().expect(200);
    Socket::new(stream, true)
}

/// As a WebSocket server would answer that speaks `chat`.
fn chatting(call: &mut Call<'_>) -> io::Result<()> {
    let mut socket = accept(call, &[("Sec-WebSocket-Protocol", "chat")])?;
    while let Some(frame) = socket.try_frame()? {
        socket.send(frame.first, &frame.payload);
        if frame.opcode() == CLOSE {
            break;
        }
    }
    Ok(())
}

#[test]
fn a_websocket_over_h2_reaches_an_http1_application() {
    let app = Origin::start(chatting);
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    let fields = [
        VERSION,
        ("sec-websocket-protocol", "chat"),
        ("sec-websocket-extensions", "permessage-deflate"),
    ];
    let mut stream = connect(&client, "websocket", &fields);
    let head = stream.head();
    assert_eq!(head.status, 200);
    assert_eq!(head.header("sec-websocket-protocol"), Some("chat"));
    let extension = head.header("sec-websocket-extensions").unwrap_or_default();
    assert!(extension.starts_with("permessage-deflate;"), "{extension}");
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
    assert_eq!(seen.field("sec-websocket-extensions"), None);
    assert_eq!(seen.field("via"), Some("2 thinwire"));
    let mut socket = Socket::new(stream, true);
    socket.send_deflated(TEXT, b"one");
    assert_eq!(socket.message(), (TEXT, b"one".to_vec(), false));
    // Frames may be cut anywhere by DATA.
    let long = socket.deflated(&big());
    for piece in crate::support::websocket::masked(FIN | 0x40 | BINARY, &long).chunks(1_000) {
        socket.put(piece);
    }
    assert_eq!(socket.message(), (BINARY, big(), true));
    socket.send(FIN | CLOSE, 1000_u16.to_be_bytes());
    assert_eq!(socket.closes(), Some(1000));
    socket.ends();
    let line = proxy.access("/ws?room=1");
    assert_eq!(
        (&line["method"], &line["status"]),
        (&"CONNECT".into(), &200.into())
    );
    assert_eq!(
        (&line["reason"], &line["protocol"]),
        (&"upgrade".into(), &"HTTP/2.0".into())
    );
    assert_eq!(line["extension"], extension);
}

#[test]
fn a_client_that_resets_its_stream_leaves_the_application() {
    let told = Signal::new();
    let seen = told.clone();
    let app = Origin::start(move |call| {
        let mut socket = accept(call, &[])?;
        let frame = socket.try_frame()?.expect("a Close");
        assert_eq!((frame.opcode(), code(&frame.payload)), (CLOSE, Some(1001)));
        seen.fire();
        Ok(())
    });
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    opened(&client, &[]).wire.reset(Reason::CANCEL);
    told.wait();
    // The connection and its other streams live on.
    opened(&client, &[]);
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
        let reply = connect(&client, "websocket", &[VERSION, ("x-status", status)]).reply();
        assert_eq!(reply.status.to_string(), status);
        assert_eq!(reply.body, b"no WebSocket here");
    }
    // A 2xx to CONNECT would open a tunnel that nobody stands behind.
    for status in ["200", "204"] {
        let reply = connect(&client, "websocket", &[VERSION, ("x-status", status)]).reply();
        assert_eq!(reply.status, 502, "{status}");
    }
    assert_eq!(client.get("/", &[]).status, 200);
}

#[test]
fn an_application_that_answers_another_handshake_is_no_websocket_server() {
    let app = Origin::start(|call| {
        let accept = accept_for("the sample nonce");
        let fields = [
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Accept", &accept),
        ];
        call.raw_head(101, &fields)?;
        call.gone()
    });
    let proxy = Proxy::before(&app);
    assert_eq!(
        connect(&proxy.h2(), "websocket", &[VERSION]).reply().status,
        502
    );
}

#[test]
fn other_protocols_and_routes_that_list_none_are_501() {
    let app = Origin::answer(200, &[], "fine");
    let proxy = Proxy::before(&app);
    assert_eq!(connect(&proxy.h2(), "connect-udp", &[]).reply().status, 501);
    let proxy = Proxy::with(&app, "upgrades: []");
    assert_eq!(
        connect(&proxy.h2(), "websocket", &[VERSION]).reply().status,
        501
    );
    assert!(app.requests().is_empty());
}

#[test]
fn an_application_over_h2_is_not_asked_to_upgrade() {
    let app = H2Origin::answer(&[], "fine", &[]);
    let proxy = Proxy::before(&app);
    assert_eq!(
        connect(&proxy.h2(), "websocket", &[VERSION]).reply().status,
        501
    );
    let fields = [("Connection", "upgrade"), ("Upgrade", "websocket")];
    let mut conn = proxy.conn();
    assert_eq!(conn.ask("GET", "/", &fields, b"").expect(200).body, b"fine");
    assert_eq!(conn.get("/", &[]).status, 200);
}

#[test]
fn a_version_that_nobody_speaks_is_426() {
    let app = Origin::start(echoing);
    let proxy = Proxy::before(&app);
    for fields in [&[][..], &[("sec-websocket-version", "8")]] {
        let reply = connect(&proxy.h2(), "websocket", fields).reply();
        assert_eq!(reply.status, 426);
        assert_eq!(reply.header("sec-websocket-version"), Some("13"));
        assert_eq!(reply.header("upgrade"), None);
    }
    let mut conn = proxy.conn();
    let old = HANDSHAKE[..3].to_vec();
    let reply = conn.ask("GET", "/ws", &old, b"").expect(426);
    assert_eq!(reply.header("sec-websocket-version"), Some("13"));
    assert_eq!(reply.header("upgrade"), Some("websocket"));
}

#[test]
fn a_silent_stream_is_closed() {
    let app = Origin::start(echoing);
    let proxy = Proxy::with(&app, "websocket: { idle_timeout: 300ms }");
    let mut socket = opened(&proxy.h2(), &[]);
    assert_eq!(socket.closes(), Some(1001));
    socket.send(FIN | CLOSE, 1001_u16.to_be_bytes());
    socket.ends();
    assert_eq!(proxy.access("/ws?room=1")["ended_by"], "proxy");
}

#[test]
fn a_real_websocket_application_is_reached_over_h2() {
    let app = Uvicorn::start("app");
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    let offer = "permessage-deflate; client_max_window_bits";
    let fields = [VERSION, ("sec-websocket-extensions", offer)];
    let mut stream = client.connect("websocket", "/echo", &fields);
    stream.head().expect(200);
    let mut socket = Socket::new(stream, true);
    let text = "hello ".repeat(1_000).into_bytes();
    for _ in 0..3 {
        socket.send_deflated(TEXT, &text);
        assert_eq!(socket.message(), (TEXT, text.clone(), true));
    }
    socket.send(FIN | CLOSE, 1000_u16.to_be_bytes());
    assert_eq!(socket.closes(), Some(1000));
}
