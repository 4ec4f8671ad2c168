//! Inflater.

use bytes::BytesMut;
use flate2::{Compress, Compression, FlushCompress};

use super::{cut, inflated, plain};
use crate::codec::DecodeError;
use crate::codec::message::{INFLATING, Inflater, TAIL};

/// A client with one deflater for as long as the connection lives, which uses all that the format
/// allows.
struct Client {
    deflater: Compress,
    bits: u8,
    takeover: bool,
    said: Vec<u8>,
}

impl Client {
    fn new(level: u32, bits: u8, takeover: bool) -> Self {
        Self {
            deflater: Compress::new_with_window_bits(Compression::new(level), false, bits),
            bits,
            takeover,
            said: Vec::new(),
        }
    }

    fn send(&mut self, random: &mut fastrand::Rng, message: &[u8]) -> Vec<u8> {
        let mut wire = Vec::new();
        let cuts = random.usize(..4);
        for part in cut(random, message, cuts) {
            self.said.extend_from_slice(part);
            match random.u8(..4) {
                0 => self.run(part, FlushCompress::None, &mut wire),
                1 => self.run(part, FlushCompress::Full, &mut wire),
                2 => {
                    self.run(part, FlushCompress::Finish, &mut wire);
                    self.go_on();
                }
                _ => self.run(part, FlushCompress::Sync, &mut wire),
            }
        }
        self.run(&[], FlushCompress::Sync, &mut wire);
        if wire.ends_with(&TAIL) {
            wire.truncate(wire.len() - TAIL.len());
        }
        if !self.takeover {
            self.deflater.reset();
            self.said.clear();
        }
        wire
    }

    fn run(&mut self, mut part: &[u8], flush: FlushCompress, wire: &mut Vec<u8>) {
        loop {
            wire.reserve(part.len() + 1024);
            let taken = self.deflater.total_in();
            self.deflater
                .compress_vec(part, wire, flush)
                .expect("any bytes deflate");
            part = &part[(self.deflater.total_in() - taken) as usize..];
            if part.is_empty() && wire.len() < wire.capacity() {
                return;
            }
        }
    }

    /// After a last block: a new stream that may refer to the old one.
    fn go_on(&mut self) {
        self.deflater.reset();
        let window = 1_usize << self.bits;
        let from = self.said.len().saturating_sub(window);
        if from < self.said.len() {
            self.deflater
                .set_dictionary(&self.said[from..])
                .expect("a dictionary");
        }
    }
}

#[test]
fn every_message_of_a_client_is_read_however_it_is_cut() {
    let mut random = fastrand::Rng::with_seed(5);
    for (bits, takeover) in (9..=15).flat_map(|bits| [(bits, true), (bits, false)]) {
        for level in [0, 1, 6, 9] {
            let mut client = Client::new(level, bits, takeover);
            let mut receiver = Inflater::new(bits, takeover, 1 << 20);
            for _ in 0..12 {
                let message = plain(&mut random);
                let wire = client.send(&mut random, &message);
                let cuts = random.usize(..5);
                let pieces = cut(&mut random, &wire, cuts);
                let room = random.usize(1..20_000);
                let form = format!("level {level}, window {bits}, takeover {takeover}");
                let read = inflated(&mut receiver, &pieces, room);
                assert_eq!(read, Ok(message), "{form}");
                let most = (1_usize << bits) * 5 / 4;
                assert!(receiver.held() <= if takeover { most } else { 0 });
            }
        }
    }
}

#[test]
fn the_examples_of_the_rfc_are_read() {
    // Section 7.2.3: one block; the same again by reference; stored; a last block; two blocks.
    let mut receiver = Inflater::new(15, true, 100);
    for payload in [
        &[0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00][..],
        &[0xf2, 0x00, 0x11, 0x00, 0x00],
        b"\x00\x05\x00\xfa\xffHello\x00",
        &[0xf3, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x00],
        b"\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00",
    ] {
        for room in [1, 2, 1_000] {
            let bytes: Vec<&[u8]> = payload.chunks(1).collect();
            let hello = Ok(b"Hello".to_vec());
            assert_eq!(inflated(&mut receiver, &bytes, room), hello, "{payload:x?}");
            assert_eq!(inflated(&mut receiver, &[payload], room), hello);
        }
    }
}

#[test]
fn every_form_of_an_empty_message_is_empty() {
    let mut receiver = Inflater::new(12, true, 100);
    // None, the byte of section 7.2.3.6, an empty fixed block, last blocks with and without an end.
    for payload in [&[][..], &[0], &[2, 0], &[3, 0], &[3, 0, 0], &[1]] {
        assert_eq!(
            inflated(&mut receiver, &[payload], 10),
            Ok(vec![]),
            "{payload:x?}"
        );
        assert_eq!(inflated(&mut receiver, &[payload, &[]], 10), Ok(vec![]));
        assert_eq!(receiver.held(), 0, "{payload:x?}");
    }
}

#[test]
fn what_is_not_deflate_or_not_all_of_it_is_a_fault() {
    let read = |payload: &[u8]| inflated(&mut Inflater::new(15, true, 1 << 20), &[payload], 1_000);
    // A block of no kind, a distance to nowhere.
    assert_eq!(read(&[0x07, 0x00]), Err(DecodeError::Corrupt));
    assert_eq!(
        read(&[0xf2, 0x00, 0x11, 0x00, 0x00]),
        Err(DecodeError::Corrupt)
    );
    let message = b"a message that is cut short is not the message".repeat(3);
    // In one block: at the end of any other the message could have ended as well.
    let mut wire = Vec::new();
    Client::new(6, 15, true).run(&message, FlushCompress::Sync, &mut wire);
    wire.truncate(wire.len() - TAIL.len());
    assert_eq!(read(&wire), Ok(message));
    for cut in 1..wire.len() {
        assert!(
            read(&wire[..cut]).is_err(),
            "cut at {cut} of {}",
            wire.len()
        );
    }
    // The tail was to be taken off.
    assert!(read(&[&wire[..], &TAIL].concat()).is_err());
}

#[test]
fn a_reference_beyond_the_agreed_window_is_a_fault() {
    let mut random = fastrand::Rng::with_seed(7);
    let noise: Vec<u8> = (0..3_000).map(|_| random.u8(..)).collect();
    let mut client = Client::new(6, 15, true);
    let (first, second) = (
        client.send(&mut random, &noise),
        client.send(&mut random, &noise),
    );
    let mut receiver = Inflater::new(11, true, 1 << 20);
    assert_eq!(inflated(&mut receiver, &[&first], 4_000), Ok(noise));
    assert_eq!(
        inflated(&mut receiver, &[&second], 4_000),
        Err(DecodeError::Corrupt)
    );
}

#[test]
fn a_message_may_be_as_long_as_the_limit_and_not_a_byte_longer() {
    let mut random = fastrand::Rng::with_seed(8);
    let message = vec![7; 5_000];
    let wire = Client::new(6, 12, false).send(&mut random, &message);
    for room in [1, 499, 10_000] {
        let read = |limit| inflated(&mut Inflater::new(12, false, limit), &[&wire], room);
        assert_eq!(read(5_000), Ok(message.clone()));
        assert_eq!(read(4_999), Err(DecodeError::TooLarge));
        assert_eq!(read(0), Err(DecodeError::TooLarge));
    }
    // The limit is a message's, over all its parts, and the next message has its own.
    let mut receiver = Inflater::new(12, false, 5_000);
    for _ in 0..3 {
        let pieces: Vec<&[u8]> = wire.chunks(1).collect();
        assert_eq!(inflated(&mut receiver, &pieces, 300), Ok(message.clone()));
    }
}

#[test]
fn a_bomb_comes_out_by_the_room_and_ends_at_the_limit() {
    let mut random = fastrand::Rng::with_seed(9);
    let wire = Client::new(9, 15, false).send(&mut random, &vec![0; 64 << 20]);
    assert!(wire.len() < 80 << 10, "{}", wire.len());
    let mut receiver = Inflater::new(15, false, 16 << 20);
    let (mut rest, mut made) = (&wire[..], 0);
    let fault = loop {
        let mut output = BytesMut::new();
        match receiver.inflate(rest, true, 64 << 10, &mut output) {
            Ok(step) => {
                assert!(!step.done && output.len() <= 64 << 10);
                rest = &rest[step.consumed..];
                made += output.len();
            }
            Err(fault) => break fault,
        }
        assert!(receiver.held() <= INFLATING + (40 << 10));
    };
    assert_eq!(fault, DecodeError::TooLarge);
    assert!(made <= 16 << 20);
}

#[test]
fn streams_without_content_are_not_started_for_ever() {
    let mut receiver = Inflater::new(15, true, 1 << 20);
    let flood = [3, 0].repeat(30_000);
    assert_eq!(
        inflated(&mut receiver, &[&flood], 1_000),
        Err(DecodeError::Corrupt)
    );
}

#[test]
fn an_engine_is_held_within_a_message_only() {
    let mut random = fastrand::Rng::with_seed(10);
    let message = b"half received".repeat(9);
    let wire = Client::new(6, 12, true).send(&mut random, &message);
    let mut receiver = Inflater::new(12, true, 1 << 20);
    assert_eq!(receiver.held(), 0);
    let mut output = BytesMut::new();
    let step = receiver.inflate(&wire[..9], false, 1_000, &mut output);
    assert!(step.is_ok_and(|step| step.done));
    assert!(receiver.held() >= INFLATING);
    let read = inflated(&mut receiver, &[&wire[9..]], 1_000).expect("the rest");
    assert_eq!([&output[..], &read].concat(), message);
    assert!((message.len()..=1 << 12).contains(&receiver.held()));
}
