//! The WebSocket pages of the demo application, through the proxy.

use super::CHROME;
use crate::support::websocket::{BINARY, CLOSE, FIN, TEXT};
use crate::support::{Demo, Proxy, Socket};

const TICKS: &str = "/ws/ticks?count=50&interval_ms=1";

#[test]
fn ticks_come_deflated_and_end_with_a_close() {
    let proxy = Proxy::before(&Demo);
    let mut socket = Socket::open(&proxy, TICKS, CHROME);
    for number in 1..=50 {
        let (opcode, plain, deflated) = socket.message();
        let tick: serde_json::Value = serde_json::from_slice(&plain).expect("JSON");
        assert_eq!(
            (opcode, deflated, &tick["number"]),
            (TEXT, true, &number.into())
        );
        assert!((900..1_300).contains(&plain.len()), "{}", plain.len());
    }
    assert_eq!(socket.closes(), Some(1000));
    socket.send(FIN | CLOSE, 1000_u16.to_be_bytes());
    socket.ends();
    let line = proxy.access(TICKS);
    assert_eq!(line["messages_to_client"], 50);
    let (before, after) = (&line["bytes_before"], &line["bytes_after"]);
    assert!(
        after.as_u64() < before.as_u64().map(|bytes| bytes / 3),
        "{line}"
    );
}

#[test]
fn an_echo_gives_back_what_came() {
    let proxy = Proxy::before(&Demo);
    let mut socket = Socket::open(&proxy, "/ws/echo", CHROME);
    let long = crate::support::big();
    for (opcode, message) in [
        (TEXT, &b"hello"[..]),
        (BINARY, &[0, 255]),
        (TEXT, b""),
        (TEXT, &long),
    ] {
        socket.send(FIN | opcode, message);
        let (echoed, plain, _) = socket.message();
        assert!((echoed, &plain[..]) == (opcode, message));
    }
    let page = proxy.get("/ws/echo", &[]);
    assert_eq!(page.status, 426, "to who does not speak WebSocket");
}
