use std::io::Write as _;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::*;
use crate::codec::{Recipe, whole};

const CODINGS: [Coding; 4] = [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd];

fn coded(coding: Coding, body: &[u8]) -> Bytes {
    whole(
        Recipe::new(coding, 4),
        &[Bytes::copy_from_slice(body)],
        body.len(),
        0,
    )
    .expect("encodes")
}

fn raw_deflate(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(body).expect("a vector takes all");
    encoder.finish().expect("a vector takes all")
}

/// Decodes what arrives in pieces of `piece` bytes, `room` bytes of output at a time.
fn decode(
    coding: Coding,
    wire: &[u8],
    limit: u64,
    piece: usize,
    room: usize,
) -> Result<Vec<u8>, DecodeError> {
    let mut decoder = Decoder::new(coding, limit);
    let mut plain = Vec::new();
    for mut piece in wire.chunks(piece.max(1)) {
        while !piece.is_empty() {
            let mut output = BytesMut::new();
            let progress = decoder.decode(piece, &mut output, room)?;
            assert_eq!(output.len(), progress.produced);
            assert!(progress.produced <= room, "{} > {room}", progress.produced);
            assert!(progress.produced + progress.consumed > 0, "no progress");
            plain.extend_from_slice(&output);
            piece = &piece[progress.consumed..];
        }
    }
    decoder.finish().map(|()| plain)
}

#[test]
fn what_is_cut_short_is_told_from_what_is_complete() {
    let body = b"a body that is worth its bytes, a body that is worth its bytes".repeat(20);
    for coding in CODINGS {
        let wire = coded(coding, &body);
        for end in 0..wire.len() {
            let outcome = decode(coding, &wire[..end], 1 << 20, 50, 100);
            assert_eq!(
                outcome,
                Err(DecodeError::Truncated),
                "{coding}, {end} of {}",
                wire.len()
            );
        }
        assert_eq!(
            decode(coding, &wire, 1 << 20, 50, 100),
            Ok(body.clone()),
            "{coding}"
        );
    }
}

#[test]
fn garbage_after_the_end_is_an_error() {
    for coding in CODINGS {
        for garbage in [&b"garbage"[..], b"\0", b"\x1f\x8c", b"\0\0\0\0\0\0\0\0"] {
            let mut wire = coded(coding, b"a body").to_vec();
            wire.extend_from_slice(garbage);
            for piece in [1, 5, 1000] {
                let outcome = decode(coding, &wire, 1 << 20, piece, 100);
                assert!(
                    matches!(outcome, Err(DecodeError::Trailing | DecodeError::Truncated)),
                    "{coding} {garbage:?}: {outcome:?}"
                );
            }
        }
    }
}

#[test]
fn members_and_frames_follow_one_another() {
    for coding in [Coding::Gzip, Coding::Zstd] {
        let mut wire = Vec::new();
        for part in [&b"one, "[..], b"", b"two, ", b"three"] {
            wire.extend_from_slice(&coded(coding, part));
        }
        for piece in [1, 3, 1000] {
            let plain = decode(coding, &wire, 100, piece, 4).expect("decodes");
            assert_eq!(plain, b"one, two, three", "{coding}");
        }
        let many = coded(coding, b"").repeat(1_000);
        assert_eq!(
            decode(coding, &many, 0, 100_000, 100),
            Ok(Vec::new()),
            "{coding}"
        );
    }
}

#[test]
fn many_tiny_members_are_spread_over_many_calls() {
    let wire = coded(Coding::Gzip, b"").repeat(1_000);
    let mut decoder = Decoder::new(Coding::Gzip, 0);
    let progress = decoder
        .decode(&wire, &mut BytesMut::new(), 64 << 10)
        .expect("decodes");
    assert!(progress.consumed < wire.len() / 50, "{}", progress.consumed);
}

#[test]
fn deflate_is_taken_with_and_without_its_header() {
    for size in [0, 1, 2, 3, 10, 300, 100_000] {
        let body: Vec<u8> = (0..size).map(|at| b"deflate or zlib"[at % 15]).collect();
        for wire in [coded(Coding::Deflate, &body).to_vec(), raw_deflate(&body)] {
            for piece in [1, 2, 7, 1 << 20] {
                let plain = decode(Coding::Deflate, &wire, 1 << 20, piece, 999);
                assert!(
                    plain == Ok(body.clone()),
                    "{size} bytes in pieces of {piece}"
                );
            }
        }
    }
}

#[test]
fn one_byte_beyond_the_limit_is_too_much() {
    let body = vec![b'x'; 100_000];
    for coding in CODINGS {
        let wire = coded(coding, &body);
        for piece in [1, 1 << 20] {
            for room in [1_000, 1 << 20] {
                assert!(
                    decode(coding, &wire, 100_000, piece, room) == Ok(body.clone()),
                    "{coding}"
                );
                let outcome = decode(coding, &wire, 99_999, piece, room);
                assert_eq!(outcome, Err(DecodeError::TooLarge), "{coding}");
            }
        }
        assert_eq!(
            decode(coding, &wire, 0, 10, 10),
            Err(DecodeError::TooLarge),
            "{coding}"
        );
    }
}

#[test]
fn a_bomb_comes_out_in_pieces_that_fit_the_room_and_stops_at_the_limit() {
    let bomb = vec![0; 64 << 20];
    for coding in CODINGS {
        let wire = coded(coding, &bomb);
        assert!(wire.len() < 100_000, "{coding}: {}", wire.len());
        let mut decoder = Decoder::new(coding, 10 << 20);
        let (mut at, mut seen) = (0, 0);
        let outcome = loop {
            let mut output = BytesMut::new();
            match decoder.decode(&wire[at..], &mut output, 64 << 10) {
                Ok(progress) => at += progress.consumed,
                Err(error) => break error,
            }
            assert!(output.len() <= 64 << 10 && output.capacity() <= 128 << 10);
            seen += output.len();
        };
        assert_eq!(outcome, DecodeError::TooLarge, "{coding}");
        assert!((9 << 20..=10 << 20).contains(&seen), "{coding}: {seen}");
    }
}

#[test]
fn a_frame_that_wants_a_large_window_is_refused_before_anything_is_allocated() {
    // Magic, a descriptor without a content size, a window of 2^27; then of 2^24 and, fine, 2^23.
    let frame = |log: u8| [0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3, 1, 0, 0];
    assert_eq!(
        decode(Coding::Zstd, &frame(27), 1 << 30, 100, 100),
        Err(DecodeError::Window)
    );
    assert_eq!(
        decode(Coding::Zstd, &frame(24), 1 << 30, 1, 100),
        Err(DecodeError::Window)
    );
    assert_eq!(
        decode(Coding::Zstd, &frame(23), 1 << 30, 100, 100),
        Ok(Vec::new())
    );
    // br's large window extension: 0x11 and a window of 2^30.
    let outcome = decode(Coding::Brotli, &[0x11, 0x1e, 0x03], 1 << 30, 100, 100);
    assert_eq!(outcome, Err(DecodeError::Corrupt));
}

#[test]
fn what_is_something_else_is_corrupt() {
    for coding in CODINGS {
        let outcome = decode(
            coding,
            b"\xff\xfethis is no such thing at all",
            1 << 20,
            9,
            100,
        );
        assert_eq!(outcome, Err(DecodeError::Corrupt), "{coding}");
    }
    let mut wire = coded(Coding::Gzip, b"a checksum is there to be checked").to_vec();
    let at = wire.len() - 6;
    wire[at] ^= 1;
    assert_eq!(
        decode(Coding::Gzip, &wire, 100, 100, 100),
        Err(DecodeError::Corrupt)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn pieces_and_rooms_of_any_size_lead_to_the_same_bytes(
        coding in prop::sample::select(CODINGS.to_vec()),
        runs in prop::collection::vec((any::<u8>(), 1_usize..600), 0..60),
        piece in 1_usize..300,
        room in 1_usize..5_000,
    ) {
        let body: Vec<u8> =
            runs.into_iter().flat_map(|(byte, times)| std::iter::repeat_n(byte, times)).collect();
        let wire = coded(coding, &body);
        let plain = decode(coding, &wire, body.len() as u64, piece, room);
        prop_assert!(plain == Ok(body));
    }

    #[test]
    fn no_bytes_break_the_decoder(
        coding in prop::sample::select(CODINGS.to_vec()),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        piece in 1_usize..200,
    ) {
        let mut wire = coded(coding, &b"some text and some more text ".repeat(40)).to_vec();
        for (at, value) in flips {
            let at = at.index(wire.len());
            wire[at] = value;
        }
        if let Ok(plain) = decode(coding, &wire, 10_000, piece, 500) {
            prop_assert!(plain.len() <= 10_000);
        }
    }
}
