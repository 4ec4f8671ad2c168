//! The opening handshake (TRAPS 1 to 8, 28).

use std::io::Write as _;

use super::{CHROME, FIREFOX, echo};
use crate::support::websocket::{
    ACCEPT, CLOSE, FIN, HANDSHAKE, KEY, TEXT, accept, accept_for, echoing, frame, masked,
};
use crate::support::{Origin, Proxy, Setup, Socket, big};

const EXTENSIONS: &str = "sec-websocket-extensions";

/// What is answered to the offers in these lines.
fn answered(proxy: &Proxy, offers: &[&str]) -> Option<String> {
    let fields: Vec<_> = offers
        .iter()
        .map(|offer| ("Sec-WebSocket-Extensions", *offer))
        .collect();
    let (_, head) = Socket::handshake(proxy, "/ws", "", &fields);
    assert_eq!(head.status, 101, "{offers:?}");
    let lines = head.all(EXTENSIONS);
    assert!(lines.len() <= 1, "{lines:?}");
    lines.first().map(|&line| line.to_owned())
}

#[test]
fn a_bare_offer_is_accepted_and_the_answer_says_nothing_that_was_not_allowed() {
    let app = Origin::start(echoing);
    let proxy = Proxy::before(&app);
    let bare = answered(&proxy, &["permessage-deflate"]).expect("the extension");
    assert!(!bare.contains("client_max_window_bits"), "{bare}");
    assert!(bare.contains("client_no_context_takeover"), "{bare}");
    for offered in [8, 9, 10, 11] {
        let offer = format!("permessage-deflate; client_max_window_bits={offered}");
        let answer = answered(&proxy, &[&offer]).expect("the extension");
        let bits = answer.split("client_max_window_bits=").nth(1);
        let bits: u8 = bits.expect("a value").parse().expect("a number");
        assert!(bits <= offered, "{answer}");
        let offer = format!("permessage-deflate; server_max_window_bits={offered}");
        let answer = answered(&proxy, &[&offer]).expect("the extension");
        let bits = answer.split("server_max_window_bits=").nth(1);
        let bits: u8 = bits.expect("a value").parse().expect("a number");
        assert!(bits <= offered, "{answer}");
    }
    let answer = answered(&proxy, &["permessage-deflate; server_no_context_takeover"]);
    assert!(answer.is_some_and(|answer| answer.contains("server_no_context_takeover")));
}

#[test]
fn offers_over_several_lines_are_one_list_and_bad_ones_are_declined() {
    let app = Origin::start(echoing);
    let proxy = Proxy::before(&app);
    for bad in [
        "permessage-deflate; unknown=1",
        "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
        "permessage-deflate; client_no_context_takeover=1",
        "permessage-deflate; server_max_window_bits",
        "permessage-deflate; server_max_window_bits=16",
        "permessage-deflate; server_max_window_bits=7",
        "permessage-deflate; client_max_window_bits=08",
        "permessage-deflate; client_max_window_bits=x",
        "x-webkit-deflate-frame",
        "permessage-bzip2",
    ] {
        assert_eq!(answered(&proxy, &[bad]), None, "{bad}");
        let good = "permessage-deflate; server_max_window_bits=\"10\"";
        let answer = answered(&proxy, &[bad, good]).expect("the second offer");
        assert!(answer.contains("server_max_window_bits=10"), "{answer}");
        let joined = format!("{bad}, {good}");
        assert_eq!(answered(&proxy, &[&joined]), Some(answer), "{joined}");
    }
    assert_eq!(answered(&proxy, &[]), None);
}

#[test]
fn a_route_can_do_without() {
    let app = Origin::start(echoing);
    let proxy = Proxy::with(&app, "websocket: { compress: false }");
    assert_eq!(answered(&proxy, &[CHROME]), None);
    let proxy = Proxy::with(
        &app,
        "websocket: { context_takeover: false, window_bits: 9 }",
    );
    let answer = answered(&proxy, &[CHROME]).expect("the extension");
    for part in ["server_no_context_takeover", "client_no_context_takeover"] {
        assert!(answer.contains(part), "{answer}");
    }
    assert!(answer.contains("server_max_window_bits=9"), "{answer}");
}

#[test]
fn the_app_is_asked_for_no_extension_with_a_key_of_our_own() {
    let (app, _, _socket) = echo(CHROME);
    let seen = app.last().head;
    assert_eq!(seen.field(EXTENSIONS), None);
    assert_eq!(seen.field("sec-websocket-version"), Some("13"));
    let key = seen.field("sec-websocket-key").expect("a key");
    assert!(key != KEY && key.len() == 24, "{key}");
    assert_eq!(seen.field("upgrade"), Some("websocket"));
}

#[test]
fn the_apps_choice_its_cookies_and_its_fields_reach_the_client() {
    let app = Origin::start(|call| {
        let fields = [
            ("Sec-WebSocket-Protocol", "v2"),
            ("Set-Cookie", "a=b"),
            ("X-App", "1"),
        ];
        accept(call, &fields)?.try_frame().map(|_| ())
    });
    let proxy = Proxy::before(&app);
    let fields = [
        ("Sec-WebSocket-Protocol", "v1, v2"),
        ("Origin", "https://shop.example"),
        ("Cookie", "c=d"),
    ];
    let (_socket, head) = Socket::handshake(&proxy, "/ws", CHROME, &fields);
    assert_eq!(head.status, 101);
    for (name, value) in [
        ("sec-websocket-accept", ACCEPT),
        ("sec-websocket-protocol", "v2"),
        ("set-cookie", "a=b"),
        ("x-app", "1"),
        ("upgrade", "websocket"),
        ("via", "1.1 thinwire"),
    ] {
        assert_eq!(head.header(name), Some(value), "{name}");
    }
    let seen = app.last().head;
    for (name, value) in [
        ("sec-websocket-protocol", "v1, v2"),
        ("origin", "https://shop.example"),
        ("cookie", "c=d"),
    ] {
        assert_eq!(seen.field(name), Some(value), "{name}");
    }
}

#[test]
fn an_app_that_answers_what_nobody_asked_is_502() {
    let app = Origin::start(|call| {
        let key = call.head.field("sec-websocket-key").unwrap_or_default();
        let good = accept_for(key);
        let (accept, field) = match call.path() {
            "/accept" => (ACCEPT, ("X", "1")),
            "/extension" => (good.as_str(), ("Sec-WebSocket-Extensions", FIREFOX)),
            _ => (good.as_str(), ("Sec-WebSocket-Protocol", "v3")),
        };
        let fields = [
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Accept", accept),
            field,
        ];
        call.raw_head(101, &fields)?;
        call.gone()
    });
    let proxy = Proxy::before(&app);
    for target in ["/accept", "/extension", "/protocol"] {
        let fields = [("Sec-WebSocket-Protocol", "v1, v2")];
        let (_, head) = Socket::handshake(&proxy, target, CHROME, &fields);
        assert_eq!(head.status, 502, "{target}");
        assert_eq!(head.header(EXTENSIONS), None);
    }
}

#[test]
fn an_app_that_declines_is_relayed_compressed_and_agrees_to_nothing() {
    let app =
        Origin::start(|call| call.answer(403, &[("Content-Type", "application/json")], &big()));
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    let mut fields = HANDSHAKE.to_vec();
    fields.extend([
        ("Sec-WebSocket-Extensions", CHROME),
        ("Accept-Encoding", "gzip"),
    ]);
    let reply = conn.ask("GET", "/ws", &fields, b"").expect(403);
    assert_eq!((reply.coding(), reply.decoded()), ("gzip", big()));
    assert_eq!(reply.header(EXTENSIONS), None);
    assert_eq!(conn.get("/", &[]).status, 403, "the connection goes on");
}

#[test]
fn a_handshake_without_a_good_key_is_400_and_by_another_method_none_at_all() {
    let app = Origin::start(|call| {
        let body = call.head.field("upgrade").unwrap_or("none").to_owned();
        call.answer(200, &[], body.as_bytes())
    });
    let proxy = Proxy::before(&app);
    let mut bad = HANDSHAKE;
    bad[2].1 = "short";
    assert_eq!(proxy.get("/ws", &bad).status, 400);
    assert!(app.requests().is_empty());
    let reply = proxy.ask("POST", "/ws", &HANDSHAKE, b"").expect(200);
    assert_eq!(reply.body, b"none");
}

#[test]
fn frames_glued_to_either_handshake_are_not_lost() {
    let app = Origin::start(|call| {
        let key = call.head.field("sec-websocket-key").unwrap_or_default();
        let mut answer = format!(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Accept: {}\r\n\r\n",
            accept_for(key)
        )
        .into_bytes();
        answer.extend(frame(FIN | TEXT, b"glued to the 101"));
        call.send(answer)?;
        let mut socket = Socket::new(call, false);
        let early = socket.try_frame()?.expect("the early frame");
        assert_eq!(early.payload, b"glued to the request");
        socket.send(FIN | TEXT, b"heard");
        socket.wire.stream().flush()
    });
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    let mut request = b"GET /ws HTTP/1.1\r\nHost: a\r\n".to_vec();
    for (name, value) in HANDSHAKE {
        request.extend(format!("{name}: {value}\r\n").bytes());
    }
    request.extend(b"\r\n");
    request.extend(masked(FIN | TEXT, b"glued to the request"));
    conn.send(request);
    assert_eq!(conn.head().status, 101);
    let mut socket = Socket::new(conn, true);
    assert_eq!(socket.frame().payload, b"glued to the 101");
    assert_eq!(socket.frame().payload, b"heard");
}

#[test]
fn past_the_memory_budget_connections_are_accepted_without_the_extension() {
    let app = Origin::start(echoing);
    let proxy = Setup::before(&app)
        .top("websocket: { memory: 64KiB }")
        .start();
    let mut open = Vec::new();
    let mut agreed = Vec::new();
    for _ in 0..10 {
        let (socket, head) = Socket::handshake(&proxy, "/ws", CHROME, &[]);
        assert_eq!(head.status, 101);
        agreed.push(head.header(EXTENSIONS).is_some());
        open.push(socket);
    }
    assert!(agreed[0] && !agreed[9], "{agreed:?}");
    let plain = agreed.iter().position(|agreed| !agreed).expect("one");
    let used = proxy.metrics().sum("thinwire_websocket_context_bytes", &[]);
    assert!(used > 0.0 && used <= 65_536.0, "{used}");
    open[plain].send(FIN | TEXT, b"plain");
    assert_eq!(open[plain].message(), (TEXT, b"plain".to_vec(), false));
    for socket in &mut open {
        socket.send(FIN | CLOSE, b"");
        socket.closes();
    }
    drop(open);
    proxy.until("thinwire_websocket_context_bytes", &[], |bytes| {
        bytes == 0.0
    });
    let (_socket, head) = Socket::handshake(&proxy, "/ws", CHROME, &[]);
    assert!(head.header(EXTENSIONS).is_some());
}
