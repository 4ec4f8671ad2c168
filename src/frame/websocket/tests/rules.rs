//! Streams that break one rule each.

use super::*;

const HELLO: [u8; 5] = *b"Hello";

/// A frame by its first byte, its payload and whether it is masked.
fn frame(first: u8, payload: &[u8], masked: bool) -> Vec<u8> {
    let (bit, key) = if masked {
        (0x80, vec![7, 0, 0, 9])
    } else {
        (0, vec![])
    };
    let mut payload = payload.to_vec();
    for (at, byte) in payload.iter_mut().enumerate().filter(|_| masked) {
        *byte ^= key[at % 4];
    }
    let length = match payload.len() {
        short @ 0..126 => vec![bit | short as u8],
        two @ 126..65_536 => [&[bit | 126][..], &(two as u16).to_be_bytes()].concat(),
        eight => [&[bit | 127][..], &(eight as u64).to_be_bytes()].concat(),
    };
    [&[first][..], &length, &key, &payload].concat()
}

/// The verdict on frames of a client, in one read and byte by byte.
fn client(deflate: bool, frames: &[(u8, &[u8])]) -> Result<Vec<Said>, Fault> {
    let stream: Vec<u8> = frames
        .iter()
        .flat_map(|(first, payload)| frame(*first, payload, true))
        .collect();
    verdict(Sender::Client, deflate, &stream)
}

fn verdict(sender: Sender, deflate: bool, stream: &[u8]) -> Result<Vec<Said>, Fault> {
    let parser = || Parser::new(sender, deflate, LIMIT);
    let at_once = heard(&mut parser(), [stream]);
    let by_byte = heard(&mut parser(), stream.chunks(1));
    assert_eq!(
        at_once, by_byte,
        "the verdict depends on how the stream was cut"
    );
    at_once
}

fn refused(deflate: bool, frames: &[(u8, &[u8])], fault: Fault, code: u16) {
    assert_eq!(client(deflate, frames), Err(fault));
    assert_eq!(fault.code().number(), code);
}

#[test]
fn a_client_masks_and_a_server_does_not() {
    let (masked, plain) = (frame(0x81, &HELLO, true), frame(0x81, &HELLO, false));
    assert!(verdict(Sender::Client, false, &masked).is_ok());
    assert!(verdict(Sender::Server, false, &plain).is_ok());
    assert_eq!(verdict(Sender::Client, false, &plain), Err(Fault::Unmasked));
    assert_eq!(verdict(Sender::Server, false, &masked), Err(Fault::Masked));
    let control = frame(0x89, &HELLO, false);
    assert_eq!(
        verdict(Sender::Client, false, &control),
        Err(Fault::Unmasked)
    );
    assert_eq!(Fault::Unmasked.code(), CloseCode::PROTOCOL_ERROR);
}

#[test]
fn reserved_bits_have_a_meaning_only_where_one_was_agreed() {
    for bit in [0x20, 0x10] {
        for opcode in [0x1, 0x2, 0x0, 0x8, 0x9, 0xa] {
            for deflate in [true, false] {
                refused(
                    deflate,
                    &[(0x80 | bit | opcode, &[])],
                    Fault::ReservedBit,
                    1002,
                );
            }
        }
    }
    refused(false, &[(0xc1, &HELLO)], Fault::ReservedBit, 1002);
    let message = Message {
        kind: Kind::Text,
        deflated: true,
    };
    let said = vec![Said::Message(message, HELLO.to_vec())];
    assert_eq!(client(true, &[(0xc1, &HELLO)]), Ok(said));
}

#[test]
fn only_the_first_frame_of_a_message_says_that_it_is_compressed() {
    refused(
        true,
        &[(0x41, &HELLO), (0xc0, &HELLO)],
        Fault::CompressedContinuation,
        1002,
    );
    refused(
        true,
        &[(0x01, &HELLO), (0xc0, &HELLO)],
        Fault::CompressedContinuation,
        1002,
    );
    for control in [0xc8, 0xc9, 0xca] {
        refused(true, &[(control, &[])], Fault::CompressedControl, 1002);
    }
    let message = Message {
        kind: Kind::Binary,
        deflated: true,
    };
    let said = vec![Said::Message(message, b"HelloHello".to_vec())];
    assert_eq!(client(true, &[(0x42, &HELLO), (0x80, &HELLO)]), Ok(said));
}

#[test]
fn opcodes_without_a_meaning_are_refused() {
    for opcode in (0x3..=0x7).chain(0xb..=0xf) {
        for fin in [0, 0x80] {
            refused(true, &[(fin | opcode, &HELLO)], Fault::Opcode, 1002);
        }
    }
}

#[test]
fn control_frames_are_whole_and_short() {
    for opcode in [0x8, 0x9, 0xa] {
        refused(true, &[(opcode, &[])], Fault::FragmentedControl, 1002);
        refused(
            true,
            &[(0x80 | opcode, &[b'a'; 126])],
            Fault::LongControl,
            1002,
        );
        refused(
            true,
            &[(0x80 | opcode, &[b'a'; 70_000])],
            Fault::LongControl,
            1002,
        );
    }
    let longest = [b'a'; 125];
    let said = vec![Said::Ping(longest.to_vec()), Said::Pong(longest.to_vec())];
    assert_eq!(
        client(false, &[(0x89, &longest), (0x8a, &longest)]),
        Ok(said)
    );
}

#[test]
fn a_length_is_written_in_its_shortest_form() {
    let key = [0; 4];
    for (length, fault) in [
        (&[0x80 | 126, 0, 125][..], Fault::PaddedLength),
        (
            &[0x80 | 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff],
            Fault::PaddedLength,
        ),
        (&[0x80 | 127, 0x80, 0, 0, 0, 0, 1, 0, 0], Fault::HugeLength),
    ] {
        let stream = [&[0x82][..], length, &key].concat();
        assert_eq!(verdict(Sender::Client, false, &stream), Err(fault));
        assert_eq!(fault.code(), CloseCode::PROTOCOL_ERROR);
    }
}

#[test]
fn messages_follow_each_other_and_control_frames_may_stand_within() {
    refused(true, &[(0x80, &HELLO)], Fault::NothingToContinue, 1002);
    refused(true, &[(0x00, &[])], Fault::NothingToContinue, 1002);
    refused(
        true,
        &[(0x81, &HELLO), (0x80, &HELLO)],
        Fault::NothingToContinue,
        1002,
    );
    refused(
        true,
        &[(0x01, &HELLO), (0x81, &HELLO)],
        Fault::InsideMessage,
        1002,
    );
    refused(
        true,
        &[(0x01, &[]), (0x02, &[])],
        Fault::InsideMessage,
        1002,
    );
    let message = Message {
        kind: Kind::Text,
        deflated: false,
    };
    let said = vec![
        Said::Ping(b"?".to_vec()),
        Said::Pong(vec![]),
        Said::Message(message, b"HelloHello".to_vec()),
        Said::Message(message, vec![]),
    ];
    let frames: [(u8, &[u8]); 7] = [
        (0x01, &[]),
        (0x89, b"?"),
        (0x00, &HELLO),
        (0x00, &[]),
        (0x8a, &[]),
        (0x80, &HELLO),
        (0x81, &[]),
    ];
    assert_eq!(client(false, &frames), Ok(said));
}

#[test]
fn a_close_has_a_code_that_may_be_sent_and_a_reason_that_is_text() {
    refused(true, &[(0x88, &[3])], Fault::HalfCloseCode, 1002);
    for number in [0_u16, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65_535] {
        refused(
            true,
            &[(0x88, &number.to_be_bytes())],
            Fault::CloseCode,
            1002,
        );
    }
    refused(true, &[(0x88, b"\x03\xe8\xff")], Fault::CloseReason, 1007);
    let own = Close::new(CloseCode::new(4711).expect("private"), "genug");
    let said = vec![Said::Close(Some(own))];
    assert_eq!(client(true, &[(0x88, b"\x12\x67genug")]), Ok(said));
    assert_eq!(client(true, &[(0x88, &[])]), Ok(vec![Said::Close(None)]));
}

#[test]
fn nothing_is_read_behind_a_close_or_a_fault() {
    let frames: [(u8, &[u8]); 3] = [(0x88, &[]), (0x81, &HELLO), (0x83, &[])];
    assert_eq!(client(true, &frames), Ok(vec![Said::Close(None)]));
    let mut parser = Parser::new(Sender::Client, true, LIMIT);
    let mut input = BytesMut::from(&frame(0x83, &[], true)[..]);
    assert_eq!(parser.next(&mut input), Err(Fault::Opcode));
    input.extend_from_slice(&frame(0x81, &HELLO, true));
    assert_eq!(parser.next(&mut input), Ok(None));
    assert!(input.is_empty());
}

#[test]
fn a_message_is_refused_when_it_is_announced_too_long() {
    let mut parser = Parser::new(Sender::Client, true, 1_000);
    let mut over = |first: u8, length: usize| {
        let stream = frame(first, &vec![0; length], true);
        let head = stream.len() - length;
        // Only its head has come.
        heard(&mut parser, [&stream[..head]])
    };
    assert_eq!(over(0x82, 1_001), Err(Fault::TooLong));
    assert_eq!(Fault::TooLong.code().number(), 1009);

    let judged = |frames: &[(u8, usize)]| {
        let stream: Vec<u8> = frames
            .iter()
            .flat_map(|(first, length)| frame(*first, &vec![0; *length], true))
            .collect();
        let said = heard(&mut Parser::new(Sender::Client, true, 1_000), [&stream[..]]);
        said.map(|said| said.len())
    };
    assert_eq!(judged(&[(0x82, 1_000), (0x81, 1_000)]), Ok(2));
    assert_eq!(judged(&[(0x02, 600), (0x89, 99), (0x80, 400)]), Ok(2));
    assert_eq!(judged(&[(0x02, 600), (0x80, 401)]), Err(Fault::TooLong));
    // What is compressed may be a little longer than what it stands for.
    assert_eq!(judged(&[(0xc2, 1_000 + 125 + 1_024)]), Ok(1));
    assert_eq!(judged(&[(0x42, 1_000), (0x80, 1_150)]), Err(Fault::TooLong));
}
