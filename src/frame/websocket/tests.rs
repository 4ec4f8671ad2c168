//! Every rule of RFC 6455 section 5 and RFC 7692 section 6 that a peer can break, and streams that
//! break none, cut anywhere.

mod rules;

use bytes::BytesMut;

use super::*;

const LIMIT: u64 = 1 << 20;

/// What a stream says once the borders of pieces and reads are taken out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Said {
    Message(Message, Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<Close>),
}

/// Reads a stream that comes in these pieces.
fn heard<'a>(
    parser: &mut Parser,
    reads: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Said>, Fault> {
    let (mut said, mut input, mut payload) = (Vec::new(), BytesMut::new(), Vec::new());
    for read in reads {
        input.extend_from_slice(read);
        while let Some(event) = parser.next(&mut input)? {
            said.push(match event {
                Event::Data(piece) => {
                    assert!(!piece.opens || payload.is_empty());
                    payload.extend_from_slice(&piece.payload);
                    if !piece.ends() {
                        continue;
                    }
                    Said::Message(piece.message, std::mem::take(&mut payload))
                }
                Event::Ping(payload) => Said::Ping(payload.to_vec()),
                Event::Pong(payload) => Said::Pong(payload.to_vec()),
                Event::Close(close) => Said::Close(close),
            });
        }
        assert!(
            input.len() < MOST_HEAD + MOST_CONTROL,
            "{} bytes wait",
            input.len()
        );
    }
    Ok(said)
}

/// Writes what is said, in fragments, with control frames between them.
fn written(random: &mut fastrand::Rng, said: &mut Vec<Said>, masked: bool) -> BytesMut {
    let (mut writer, mut wire) = (Writer::default(), BytesMut::new());
    for _ in 0..random.usize(1..8) {
        if random.u8(..3) == 0 {
            said.push(control(random, masked, &mut wire));
            continue;
        }
        let message = Message {
            kind: if random.bool() {
                Kind::Text
            } else {
                Kind::Binary
            },
            deflated: random.bool(),
        };
        let length = [0, 1, 125, 126, 127, 300, 65_535, 65_536][random.usize(..8)];
        let payload: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
        let mut rest = &payload[..];
        loop {
            let part = if random.u8(..3) == 0 {
                random.usize(..=rest.len())
            } else {
                rest.len()
            };
            let last = part == rest.len() && random.bool();
            let mask = mask(random, masked);
            writer.frame(message, last, &rest[..part], mask, &mut wire);
            rest = &rest[part..];
            if last {
                break;
            }
            assert!(writer.is_inside());
            if random.u8(..4) == 0 {
                said.push(control(random, masked, &mut wire));
            }
        }
        said.push(Said::Message(message, payload));
    }
    let close = Close::new(CloseCode::GOING_AWAY, "until later");
    let close = random.bool().then_some(close);
    let mask = mask(random, masked);
    Control::Close(close.as_ref()).write(mask, &mut wire);
    said.push(Said::Close(close));
    wire
}

fn control(random: &mut fastrand::Rng, masked: bool, wire: &mut BytesMut) -> Said {
    let length = [0, 1, 4, 125][random.usize(..4)];
    let payload: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
    let mask = mask(random, masked);
    if random.bool() {
        Control::Ping(&payload).write(mask, wire);
        Said::Ping(payload)
    } else {
        Control::Pong(&payload).write(mask, wire);
        Said::Pong(payload)
    }
}

fn mask(random: &mut fastrand::Rng, masked: bool) -> Option<Mask> {
    masked.then(|| Mask::new(random.u32(..).to_ne_bytes()))
}

#[test]
fn what_is_written_is_read_however_the_stream_is_cut() {
    let mut random = fastrand::Rng::with_seed(6455);
    for round in 0..600 {
        let (masked, sender) = if round % 2 == 0 {
            (true, Sender::Client)
        } else {
            (false, Sender::Server)
        };
        let mut said = Vec::new();
        let mut wire = written(&mut random, &mut said, masked);
        wire.extend_from_slice(b"what follows a close is dropped");
        let most = [1, 2, 13, 200, 70_000][random.usize(..5)];
        let (mut reads, mut rest) = (Vec::new(), &wire[..]);
        while !rest.is_empty() {
            let read;
            (read, rest) = rest.split_at(random.usize(1..=most.min(rest.len())));
            reads.push(read);
        }
        let mut parser = Parser::new(sender, true, LIMIT);
        assert_eq!(heard(&mut parser, reads), Ok(said), "round {round}");
        assert!(parser.is_between_messages());
    }
}

#[test]
fn a_payload_is_handed_on_as_it_comes() {
    let mut parser = Parser::new(Sender::Client, true, LIMIT);
    let message = Message {
        kind: Kind::Binary,
        deflated: true,
    };
    let (mut wire, mut input) = (BytesMut::new(), BytesMut::new());
    let mask = Some(Mask::new([1, 2, 3, 4]));
    Writer::default().frame(message, true, &[9; 1000], mask, &mut wire);
    let head = wire.split_to(8);
    input.extend_from_slice(&head);
    assert_eq!(parser.next(&mut input), Ok(None));
    assert!(input.is_empty(), "the head is done with");
    assert!(!parser.is_between_messages());
    let mut left = 1000;
    for read in wire.chunks(300) {
        input.extend_from_slice(read);
        let Ok(Some(Event::Data(piece))) = parser.next(&mut input) else {
            panic!("a piece for each read");
        };
        let opens = left == 1000;
        left -= read.len() as u64;
        assert_eq!(&piece.payload[..], vec![9; read.len()]);
        assert_eq!(
            (piece.opens, piece.last_frame, piece.frame_left),
            (opens, true, left)
        );
        assert_eq!(piece.message_length(), opens.then_some(1000));
        assert_eq!((piece.message, piece.ends()), (message, left == 0));
        assert_eq!(parser.next(&mut input), Ok(None));
    }
    assert_eq!(left, 0);
}

#[test]
fn text_is_judged_as_a_whole_however_it_is_cut() {
    let mut random = fastrand::Rng::with_seed(3629);
    let alphabet = [
        0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xdf, 0xe0, 0xe1, 0xed,
        0xef, 0xf0, 0xf1, 0xf4, 0xf5, 0xff_u8,
    ];
    let mut text = 0;
    for _ in 0..40_000 {
        let length = random.usize(..7);
        let bytes: Vec<u8> = (0..length)
            .map(|_| alphabet[random.usize(..alphabet.len())])
            .collect();
        let mut judge = Utf8::default();
        let mut pieces = bytes.chunks(random.usize(1..4));
        let judged = pieces
            .try_for_each(|piece| judge.piece(piece))
            .and_then(|()| judge.end());
        let expected = std::str::from_utf8(&bytes);
        assert_eq!(judged.is_ok(), expected.is_ok(), "{bytes:x?}");
        text += usize::from(expected.is_ok());
    }
    assert!(text > 5_000, "{text}");
}
