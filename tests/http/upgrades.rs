//! Changes of protocol over HTTP/1.1: tunnels, what is ignored, and what the app declines.

use std::io::{self, Write as _};

use crate::support::{Call, Conn, Fields, Origin, Proxy, Signal, Uvicorn, big, eventually};

const WEBSOCKET: [(&str, &str); 4] = [
    ("Connection", "keep-alive, Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ("Sec-WebSocket-Version", "13"),
];

/// Switches to the protocol that it was asked for, `glued` following in the same write.
fn switch(call: &mut Call<'_>, glued: &str) -> io::Result<()> {
    let protocol = call.head.field("upgrade").expect("an upgrade").to_owned();
    let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n";
    let accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
    call.send(format!("{head}{accept}Upgrade: {protocol}\r\n\r\n{glued}"))
}

/// Answers `ping` with `pong` after the change, until the client leaves.
fn ponging(call: &mut Call<'_>) -> io::Result<()> {
    switch(call, "")?;
    loop {
        call.read_until("ping")?;
        call.stream().write_all(b"pong")?;
    }
}

fn upgraded(conn: &mut Conn, fields: Fields<'_>) {
    conn.request("GET", "/ws", fields, b"");
    let head = conn.head();
    assert_eq!(head.status, 101, "{:?}", head.head.fields);
}

#[test]
fn bytes_pass_both_ways_also_those_glued_to_the_handshakes() {
    let app = Origin::start(|call| {
        switch(call, "glued to the 101;")?;
        let early = call.read_until(";")?;
        assert_eq!(early, b"glued to the request;");
        call.stream()
            .write_all(b"\x00\xff\r\n\r\nHTTP/1.1 200 OK;")?;
        assert_eq!(
            call.read_until("last")?,
            b"\x81\x80GET / HTTP/1.1\r\n\r\nlast"
        );
        call.stream().write_all(b"bye")
    });
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    let fields: String = WEBSOCKET
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    conn.send(format!(
        "GET /ws HTTP/1.1\r\nHost: a\r\n{fields}\r\nglued to the request;"
    ));
    let head = conn.head();
    assert_eq!(head.status, 101);
    assert_eq!(head.header("upgrade"), Some("websocket"));
    assert_eq!(
        head.header("connection")
            .map(str::to_ascii_lowercase)
            .as_deref(),
        Some("upgrade")
    );
    assert_eq!(
        head.header("sec-websocket-accept"),
        Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    );
    assert!(head.all("content-length").is_empty() && head.all("transfer-encoding").is_empty());
    assert_eq!(conn.read_until(";"), b"glued to the 101;");
    assert_eq!(conn.read_until("OK;"), b"\x00\xff\r\n\r\nHTTP/1.1 200 OK;");
    conn.send(b"\x81\x80GET / HTTP/1.1\r\n\r\nlast");
    assert_eq!(conn.read_until("bye"), b"bye");
    // The app has left.
    assert!(conn.closed().is_empty());
    drop(conn);
    let seen = app.last().head;
    assert_eq!(seen.field("upgrade"), Some("websocket"));
    assert_eq!(
        seen.field("connection")
            .map(str::to_ascii_lowercase)
            .as_deref(),
        Some("upgrade")
    );
    assert_eq!(seen.field("sec-websocket-key"), Some(WEBSOCKET[2].1));
    let line = proxy.access("/ws");
    assert_eq!(
        (&line["status"], &line["reason"]),
        (&101.into(), &"upgrade".into())
    );
    assert!(line["ended_by"].is_null(), "{line}");
    assert!(line["bytes_after"].as_u64() >= Some(40), "{line}");
}

#[test]
fn a_tunnel_takes_more_than_a_request_may_and_longer_than_a_body_may_pause() {
    let app = Origin::start(|call| {
        switch(call, "")?;
        call.read_until("end")?;
        call.stream().write_all(&[&big()[..], b"end"].concat())
    });
    let limits =
        "limits: { request_body: 1KiB }\ntimeouts: { request_body: 50ms, response: 100ms }";
    let proxy = Proxy::with(&app, limits);
    let mut conn = proxy.conn();
    upgraded(&mut conn, &WEBSOCKET);
    std::thread::sleep(std::time::Duration::from_millis(200));
    conn.send([&big()[..], b"end"].concat());
    assert_eq!(conn.read_until("end").len(), big().len() + 3);
}

#[test]
fn when_one_side_leaves_a_tunnel_the_other_learns_of_it() {
    let left = Signal::new();
    let seen = left.clone();
    let app = Origin::start(move |call| {
        switch(call, "")?;
        call.gone()?;
        seen.fire();
        Ok(())
    });
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    upgraded(&mut conn, &WEBSOCKET);
    drop(conn);
    left.wait();
    // A reset is not mistaken for an end in order.
    let app = Origin::start(|call| {
        switch(call, "")?;
        call.read_until("go")?;
        call.reset()
    });
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    upgraded(&mut conn, &WEBSOCKET);
    conn.send("go");
    conn.closed();
    assert_eq!(proxy.access("/ws")["ended_by"], "upstream");
}

#[test]
fn one_side_of_a_tunnel_may_end_before_the_other() {
    let app = Origin::start(|call| {
        switch(call, "")?;
        call.gone()?;
        call.stream().write_all(b"heard you out")
    });
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    upgraded(&mut conn, &WEBSOCKET);
    conn.send("all I have");
    conn.stream().half_close().unwrap();
    assert_eq!(conn.closed(), b"heard you out");
}

/// Says what of an upgrade arrived.
fn telling(call: &mut Call<'_>) -> io::Result<()> {
    let body = call.body()?;
    let wanted =
        ["upgrade", "connection", "http2-settings"].map(|name| call.head.all(name).join(","));
    let text = format!("{wanted:?} {}", String::from_utf8_lossy(&body));
    call.answer(200, &[("Content-Type", "text/plain")], text.as_bytes())
}

#[test]
fn an_upgrade_that_is_not_listed_is_ignored() {
    let app = Origin::start(telling);
    let proxy = Proxy::before(&app);
    let settings = ("HTTP2-Settings", "AAMAAABkAAQAAP__");
    for fields in [
        &[("Connection", "Upgrade"), ("Upgrade", "chat/2")][..],
        &[
            ("Connection", "Upgrade, HTTP2-Settings"),
            ("Upgrade", "h2c"),
            settings,
        ],
        // Not an upgrade, for Connection does not name it (RFC 9110 section 7.8).
        &[("Upgrade", "websocket")],
        &[("Connection", "keep-alive"), ("Upgrade", "websocket")],
        &[
            ("Connection", "Upgrade"),
            ("Upgrade", "websockets, web socket"),
        ],
    ] {
        let mut conn = proxy.conn();
        for body in [&b""[..], b"body"] {
            let reply = conn.ask("POST", "/", fields, body).expect(200);
            let expected = format!(r#"["", "", ""] {}"#, String::from_utf8_lossy(body));
            assert_eq!(reply.text(), expected, "{fields:?}");
            assert!(reply.all("upgrade").is_empty());
        }
        // What stands behind the head is the next request.
        let lines: String = fields
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let one = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        conn.send(one.repeat(2));
        for _ in 0..2 {
            conn.reply().expect(200);
        }
    }
}

#[test]
fn an_http10_client_cannot_upgrade() {
    let app = Origin::start(telling);
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.send("GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert!(conn.reply().expect(200).text().starts_with(r#"["", "","#));
}

#[test]
fn a_route_lists_the_protocols_that_pass_and_the_app_is_asked_for_one() {
    let app = Origin::start(ponging);
    let proxy = Proxy::with(&app, "upgrades: [websocket, My-Proto/1]");
    for (offered, asked) in [
        ("my-proto/1", "My-Proto/1"),
        ("chat, My-Proto/1, websocket", "My-Proto/1"),
        ("h2c, WebSocket", "websocket"),
    ] {
        let mut conn = proxy.conn();
        upgraded(
            &mut conn,
            &[("Connection", "upgrade"), ("Upgrade", offered)],
        );
        let seen = app
            .last()
            .head
            .field("upgrade")
            .unwrap_or_default()
            .to_owned();
        assert!(seen.eq_ignore_ascii_case(asked), "{offered}: {seen}");
        conn.send("ping");
        assert_eq!(conn.read_until("pong"), b"pong");
    }
    let proxy = Proxy::with(&app, "upgrades: []");
    let plain = Origin::start(telling);
    let proxy_of_none = Proxy::with(&plain, "upgrades: []");
    assert!(
        proxy_of_none
            .get("/", &WEBSOCKET)
            .expect(200)
            .text()
            .starts_with(r#"["", "","#)
    );
    drop(proxy);
}

#[test]
fn an_app_that_declines_answers_as_to_any_request() {
    let app =
        Origin::start(|call| call.answer(403, &[("Content-Type", "application/json")], &big()));
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    let fields: Vec<_> = WEBSOCKET
        .into_iter()
        .chain([("Accept-Encoding", "gzip")])
        .collect();
    let reply = conn.ask("GET", "/ws", &fields, b"").expect(403);
    assert_eq!((reply.coding(), reply.decoded()), ("gzip", big()));
    // Bytes behind the request that was declined are the next one.
    let lines: String = fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    conn.send(format!(
        "GET /a HTTP/1.1\r\nHost: a\r\n{lines}\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n"
    ));
    assert_eq!(conn.reply().coding(), "gzip");
    assert_eq!(conn.reply().coding(), "identity");
    assert_eq!(app.last().head.line, "GET /b HTTP/1.1");
}

#[test]
fn an_app_that_does_not_exist_declines_by_502() {
    let app = Origin::answer(200, &[], "");
    let proxy = Proxy::before(&app);
    drop(app);
    let mut conn = proxy.conn();
    assert_eq!(conn.ask("GET", "/ws", &WEBSOCKET, b"").status, 502);
    assert_eq!(conn.get("/", &[]).status, 502, "the connection goes on");
}

#[test]
fn an_app_may_switch_to_what_it_was_asked_for_and_nothing_else() {
    let app = Origin::start(|call| {
        let protocol = call.path().trim_start_matches('/').to_owned();
        let fields = [("Connection", "upgrade"), ("Upgrade", protocol.as_str())];
        call.raw_head(101, if protocol.is_empty() { &[] } else { &fields })?;
        call.gone()
    });
    let proxy = Proxy::before(&app);
    for (target, fields) in [
        ("/h2c", &WEBSOCKET[..]),
        ("/", &WEBSOCKET),
        ("/websocket", &[]),
    ] {
        let reply = proxy.get(target, fields);
        assert_eq!(reply.status, 502, "{target} {fields:?}");
    }
    eventually("the app's connections to end", || {
        (app.open() == 0).then_some(())
    });
}

#[test]
fn a_silent_tunnel_is_closed_and_a_busy_one_is_not() {
    let app = Origin::start(ponging);
    let proxy = Proxy::with(&app, "websocket: { idle_timeout: 1s }");
    let mut silent = proxy.conn();
    upgraded(&mut silent, &WEBSOCKET);
    let mut busy = proxy.conn();
    upgraded(&mut busy, &WEBSOCKET);
    let pinging = std::thread::spawn(move || {
        let began = std::time::Instant::now();
        // Never still, for longer than the silent one may be.
        while began.elapsed() < std::time::Duration::from_secs(3) {
            busy.send("ping");
            assert_eq!(busy.read_until("pong"), b"pong");
        }
        busy.send("ping");
        busy.read_until("pong")
    });
    assert!(silent.closed().is_empty());
    let line = proxy.access("/ws");
    assert_eq!(line["ended_by"], "proxy", "{line}");
    assert_eq!(pinging.join().expect("a busy tunnel"), b"pong");
}

/// A masked frame of a client, short enough for one byte of length.
pub(crate) fn frame(opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [1, 2, 3, 4];
    let masked = payload
        .iter()
        .zip(mask.iter().cycle())
        .map(|(byte, mask)| byte ^ mask);
    let mut frame = vec![0x80 | opcode, 0x80 | payload.len() as u8];
    frame.extend(mask);
    frame.extend(masked);
    frame
}

#[test]
fn a_real_websocket_application_is_reached() {
    let app = Uvicorn::start("app");
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.request("GET", "/echo", &WEBSOCKET, b"");
    assert_eq!(
        conn.head().header("sec-websocket-accept"),
        Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    );
    conn.send(frame(1, b"hello"));
    assert_eq!(conn.read_until("hello"), b"\x81\x05hello");
    conn.send(frame(8, b"\x03\xe8"));
    assert_eq!(conn.read_until(b"\x03\xe8"), b"\x88\x02\x03\xe8");
    conn.closed();
    drop(conn);
    assert_eq!(proxy.access("/echo")["status"], 101);
    // No such WebSocket: uvicorn declines.
    assert_eq!(proxy.get("/no-such-thing", &WEBSOCKET).status, 403);
}
