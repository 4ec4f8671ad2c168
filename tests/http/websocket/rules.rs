//! What a peer may not do (TRAPS 9 to 12, 21, 25): the code it is closed with, and that the other
//! side hears nothing of it.

use std::sync::{Arc, Mutex};

use super::{CHROME, echo};
use crate::support::websocket::{
    BINARY, CLOSE, FIN, Frame, PING, PONG, RSV1, TEXT, accept, code, frame, masked,
};
use crate::support::{Origin, Proxy, Signal, Socket, eventually};

/// An app that keeps what it hears.
fn listening() -> (Origin, Arc<Mutex<Vec<Frame>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&heard);
    let app = Origin::start(move |call| {
        let mut socket = accept(call, &[])?;
        while let Some(frame) = socket.try_frame()? {
            keep.lock().unwrap().push(frame);
        }
        Ok(())
    });
    (app, heard)
}

/// What a client is closed with that sends these bytes.
fn refused(offer: &str, bytes: &[u8]) -> u16 {
    let (app, heard) = listening();
    let proxy = Proxy::before(&app);
    let mut socket = Socket::open(&proxy, "/ws", offer);
    socket.put(bytes);
    let code = socket.closes().expect("a code");
    socket.ends();
    eventually("the app's connection to end", || {
        (app.open() == 0).then_some(())
    });
    let heard = heard.lock().unwrap();
    assert!(heard.is_empty(), "nothing is sent to the app: {heard:x?}");
    let line = proxy.access("/ws");
    assert_eq!(line["ended_by"], "client", "{line}");
    code
}

#[test]
fn rsv1_where_it_has_no_meaning_is_1002() {
    assert_eq!(
        refused("", &masked(FIN | RSV1 | TEXT, b"x")),
        1002,
        "not agreed"
    );
    assert_eq!(
        refused(CHROME, &masked(FIN | RSV1 | PING, b"x")),
        1002,
        "control"
    );
    assert_eq!(refused(CHROME, &masked(RSV1, b"x")), 1002, "continuation");
    let parts = [masked(RSV1 | TEXT, &[]), masked(FIN | RSV1, b"\x02\0")].concat();
    assert_eq!(refused(CHROME, &parts), 1002, "continuation of a message");
    for bit in [0x20, 0x10, 0x30] {
        assert_eq!(refused(CHROME, &masked(FIN | bit | TEXT, b"x")), 1002);
    }
}

#[test]
fn frames_that_are_none_are_1002() {
    assert_eq!(refused("", &frame(FIN | TEXT, b"unmasked")), 1002);
    for opcode in [3, 7, 11, 15] {
        assert_eq!(refused("", &masked(FIN | opcode, b"")), 1002, "{opcode}");
    }
    assert_eq!(refused("", &masked(PING, b"in pieces")), 1002);
    for opcode in [PING, PONG, CLOSE] {
        assert_eq!(
            refused("", &masked(FIN | opcode, &[3; 126])),
            1002,
            "{opcode}"
        );
    }
    assert_eq!(
        refused("", &masked(FIN, b"a continuation of nothing")),
        1002
    );
    let nested = [masked(TEXT, b""), masked(FIN | TEXT, b"b")].concat();
    assert_eq!(refused("", &nested), 1002);
    assert_eq!(
        refused("", b"\x81\xfe\0\x05\0\0\0\0hello"),
        1002,
        "a padded length"
    );
    let huge = b"\x82\xff\x80\0\0\0\0\0\0\0\0\0\0\0";
    assert_eq!(refused("", huge), 1002, "the top bit");
}

#[test]
fn closes_that_may_not_be_sent_are_1002_and_reasons_that_are_no_text_1007() {
    assert_eq!(refused("", &masked(FIN | CLOSE, &[3])), 1002);
    for number in [0_u16, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000] {
        let close = masked(FIN | CLOSE, &number.to_be_bytes());
        assert_eq!(refused("", &close), 1002, "{number}");
    }
    assert_eq!(refused("", &masked(FIN | CLOSE, b"\x03\xe8\xff")), 1007);
}

#[test]
fn text_that_is_none_is_1007_however_it_comes() {
    assert_eq!(refused("", &masked(FIN | TEXT, b"caf\xc3")), 1007);
    assert_eq!(refused(CHROME, &masked(FIN | TEXT, b"\xed\xa0\x80")), 1007);
    // Compressed: a stored block of one byte that begins no character.
    let stored = b"\0\x01\0\xfe\xff\xff\0";
    assert_eq!(refused(CHROME, &masked(FIN | RSV1 | TEXT, stored)), 1007);
    // It is no fault of binary messages.
    let (_app, _proxy, mut socket) = echo(CHROME);
    socket.send(FIN | RSV1 | BINARY, stored);
    assert_eq!(socket.message().1, b"\xff");
}

#[test]
fn a_character_may_lie_across_fragments() {
    let (_app, _proxy, mut socket) = echo("");
    socket.send(TEXT, b"caf\xc3");
    socket.send(FIN, b"\xa9");
    let (opcode, text, _) = socket.message();
    assert_eq!((opcode, text), (TEXT, "café".as_bytes().to_vec()));
}

#[test]
fn what_does_not_inflate_is_1007() {
    for bad in [&b"\x06\xff\xff"[..], b"\x01\x05\0\0\0hello", b"\xff"] {
        assert_eq!(
            refused(CHROME, &masked(FIN | RSV1 | BINARY, bad)),
            1007,
            "{bad:x?}"
        );
    }
    // Before anything was said, there is nothing to refer to.
    assert_eq!(
        refused(CHROME, &masked(FIN | RSV1 | BINARY, b"\x02\x13\0\0")),
        1007
    );
}

#[test]
fn a_masked_frame_of_the_app_fails_it_and_the_client_is_told_1011() {
    let failed = Signal::new();
    let seen = failed.clone();
    let app = Origin::start(move |call| {
        let mut socket = accept(call, &[])?;
        socket.put(masked(FIN | TEXT, b"masked"));
        let close = socket.try_frame()?.expect("a Close");
        assert_eq!((close.opcode(), code(&close.payload)), (CLOSE, Some(1002)));
        seen.fire();
        Ok(())
    });
    let proxy = Proxy::before(&app);
    let mut socket = Socket::open(&proxy, "/ws", CHROME);
    assert_eq!(socket.closes(), Some(1011));
    socket.send(FIN | CLOSE, 1011_u16.to_be_bytes());
    socket.ends();
    failed.wait();
    assert_eq!(proxy.access("/ws")["ended_by"], "upstream");
}

#[test]
fn toward_the_app_each_frame_has_a_fresh_mask() {
    let (app, heard) = listening();
    let proxy = Proxy::before(&app);
    let mut socket = Socket::open(&proxy, "/ws", CHROME);
    for _ in 0..20 {
        socket.send(FIN | TEXT, b"the same");
    }
    socket.send(FIN | PING, b"the same");
    let masks = eventually("all frames", || {
        let heard = heard.lock().unwrap();
        (heard.len() == 21).then(|| heard.iter().map(|frame| frame.mask).collect::<Vec<_>>())
    });
    let distinct: std::collections::HashSet<_> = masks.iter().collect();
    assert!(distinct.len() >= 20, "{masks:?}");
    assert!(
        !masks.contains(&Some([0x37, 0xfa, 0x21, 0x3d])),
        "the client's own"
    );
}
