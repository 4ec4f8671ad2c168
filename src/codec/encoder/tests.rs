use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::*;
use crate::codec::{DecodeError, Decoder};

const CODINGS: [Coding; 4] = [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd];

/// What a client that has received `coded` so far can read.
fn readable(decoder: &mut Decoder, mut coded: Bytes) -> Result<Vec<u8>, DecodeError> {
    let mut plain = BytesMut::new();
    while !coded.is_empty() {
        let progress = decoder.decode(&coded, &mut plain, 64 << 10)?;
        let _ = coded.split_to(progress.consumed);
    }
    Ok(plain.to_vec())
}

fn text(size: usize) -> Vec<u8> {
    let mut generator = fastrand::Rng::with_seed(size as u64);
    (0..size)
        .map(|_| b"{\"id\":12345, abcdef}"[generator.usize(..20)])
        .collect()
}

fn levels(coding: Coding) -> Vec<u8> {
    match coding {
        Coding::Gzip | Coding::Deflate => (1..=9).collect(),
        Coding::Brotli => (0..=5).collect(),
        Coding::Zstd => vec![1, 2, 3, 6, 9],
    }
}

#[test]
fn what_was_flushed_can_be_read_before_more_comes() {
    for coding in CODINGS {
        for level in levels(coding) {
            let mut encoder =
                Encoder::new(Recipe::new(coding, level).streaming(None)).expect("memory");
            let mut decoder = Decoder::new(coding, u64::MAX);
            for size in [1, 300, 70_000, 5, 200_000] {
                let event = text(size);
                let mut wire = BytesMut::new();
                encoder
                    .encode(&event, Step::Flush, &mut wire)
                    .expect("encodes");
                let seen = readable(&mut decoder, wire.freeze()).expect("decodes");
                assert!(
                    seen == event,
                    "{coding} {level}: {size} bytes became {}",
                    seen.len()
                );
            }
            let mut wire = BytesMut::new();
            encoder
                .encode(&[], Step::Finish, &mut wire)
                .expect("encodes");
            assert!(!wire.is_empty());
            assert_eq!(readable(&mut decoder, wire.freeze()), Ok(Vec::new()));
            assert_eq!(decoder.finish(), Ok(()));
        }
    }
}

#[test]
fn a_flush_with_nothing_to_flush_emits_nothing() {
    for coding in CODINGS {
        let mut encoder = Encoder::padded(Recipe::new(coding, 4), 100).expect("memory");
        let mut wire = BytesMut::new();
        encoder
            .encode(&[], Step::Flush, &mut wire)
            .expect("encodes");
        assert_eq!(wire.len(), 0, "{coding}: nothing came yet");
        encoder
            .encode(b"an event", Step::Flush, &mut wire)
            .expect("encodes");
        let before = wire.len();
        encoder
            .encode(&[], Step::Flush, &mut wire)
            .expect("encodes");
        encoder
            .encode(&[], Step::Continue, &mut wire)
            .expect("encodes");
        encoder
            .encode(&[], Step::Flush, &mut wire)
            .expect("encodes");
        assert_eq!(wire.len(), before, "{coding}: all was flushed");
        encoder
            .encode(b"another", Step::Continue, &mut wire)
            .expect("encodes");
        let before = wire.len();
        encoder
            .encode(&[], Step::Flush, &mut wire)
            .expect("encodes");
        assert!(wire.len() > before, "{coding}: something was not");
    }
}

#[test]
fn after_the_end_nothing_more_is_taken() {
    for coding in CODINGS {
        let mut encoder = Encoder::new(Recipe::new(coding, 4)).expect("memory");
        let mut wire = BytesMut::new();
        encoder
            .encode(b"all", Step::Finish, &mut wire)
            .expect("encodes");
        let before = wire.len();
        for step in [Step::Continue, Step::Flush, Step::Finish] {
            assert_eq!(
                encoder.encode(b"more", step, &mut wire),
                Err(CodecError::Finished(coding))
            );
        }
        assert_eq!(wire.len(), before);
    }
}

#[test]
fn an_engine_that_was_dropped_in_the_middle_serves_the_next_body_well() {
    for coding in CODINGS {
        let recipe = Recipe::new(coding, 4).streaming(None);
        for round in 0..20 {
            let mut dropped = Encoder::new(recipe).expect("memory");
            let mut wire = BytesMut::new();
            let step = if round % 2 == 0 {
                Step::Continue
            } else {
                Step::Flush
            };
            dropped
                .encode(&text(50_000), step, &mut wire)
                .expect("encodes");
            drop(dropped);
            let body = text(1_000 * round + 1);
            let mut encoder = Encoder::new(recipe).expect("memory");
            let mut wire = BytesMut::new();
            encoder
                .encode(&body, Step::Finish, &mut wire)
                .expect("encodes");
            let mut decoder = Decoder::new(coding, u64::MAX);
            assert!(
                readable(&mut decoder, wire.freeze()) == Ok(body),
                "{coding}"
            );
            assert_eq!(decoder.finish(), Ok(()));
        }
    }
}

#[test]
fn filler_makes_a_body_longer_and_changes_nothing_in_it() {
    for coding in [Coding::Gzip, Coding::Brotli, Coding::Zstd] {
        let coded = |pad| {
            let mut encoder = Encoder::padded(Recipe::new(coding, 4), pad).expect("memory");
            let mut wire = BytesMut::new();
            encoder
                .encode(&text(3_000), Step::Flush, &mut wire)
                .expect("encodes");
            encoder
                .encode(&text(10), Step::Finish, &mut wire)
                .expect("encodes");
            wire.freeze()
        };
        let bare = coded(0).len();
        for pad in [1, 2, 7, 255, 256, 257, 65_531, 1 << 20] {
            let wire = coded(pad);
            let longer = wire.len() - bare;
            let pad = pad.min(MOST_PAD);
            assert!(
                (pad..pad + 12).contains(&longer),
                "{coding}: {pad} made {longer}"
            );
            let mut decoder = Decoder::new(coding, u64::MAX);
            let plain = readable(&mut decoder, wire).expect("decodes");
            assert!(plain == [text(3_000), text(10)].concat(), "{coding}");
            assert_eq!(decoder.finish(), Ok(()));
        }
    }
}

#[test]
fn an_empty_body_is_a_valid_one() {
    for coding in CODINGS {
        let mut encoder = Encoder::new(Recipe::new(coding, 4)).expect("memory");
        let mut wire = BytesMut::new();
        encoder
            .encode(&[], Step::Finish, &mut wire)
            .expect("encodes");
        let mut decoder = Decoder::new(coding, 0);
        assert_eq!(readable(&mut decoder, wire.freeze()), Ok(Vec::new()));
        assert_eq!(decoder.finish(), Ok(()));
    }
}

#[test]
fn an_encoder_travels() {
    fn travels<T: Send + 'static>() {}
    travels::<Encoder>();
    travels::<Decoder>();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn any_pieces_come_back_whole(
        coding in prop::sample::select(CODINGS.to_vec()),
        level in 0_u8..12,
        pieces in prop::collection::vec((0_usize..40_000, any::<bool>(), any::<bool>()), 0..8),
    ) {
        let mut encoder = Encoder::new(Recipe::new(coding, level).streaming(None)).expect("memory");
        let (mut wire, mut body) = (BytesMut::new(), Vec::new());
        for (size, flush, noise) in pieces {
            let piece = if noise {
                let mut generator = fastrand::Rng::with_seed(size as u64);
                (0..size).map(|_| generator.u8(..)).collect()
            } else {
                text(size)
            };
            let step = if flush { Step::Flush } else { Step::Continue };
            encoder.encode(&piece, step, &mut wire).expect("encodes");
            body.extend(piece);
        }
        encoder.encode(&[], Step::Finish, &mut wire).expect("encodes");
        let mut decoder = Decoder::new(coding, body.len() as u64);
        prop_assert!(readable(&mut decoder, wire.freeze()) == Ok(body));
        prop_assert_eq!(decoder.finish(), Ok(()));
    }
}
