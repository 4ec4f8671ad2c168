use std::slice::from_ref;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::*;
use crate::codec::Decoder;

const CODINGS: [Coding; 4] = [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd];

fn records(size: usize) -> Bytes {
    let mut text = String::with_capacity(size + 64);
    let mut id = 0_u32;
    while text.len() < size {
        id += 1;
        let reference = u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        text.push_str(&format!(
            r#"{{"id":{id},"ref":"{reference:012x}","active":true}},"#
        ));
    }
    text.truncate(size);
    Bytes::from(text)
}

fn inflated(coding: Coding, coded: &Bytes, limit: usize) -> Bytes {
    let mut decoder = Decoder::new(coding, limit as u64);
    let (mut plain, mut at) = (BytesMut::new(), 0);
    while at < coded.len() {
        at += decoder
            .decode(&coded[at..], &mut plain, 1 << 20)
            .expect("decodes")
            .consumed;
    }
    decoder.finish().expect("complete");
    plain.freeze()
}

#[test]
fn every_level_of_every_coding_comes_back() {
    let body = records(20_000);
    for coding in CODINGS {
        for level in 0..=22 {
            let recipe = Recipe::new(coding, level);
            let coded = whole(recipe, from_ref(&body), body.len(), 0).expect("encodes");
            assert!(coded.len() < body.len() / 2, "{coding} {level}");
            assert!(
                inflated(coding, &coded, body.len()) == body,
                "{coding} {level}"
            );
        }
    }
}

#[test]
fn bodies_of_any_size_come_back_also_those_that_do_not_shrink() {
    let mut generator = fastrand::Rng::with_seed(3);
    let noise: Bytes = (0..300_000).map(|_| generator.u8(..)).collect();
    for coding in CODINGS {
        for size in [0, 1, 2, 100, 65_535, 65_536, 300_000] {
            for body in [noise.slice(..size), records(size)] {
                let coded =
                    whole(Recipe::new(coding, 4), from_ref(&body), size, 0).expect("encodes");
                assert!(
                    inflated(coding, &coded, size) == body,
                    "{coding}, {size} bytes"
                );
            }
        }
        let coded = whole(Recipe::new(coding, 4), &[], 0, 0).expect("encodes");
        assert!(inflated(coding, &coded, 0).is_empty());
    }
}

#[test]
fn filler_makes_a_body_longer_and_changes_nothing_in_it() {
    let body = records(5_000);
    for coding in [Coding::Gzip, Coding::Brotli, Coding::Zstd] {
        let coded =
            |pad| whole(Recipe::new(coding, 4), from_ref(&body), 5_000, pad).expect("encodes");
        for pad in [1, 64, 4_096, 1 << 20] {
            let longer = coded(pad).len() - coded(0).len();
            let pad = pad.min(MOST_PAD);
            assert!(
                (pad..pad + 12).contains(&longer),
                "{coding}: {pad} made {longer}"
            );
            assert!(inflated(coding, &coded(pad), 5_000) == body, "{coding}");
        }
    }
}

#[test]
fn a_large_br_body_gets_the_small_hash_table_as_its_stream_does() {
    let body = records(1_200_000);
    let recipe = Recipe::new(Coding::Brotli, 4);
    let coded = whole(recipe, from_ref(&body), body.len(), 0).expect("encodes");
    let mut streamed = BytesMut::new();
    let mut encoder = Encoder::new(recipe.streaming(None)).expect("memory");
    for piece in body.chunks(16 << 10) {
        encoder
            .encode(piece, Step::Continue, &mut streamed)
            .expect("encodes");
    }
    encoder
        .encode(&[], Step::Finish, &mut streamed)
        .expect("encodes");
    assert!(coded == streamed, "{} and {}", coded.len(), streamed.len());
}

#[test]
fn a_zstd_body_says_how_long_it_is_and_fits_a_small_window() {
    let body = records(50_000);
    let coded = whole(
        Recipe::new(Coding::Zstd, 19),
        from_ref(&body),
        body.len(),
        99,
    )
    .expect("encodes");
    assert_eq!(
        zstd_safe::get_frame_content_size(&coded).ok().flatten(),
        Some(50_000)
    );
}

#[test]
fn a_thread_keeps_little_after_a_large_body() {
    let body = records(3 << 20);
    for level in [1, 2, 4, 6, 10] {
        let _ = whole(
            Recipe::new(Coding::Gzip, level),
            &[body.clone(), body.clone()],
            6 << 20,
            0,
        )
        .expect("encodes");
    }
    let _ = whole(Recipe::new(Coding::Zstd, 12), &[body], 3 << 20, 0).expect("encodes");
    BENCH.with_borrow(|bench| {
        assert!(bench.input.capacity() <= KEPT_BUFFER);
        assert!(bench.output.capacity() <= KEPT_BUFFER);
        assert!(bench.deflaters.len() <= KEPT_COMPRESSORS);
        assert!(
            bench
                .zstd
                .as_ref()
                .is_none_or(|context| context.sizeof() <= KEPT_CONTEXT)
        );
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_cut_into_pieces_changes_nothing(
        coding in prop::sample::select(CODINGS.to_vec()),
        size in 0_usize..100_000,
        cut in 0_usize..100_000,
    ) {
        let body = records(size);
        let cut = cut.min(size);
        let pieces = [body.slice(..cut), Bytes::new(), body.slice(cut..)];
        let recipe = Recipe::new(coding, 4);
        let coded = whole(recipe, &pieces, size, 0).expect("encodes");
        prop_assert!(inflated(coding, &coded, size) == body);
        if coding != Coding::Brotli {
            prop_assert!(coded == whole(recipe, &[body], size, 0).expect("encodes"));
        }
    }
}
