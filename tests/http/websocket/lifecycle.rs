//! How connections end (TRAPS 24, 25, 28).

use rustix::process::Signal as Unix;

use super::{CHROME, echo, tick};
use crate::support::websocket::{CLOSE, FIN, PING, PONG, TEXT, accept, code, echoing};
use crate::support::{Origin, Proxy, Signal, Socket};

#[test]
fn pings_and_pongs_pass_end_to_end_and_nobody_answers_for_another() {
    let app = Origin::start(|call| {
        let mut socket = accept(call, &[])?;
        let ping = socket.try_frame()?.expect("a ping");
        assert_eq!(
            (ping.first, &ping.payload[..]),
            (FIN | PING, &b"from the client"[..])
        );
        // Were it answered by the proxy, the client would hear two.
        socket.send(FIN | PONG, b"from the app");
        let pong = socket.try_frame()?.expect("a pong");
        assert_eq!(
            (pong.first, &pong.payload[..]),
            (FIN | PONG, &b"unasked"[..])
        );
        socket.try_frame().map(|_| ())
    });
    let proxy = Proxy::before(&app);
    let mut socket = Socket::open(&proxy, "/ws", CHROME);
    socket.send(FIN | PING, b"from the client");
    let pong = socket.frame();
    assert_eq!(
        (pong.first, &pong.payload[..]),
        (FIN | PONG, &b"from the app"[..])
    );
    socket.send(FIN | PONG, b"unasked");
}

#[test]
fn the_clients_close_reaches_the_app_and_its_answer_the_client() {
    let app = Origin::start(|call| {
        let mut socket = accept(call, &[])?;
        let close = socket.try_frame()?.expect("a Close");
        assert_eq!(
            (code(&close.payload), &close.payload[2..]),
            (Some(4321), "grüße".as_bytes())
        );
        socket.send(FIN | CLOSE, b"\x0f\xa1 bye");
        Ok(())
    });
    let proxy = Proxy::before(&app);
    let mut socket = Socket::open(&proxy, "/ws", CHROME);
    socket.send(
        FIN | CLOSE,
        ["\u{10}\u{0}".as_bytes(), b""].concat().as_slice(),
    );
    drop(socket);
    let mut socket = Socket::open(&proxy, "/closed", CHROME);
    socket.send(
        FIN | CLOSE,
        [&4321_u16.to_be_bytes(), "grüße".as_bytes()].concat(),
    );
    // What a client sends behind its Close is nobody's.
    socket.send(FIN | TEXT, b"too late");
    let close = socket.frame();
    assert_eq!(
        (code(&close.payload), &close.payload[2..]),
        (Some(4001), &b" bye"[..])
    );
    socket.ends();
    assert!(proxy.access("/closed")["ended_by"].is_null());
}

#[test]
fn the_apps_close_reaches_the_client_also_without_a_code() {
    let app = Origin::start(|call| {
        let mut socket = accept(call, &[])?;
        socket.send(FIN | TEXT, tick(1));
        socket.send(FIN | CLOSE, b"");
        let close = socket.try_frame()?.expect("the answer");
        assert_eq!((close.opcode(), close.payload.len()), (CLOSE, 0));
        Ok(())
    });
    let proxy = Proxy::before(&app);
    let mut socket = Socket::open(&proxy, "/ws", CHROME);
    assert_eq!(socket.message().1, tick(1));
    assert_eq!(socket.closes(), None);
    socket.send(FIN | CLOSE, b"");
    socket.ends();
    assert!(proxy.access("/ws")["ended_by"].is_null());
}

#[test]
fn a_client_that_vanishes_is_1001_to_the_app() {
    let told = Signal::new();
    let seen = told.clone();
    let app = Origin::start(move |call| {
        let mut socket = accept(call, &[])?;
        let close = socket.try_frame()?.expect("a Close");
        assert_eq!((close.opcode(), code(&close.payload)), (CLOSE, Some(1001)));
        seen.fire();
        Ok(())
    });
    let proxy = Proxy::before(&app);
    drop(Socket::open(&proxy, "/ws", CHROME));
    told.wait();
    assert_eq!(proxy.access("/ws")["ended_by"], "client");
}

#[test]
fn an_app_that_vanishes_is_1011_to_the_client() {
    let app = Origin::start(|call| {
        let mut socket = accept(call, &[])?;
        socket.try_frame()?;
        socket.wire.reset()
    });
    let proxy = Proxy::before(&app);
    let mut socket = Socket::open(&proxy, "/ws", CHROME);
    socket.send(FIN | TEXT, b"go");
    assert_eq!(socket.closes(), Some(1011));
    socket.send(FIN | CLOSE, 1011_u16.to_be_bytes());
    socket.ends();
    assert_eq!(proxy.access("/ws")["ended_by"], "upstream");
}

#[test]
fn a_silent_connection_is_closed_and_a_busy_one_is_not() {
    let app = Origin::start(echoing);
    let proxy = Proxy::with(&app, "websocket: { idle_timeout: 1s }");
    let mut busy = Socket::open(&proxy, "/busy", CHROME);
    let mut silent = Socket::open(&proxy, "/silent", CHROME);
    let began = std::time::Instant::now();
    // Never still, for longer than the silent one may be.
    while began.elapsed() < std::time::Duration::from_secs(3) {
        busy.send(FIN | PING, b"");
        assert_eq!(busy.frame().first, FIN | PONG);
    }
    assert_eq!(silent.closes(), Some(1001));
    silent.send(FIN | CLOSE, 1001_u16.to_be_bytes());
    silent.ends();
    assert_eq!(proxy.access("/silent")["ended_by"], "proxy");
    busy.send(FIN | TEXT, b"still here");
    assert_eq!(busy.message().1, b"still here");
}

#[test]
fn a_drain_says_1001_and_waits_for_the_answer() {
    let (_app, mut proxy, mut socket) = echo(CHROME);
    socket.send(FIN | TEXT, tick(1));
    assert_eq!(socket.message().1, tick(1));
    proxy.signal(Unix::TERM);
    assert_eq!(socket.closes(), Some(1001));
    // A message on its way is not cut: the app hears it before the Close.
    socket.send(FIN | TEXT, b"last words");
    socket.send(FIN | CLOSE, 1001_u16.to_be_bytes());
    socket.ends();
    assert!(proxy.process().exit().success());
    let line = proxy.access("/ws");
    assert_eq!(
        (&line["messages_to_app"], &line["ended_by"]),
        (&2.into(), &().into()),
        "{line}"
    );
}

#[test]
fn a_drain_does_not_cut_a_running_message() {
    let rest = Signal::new();
    let go = rest.clone();
    let app = Origin::start(move |call| {
        let mut socket = accept(call, &[])?;
        socket.send(TEXT, b"begun ");
        go.wait();
        socket.send(FIN, b"and ended");
        while let Some(frame) = socket.try_frame()? {
            if frame.opcode() == CLOSE {
                socket.send(frame.first, &frame.payload);
            }
        }
        Ok(())
    });
    let mut proxy = Proxy::before(&app);
    let mut socket = Socket::open(&proxy, "/ws", "");
    let first = socket.frame();
    assert_eq!((first.first, &first.payload[..]), (TEXT, &b"begun "[..]));
    proxy.signal(Unix::TERM);
    proxy.wait_for_log("draining", |line| line.contains("draining"));
    rest.fire();
    let end = socket.frame();
    assert_eq!((end.first, &end.payload[..]), (FIN, &b"and ended"[..]));
    assert_eq!(socket.closes(), Some(1001));
    socket.send(FIN | CLOSE, 1001_u16.to_be_bytes());
    socket.ends();
    assert!(proxy.process().exit().success());
}
