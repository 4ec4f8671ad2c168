//! Bounds (TRAPS 20, 26).

use super::{CHROME, echo_with};
use crate::support::websocket::{BINARY, CLOSE, FIN, RSV1, TEXT, accept, code, echoing};
use crate::support::{Conn, Origin, Proxy, Signal, Socket, eventually};

const ROUTE: &str = "websocket: { max_message: 100KiB }";

#[test]
fn a_message_up_to_the_limit_passes_and_a_longer_one_is_1009() {
    let most = 100 << 10;
    let (_app, _proxy, mut socket) = echo_with(CHROME, ROUTE);
    socket.send_deflated(BINARY, &vec![0; most]);
    assert_eq!(socket.message().1.len(), most);
    socket.send(FIN | BINARY, vec![0; most]);
    assert_eq!(socket.message().1.len(), most);
    socket.send_deflated(BINARY, &vec![0; most + 1]);
    assert_eq!(closed(&mut socket), Some(1009));
    socket.ends();
    let (_app, _proxy, mut socket) = echo_with("", ROUTE);
    // It need not come to be refused.
    socket.put(b"\x82\xff\0\0\0\0\0\x02\0\0\0\0\0\0");
    assert_eq!(socket.closes(), Some(1009));
    // Over all fragments.
    let (_app, _proxy, mut socket) = echo_with("", ROUTE);
    socket.send(TEXT, vec![b'x'; most / 2]);
    socket.send(0, vec![b'x'; most / 2]);
    socket.send(FIN, b"x");
    assert_eq!(closed(&mut socket), Some(1009));
}

/// The code of the Close, behind what the app sent back of the message before it was too long.
fn closed(socket: &mut Socket<Conn>) -> Option<u16> {
    loop {
        let frame = socket.frame();
        if frame.opcode() == CLOSE {
            return code(&frame.payload);
        }
    }
}

#[test]
fn sixty_four_mib_of_inflation_in_64_kib_is_1009_and_costs_no_memory() {
    let (_app, proxy, mut socket) = echo_with(CHROME, "websocket: { max_message: 1MiB }");
    let bomb = {
        let mut made = Socket::new(Conn::open(proxy.addr(0)), true);
        made.deflated(&vec![0; 64 << 20])
    };
    let before = proxy.memory_kib();
    socket.send(FIN | RSV1 | BINARY, bomb);
    assert_eq!(closed(&mut socket), Some(1009));
    let after = proxy.memory_kib();
    assert!(after < before + 20 * 1024, "{before} -> {after} KiB");
}

#[test]
fn a_client_that_does_not_read_stops_the_app() {
    let app = Origin::start(|call| {
        let mut socket = accept(call, &[])?;
        let noise = crate::support::noise(64 << 10);
        loop {
            crate::support::websocket::Wire::put(
                &mut socket.wire,
                &crate::support::websocket::frame(FIN | BINARY, &noise),
            )?;
        }
    });
    let proxy = Proxy::before(&app);
    let mut socket = Socket::open(&proxy, "/ws", CHROME);
    let before = proxy.memory_kib();
    // Sockets fill; then nobody's CPU moves any more.
    let mut last = proxy.cpu_ticks();
    eventually("the flow to stop", || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        let now = proxy.cpu_ticks();
        let still = now == last;
        last = now;
        still.then_some(())
    });
    let after = proxy.memory_kib();
    assert!(after < before + 8 * 1024, "{before} -> {after} KiB");
    // And what was held arrives.
    for _ in 0..20 {
        assert_eq!(socket.message().1.len(), 64 << 10);
    }
}

#[test]
fn a_ping_is_answered_while_a_large_message_is_compressed() {
    let seen = Signal::new();
    let fire = seen.clone();
    let app = Origin::start(echoing);
    let proxy = Proxy::before(&app);
    let mut socket = Socket::open(&proxy, "/ws", CHROME);
    let long = crate::support::big().repeat(20);
    socket.send_deflated(BINARY, &long);
    socket.send(FIN | 9, b"alive");
    let (mut parts, mut pong) = (0, None);
    loop {
        let frame = socket.frame();
        match frame.opcode() {
            10 => {
                pong = Some(parts);
                fire.fire();
            }
            _ => parts += 1,
        }
        if pong.is_some() && (frame.is_last() && frame.opcode() < 8) {
            break;
        }
        if frame.is_last() && frame.opcode() < 8 && pong.is_none() {
            assert_eq!(socket.frame().opcode(), 10);
            break;
        }
    }
    seen.wait();
}
