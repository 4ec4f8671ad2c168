//! What is counted, logged and held of connections (INTERFACES, TRAPS 23, 29).

use super::{CHROME, echo, echo_with, tick};
use crate::support::websocket::{CLOSE, FIN, TEXT, accept, echoing};
use crate::support::{Origin, Proxy, Signal, Socket, eventually, noise};

#[test]
fn the_line_at_the_end_says_what_was_agreed_and_what_passed() {
    let (_app, proxy, mut socket) = echo(CHROME);
    for number in 0..3 {
        socket.send_deflated(TEXT, &tick(number));
        socket.message();
    }
    socket.send(FIN | CLOSE, 1000_u16.to_be_bytes());
    socket.closes();
    let line = proxy.access("/ws");
    let agreed = line["extension"].as_str().unwrap_or_default();
    assert!(agreed.starts_with("permessage-deflate; "), "{line}");
    let plain: usize = (0..3).map(|number| tick(number).len()).sum();
    for (key, value) in [
        ("messages_to_client", 3),
        ("messages_to_app", 3),
        ("bytes_before", plain),
        ("bytes_to_app", plain),
    ] {
        assert_eq!(line[key], value, "{key} of {line}");
    }
    for key in ["bytes_after", "bytes_from_client"] {
        let bytes = line[key].as_u64().unwrap_or(u64::MAX);
        assert!(bytes > 0 && bytes < plain as u64, "{key} of {line}");
    }
    let (_app, proxy, mut socket) = echo("");
    socket.send(FIN | CLOSE, b"");
    socket.closes();
    assert_eq!(proxy.access("/ws")["extension"], "none");
}

#[test]
fn connections_and_messages_are_counted() {
    let (_app, proxy, mut socket) = echo(CHROME);
    let other = Socket::open(&proxy, "/ws", "");
    let open = |extension| {
        let labels = [("route", "everything"), ("extension", extension)];
        proxy
            .metrics()
            .sum("thinwire_websocket_connections", &labels)
    };
    eventually("both", || {
        (open("deflate") == 1.0 && open("none") == 1.0).then_some(())
    });
    socket.send_deflated(TEXT, &tick(1));
    socket.message();
    socket.send(FIN | 2, noise(10_000));
    socket.message();
    let metrics = proxy.metrics();
    for (direction, form, count) in [
        ("to_client", "deflated", 1.0),
        ("to_client", "plain", 1.0),
        ("to_app", "deflated", 1.0),
        ("to_app", "plain", 1.0),
    ] {
        let labels = [("direction", direction), ("form", form)];
        let counted = metrics.sum("thinwire_websocket_messages_total", &labels);
        assert_eq!(counted, count, "{direction} {form}");
    }
    let kind = [("kind", "websocket"), ("coding", "deflate")];
    assert_eq!(metrics.sum("thinwire_encodes_total", &kind), 1.0);
    let plain = metrics.sum("thinwire_plain_bytes_total", &kind);
    assert_eq!(plain, tick(1).len() as f64);
    assert!(metrics.sum("thinwire_coded_bytes_total", &kind) < plain);
    assert!(metrics.sum("thinwire_codec_seconds_total", &kind) > 0.0);
    assert!(metrics.sum("thinwire_websocket_context_bytes", &[]) > 0.0);
    drop((socket, other));
    eventually("none", || {
        (open("deflate") == 0.0 && open("none") == 0.0).then_some(())
    });
    proxy.until("thinwire_websocket_context_bytes", &[], |bytes| {
        bytes == 0.0
    });
}

#[test]
fn the_same_message_to_many_clients_is_compressed_once() {
    let go = Signal::new();
    let wait = go.clone();
    let app = Origin::start(move |call| {
        let mut socket = accept(call, &[])?;
        wait.wait();
        socket.send(FIN | TEXT, tick(7));
        socket.try_frame().map(|_| ())
    });
    let proxy = Proxy::with(&app, "websocket: { context_takeover: false }");
    let mut sockets: Vec<_> = (0..50)
        .map(|_| Socket::open(&proxy, "/ws", CHROME))
        .collect();
    go.fire();
    for socket in &mut sockets {
        assert_eq!(socket.message(), (TEXT, tick(7), true));
    }
    let runs = proxy
        .metrics()
        .sum("thinwire_encodes_total", &[("kind", "websocket")]);
    assert!(runs <= 5.0, "{runs}");
}

#[test]
fn many_connections_come_and_go_and_their_memory_comes_back() {
    let app = Origin::start(echoing);
    let proxy = Proxy::before(&app);
    let round = || {
        let mut sockets: Vec<_> = (0..200)
            .map(|_| Socket::open(&proxy, "/ws", CHROME))
            .collect();
        for (number, socket) in sockets.iter_mut().enumerate() {
            socket.send_deflated(TEXT, &tick(number));
            assert_eq!(socket.message().1, tick(number));
        }
        proxy.memory_kib()
    };
    let busy = round();
    proxy.until("thinwire_websocket_connections", &[], |open| open == 0.0);
    for _ in 0..2 {
        round();
    }
    let after = round();
    assert!(after < busy * 5 / 4 + 4 * 1024, "{busy} -> {after} KiB");
}

#[test]
fn a_burst_of_work_goes_to_the_pool_and_none_of_it_stays() {
    let (_app, proxy, mut socket) = echo_with(CHROME, "");
    let long = crate::support::big().repeat(5);
    socket.send(FIN | TEXT, &long);
    assert!(socket.message() == (TEXT, long, true));
    let waits = proxy.metrics().sum("thinwire_pool_wait_seconds_count", &[]);
    assert!(waits > 0.0);
    proxy.until("thinwire_pool_jobs", &[], |jobs| jobs == 0.0);
}
