//! Floods of HTTP/2 frames: cheap to send, work to answer. The connection is cut off, others are served.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use crate::support::{Origin, PATIENCE, Proxy};

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `POST http://x/` in HPACK.
const HEAD: &[u8] = &[0x83, 0x86, 0x84, 0x41, 1, b'x'];

/// More than any of them is borne with.
const MOST: u32 = 400_000;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let stream = stream.to_be_bytes();
    [&length[1..], &[kind, flags], &stream, payload].concat()
}

/// Sends `first`, then what `next` makes, until the proxy hangs up; how many of those it took.
fn flood(proxy: &Proxy, first: &[u8], next: impl Fn(u32) -> Vec<u8>) -> u32 {
    let mut socket = TcpStream::connect(proxy.addr(0)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    // What is answered is read, or the flood would stop itself.
    let mut answers = socket.try_clone().unwrap();
    let reader = std::thread::spawn(move || {
        let mut buffer = [0; 1 << 16];
        while let Ok(1..) = answers.read(&mut buffer) {}
    });
    let hello = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &frame(SETTINGS, 0, 0, &[])[..],
        first,
    ]
    .concat();
    socket.write_all(&hello).unwrap();
    let mut sent = 0;
    while sent < MOST {
        let batch: Vec<u8> = (sent..sent + 50).flat_map(&next).collect();
        if socket.write_all(&batch).is_err() {
            break;
        }
        sent += 50;
    }
    let _ = socket.shutdown(Shutdown::Both);
    reader.join().unwrap();
    sent
}

fn app() -> Origin {
    Origin::start(|call| {
        call.body()?;
        call.answer(200, &[], b"fine")
    })
}

#[test]
fn frames_for_nothing_are_borne_with_for_a_while_only() {
    let app = app();
    let proxy = Proxy::before(&app);
    let open = frame(HEADERS, END_HEADERS, 1, HEAD);
    let floods: [(&str, &[u8], Vec<u8>); 5] = [
        ("PING", &[], frame(PING, 0, 0, &[7; 8])),
        ("SETTINGS", &[], frame(SETTINGS, 0, 0, &[])),
        ("PRIORITY", &[], frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 9])),
        ("empty DATA", &open, frame(DATA, 0, 1, &[])),
        ("unknown", &[], frame(0xfe, 0, 0, b"?")),
    ];
    for (name, first, next) in floods {
        let sent = flood(&proxy, first, |_| next.clone());
        assert!(sent < MOST, "{name}: it took them all");
        proxy.get("/", &[]).expect(200);
        proxy.h2().get("/", &[]).expect(200);
    }
    // Empty DATA the h2 crate cuts off by itself.
    let flooded = [("reason", "flood")];
    proxy.until("thinwire_refused_total", &flooded, |count| count == 4.0);
}

#[test]
fn streams_that_are_reset_as_fast_as_they_are_opened_end_the_connection() {
    let app = app();
    let proxy = Proxy::before(&app);
    let before = proxy.memory_kib();
    let sent = flood(&proxy, &[], |number| {
        let stream = 2 * number + 1;
        let open = frame(HEADERS, END_HEADERS | END_STREAM, stream, HEAD);
        [open, frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
    });
    assert!(sent < MOST, "it took them all");
    // Hardly any of them came as far as the app.
    assert!(app.requests().len() < 5_000, "{}", app.requests().len());
    proxy.get("/", &[]).expect(200);
    proxy.until("thinwire_requests_in_flight", &[], |running| running == 0.0);
    assert!(proxy.memory_kib() < before + 64 * 1024);
}

#[test]
fn a_head_without_end_ends_the_connection() {
    let app = app();
    let proxy = Proxy::before(&app);
    let before = proxy.memory_kib();
    let begun = frame(HEADERS, 0, 1, HEAD);
    // A literal field that is not indexed.
    let field = [&[0x00, 1, b'a', 100][..], &[b'b'; 100]].concat();
    for payload in [field.repeat(100), field, Vec::new()] {
        let sent = flood(&proxy, &begun, |_| frame(CONTINUATION, 0, 1, &payload));
        assert!(
            sent < MOST,
            "{} bytes each: it took them all",
            payload.len()
        );
        proxy.get("/", &[]).expect(200);
    }
    assert!(
        app.requests()
            .iter()
            .all(|seen| seen.head.line.starts_with("GET"))
    );
    assert!(proxy.memory_kib() < before + 32 * 1024);
}
