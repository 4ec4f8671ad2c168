//! Messages both ways (TRAPS 13 to 19, 22).

use std::sync::mpsc;

use super::{CHROME, FIREFOX, echo, echo_with, tick};
use crate::support::websocket::{
    BINARY, CLOSE, FIN, PING, PONG, RSV1, TEXT, accept, echoing, frame, masked,
};
use crate::support::{Origin, Proxy, Signal, Socket, big, noise};

#[test]
fn messages_of_every_size_some_plain_are_exact_and_in_order() {
    for offer in [
        CHROME,
        FIREFOX,
        "permessage-deflate; server_max_window_bits=8",
        "",
    ] {
        let (_app, _proxy, mut socket) = echo(offer);
        let mut dice = fastrand::Rng::with_seed(5);
        let mut sent = Vec::new();
        for round in 0..60 {
            let size = [0, 1, 2, 50, 125, 126, 1_000, 20_000, 66_000, 300_000][dice.usize(..10)];
            let (opcode, payload) = match round % 3 {
                0 => (TEXT, tick(round).into_iter().cycle().take(size).collect()),
                1 => (BINARY, noise(size)),
                _ => (
                    BINARY,
                    big()
                        .into_iter()
                        .cycle()
                        .skip(round)
                        .take(size)
                        .collect::<Vec<_>>(),
                ),
            };
            // The others tell the client to forget its history.
            if offer == CHROME && dice.bool() {
                socket.send_deflated(opcode, &payload);
            } else {
                socket.send(FIN | opcode, &payload);
            }
            sent.push((opcode, payload));
            // Some wait for each other, some do not.
            if sent.len() >= 4 || payload_is_large(&sent) || round == 59 {
                for (opcode, payload) in sent.drain(..) {
                    let (came, echoed, _) = socket.message();
                    assert!(
                        came == opcode && echoed == payload,
                        "round {round} of {offer}"
                    );
                }
            }
        }
        socket.send(FIN | CLOSE, 1000_u16.to_be_bytes());
        assert_eq!(socket.closes(), Some(1000), "the Close comes last");
    }
}

fn payload_is_large(sent: &[(u8, Vec<u8>)]) -> bool {
    sent.last()
        .is_some_and(|(_, payload)| payload.len() > 50_000)
}

#[test]
fn similar_ticks_are_at_most_a_fifth_of_their_bytes() {
    let (_app, _proxy, mut socket) = echo(CHROME);
    let (mut plain, mut coded) = (0, 0);
    for number in 0..1_000 {
        let tick = tick(number);
        socket.send(FIN | TEXT, &tick);
        let frame = socket.frame();
        assert_eq!(frame.first, FIN | RSV1 | TEXT);
        plain += tick.len();
        coded += frame.payload.len();
        assert_eq!(socket.inflated(&frame.payload), tick);
    }
    assert!(coded * 5 <= plain, "{coded} of {plain}");
}

#[test]
fn an_empty_message_arrives_empty_both_ways() {
    let (_app, _proxy, mut socket) = echo(CHROME);
    for coded in [&b""[..], b"\0", b"\x02\0"] {
        socket.send(FIN | RSV1 | TEXT, coded);
        assert_eq!(socket.message(), (TEXT, Vec::new(), false));
    }
    socket.send(FIN | BINARY, b"");
    assert_eq!(socket.message(), (BINARY, Vec::new(), false));
}

#[test]
fn last_blocks_within_a_message_are_legal() {
    let (_app, _proxy, mut socket) = echo(CHROME);
    // RFC 7692 section 7.2.3.4: "Hello" in a block with BFINAL set, then an empty one.
    let last = b"\xf3\x48\xcd\xc9\xc9\x07\x00\x00";
    for _ in 0..3 {
        socket.send(FIN | RSV1 | TEXT, last);
        assert_eq!(socket.message().1, b"Hello");
    }
    // Section 7.2.3.2: it refers to the message before.
    socket.send(FIN | RSV1 | TEXT, b"\xf2\x48\xcd\xc9\xc9\x07\x00");
    assert_eq!(socket.message().1, b"Hello");
    socket.send(FIN | RSV1 | TEXT, b"\xf2\x00\x11\x00\x00");
    assert_eq!(socket.message().1, b"Hello");
}

#[test]
fn without_takeover_every_message_stands_alone() {
    let route = "websocket: { context_takeover: false }";
    let (_app, _proxy, mut socket) = echo_with(CHROME, route);
    let tick = tick(1);
    let mut forms = Vec::new();
    for _ in 0..3 {
        socket.send(FIN | TEXT, &tick);
        let frame = socket.frame();
        assert!(frame.is_deflated());
        forms.push(frame.payload);
    }
    assert!(forms.windows(2).all(|pair| pair[0] == pair[1]));
    // A fresh inflater knows each.
    assert_eq!(Socket::new(socket.wire, true).inflated(&forms[2]), tick);
}

#[test]
fn fragments_leave_as_they_come_and_pings_pass_between_them() {
    let (next, told) = mpsc::channel::<()>();
    let told = std::sync::Mutex::new(told);
    let app = Origin::start(move |call| {
        let mut socket = accept(call, &[])?;
        let wait = || told.lock().unwrap().recv().unwrap();
        socket.send(TEXT, b"one ");
        wait();
        socket.send(FIN | PING, b"between");
        wait();
        socket.send(0, b"two ");
        wait();
        socket.send(FIN, b"three");
        let pong = socket.try_frame()?.expect("a pong");
        assert_eq!(
            (pong.first, &pong.payload[..]),
            (FIN | PONG, &b"between"[..])
        );
        let close = socket.try_frame()?.expect("a Close");
        socket.send(close.first, &close.payload);
        Ok(())
    });
    let proxy = Proxy::before(&app);
    for offer in [CHROME, ""] {
        let mut socket = Socket::open(&proxy, "/ws", offer);
        let first = socket.frame();
        assert_eq!((first.opcode(), first.is_last()), (TEXT, false));
        next.send(()).unwrap();
        let ping = socket.frame();
        assert_eq!(
            (ping.first, &ping.payload[..]),
            (FIN | PING, &b"between"[..])
        );
        next.send(()).unwrap();
        let second = socket.frame();
        assert_eq!(second.first, 0);
        next.send(()).unwrap();
        let mut all = [first.payload, second.payload].concat();
        loop {
            let more = socket.frame();
            assert_eq!(more.opcode(), 0);
            all.extend(&more.payload);
            if more.is_last() {
                break;
            }
        }
        if first.first & RSV1 != 0 {
            all = socket.inflated(&all);
        }
        assert_eq!(all, b"one two three");
        socket.send(FIN | PONG, b"between");
        socket.send(FIN | CLOSE, 1000_u16.to_be_bytes());
        assert_eq!(socket.closes(), Some(1000));
    }
}

#[test]
fn a_clients_fragments_leave_as_they_come_too() {
    let (tell, told) = mpsc::channel();
    let app = Origin::start(move |call| {
        let mut socket = accept(call, &[])?;
        while let Some(frame) = socket.try_frame()? {
            tell.send((frame.first, frame.payload)).unwrap();
        }
        Ok(())
    });
    let proxy = Proxy::before(&app);
    let mut socket = Socket::open(&proxy, "/ws", CHROME);
    socket.send(TEXT, b"one ");
    assert_eq!(told.recv().unwrap(), (TEXT, b"one ".to_vec()));
    socket.send(FIN | PING, b"p");
    assert_eq!(told.recv().unwrap(), (FIN | PING, b"p".to_vec()));
    socket.send(FIN, b"two");
    assert_eq!(told.recv().unwrap(), (FIN, b"two".to_vec()));
    // Compressed: what can be told from a fragment is told.
    let text = tick(1);
    let coded = socket.deflated(&text);
    let (begin, rest) = coded.split_at(coded.len() / 2);
    socket.send(RSV1 | TEXT, begin);
    let (first, mut came) = told.recv().unwrap();
    assert!(first == TEXT && !came.is_empty() && text.starts_with(&came));
    socket.send(FIN, rest);
    loop {
        let (first, more) = told.recv().unwrap();
        came.extend(more);
        if first & FIN != 0 {
            break;
        }
    }
    assert_eq!(came, text);
}

#[test]
fn a_long_message_is_under_way_before_its_last_byte() {
    let rest = Signal::new();
    let go = rest.clone();
    let whole: Vec<u8> = big().into_iter().cycle().take(4 << 20).collect();
    let sent = whole.clone();
    let app = Origin::start(move |call| {
        let mut socket = accept(call, &[])?;
        let bytes = frame(FIN | BINARY, &sent);
        let (begin, end) = bytes.split_at(1 << 20);
        socket.put(begin);
        go.wait();
        socket.put(end);
        socket.try_frame().map(|_| ())
    });
    let proxy = Proxy::before(&app);
    let mut socket = Socket::open(&proxy, "/ws", CHROME);
    let first = socket.frame();
    assert_eq!(first.first, RSV1 | BINARY, "its first fragment is here");
    rest.fire();
    let mut coded = first.payload;
    loop {
        let next = socket.frame();
        coded.extend(&next.payload);
        if next.is_last() {
            break;
        }
    }
    assert!(coded.len() * 3 < whole.len(), "{}", coded.len());
    assert!(socket.inflated(&coded) == whole);
}

#[test]
fn what_does_not_shrink_goes_plain() {
    let (_app, _proxy, mut socket) = echo(CHROME);
    for _ in 0..3 {
        socket.send(FIN | BINARY, noise(20_000));
        let (_, echoed, deflated) = socket.message();
        assert!(echoed == noise(20_000) && !deflated);
        // It did not enter the history of either side.
        socket.send(FIN | TEXT, tick(2));
        assert_eq!(socket.message(), (TEXT, tick(2), true));
    }
}

#[test]
fn kinds_can_be_excepted_and_small_ones_are_left_alone() {
    let route = "websocket: { except: [binary] }";
    let (_app, _proxy, mut socket) = echo_with(CHROME, route);
    socket.send(FIN | BINARY, tick(3));
    assert_eq!(socket.message(), (BINARY, tick(3), false));
    socket.send(FIN | TEXT, tick(3));
    assert_eq!(socket.message(), (TEXT, tick(3), true));
    let route = "websocket: { context_takeover: false, min_size: 2KiB }";
    let (_app, _proxy, mut socket) = echo_with(CHROME, route);
    socket.send(FIN | TEXT, tick(3));
    assert_eq!(socket.message(), (TEXT, tick(3), false));
    socket.send(FIN | TEXT, [tick(3), tick(4), tick(5)].concat());
    assert!(socket.message().2);
}

#[test]
fn bytes_may_be_cut_anywhere() {
    let app = Origin::start(echoing);
    let proxy = Proxy::before(&app);
    let mut socket = Socket::open(&proxy, "/ws", CHROME);
    let coded = socket.deflated(&tick(5));
    let bytes = [
        masked(FIN | RSV1 | TEXT, &coded),
        masked(FIN | PING, b"ping"),
        masked(FIN | BINARY, &[7; 300]),
    ]
    .concat();
    for byte in bytes.chunks(1) {
        socket.put(byte);
    }
    assert_eq!(socket.message(), (TEXT, tick(5), true));
    assert_eq!(socket.frame().first, FIN | PONG);
    assert_eq!(socket.message(), (BINARY, vec![7; 300], true));
}
