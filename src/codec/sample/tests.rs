use std::slice::from_ref;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::codec::{Coding, Recipe, whole};

fn random(size: usize) -> Vec<u8> {
    let mut generator = fastrand::Rng::with_seed(11);
    (0..size).map(|_| generator.u8(..)).collect()
}

fn json(size: usize) -> Vec<u8> {
    let mut generator = fastrand::Rng::with_seed(7);
    let mut text = String::from("[");
    while text.len() < size {
        let id = generator.u32(..);
        text.push_str(&format!(
            r#"{{"id":{id},"name":"ada {id:x}","active":true}},"#
        ));
    }
    text.truncate(size);
    text.into_bytes()
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bytes
        .iter()
        .map(|byte| ALPHABET[usize::from(byte & 63)])
        .collect()
}

fn verdict(body: Vec<u8>) -> bool {
    looks_incompressible(&[Bytes::from(body)])
}

#[test]
fn random_and_compressed_bytes_are_left_alone() {
    assert!(verdict(random(1024)));
    assert!(verdict(random(4096)));
    assert!(verdict(random(1 << 20)));
    let text = Bytes::from(json(1 << 20));
    let gzipped =
        whole(Recipe::new(Coding::Gzip, 4), &[text], 1 << 20, 0).expect("any bytes encode");
    assert!(looks_incompressible(&[gzipped]));
}

#[test]
fn text_is_not() {
    assert!(!verdict(json(2_000)));
    assert!(!verdict(json(1 << 20)));
    assert!(!verdict(base64(&random(1 << 20))));
    assert!(!verdict(vec![0; 1 << 20]));
    assert!(!verdict(Vec::new()));
}

#[test]
fn a_body_too_small_to_tell_is_given_a_chance() {
    assert!(!verdict(random(1023)));
}

#[test]
fn a_mixed_body_is_judged_by_all_of_it() {
    let mut head = json(8 << 10);
    head.extend(random(1 << 20));
    assert!(verdict(head), "a JSON head before random bytes");
    let mut tail = random(8 << 10);
    tail.extend(json(1 << 20));
    assert!(!verdict(tail), "random bytes before JSON");
}

proptest! {
    #[test]
    fn the_cut_into_pieces_changes_nothing(
        size in 0_usize..20_000,
        cuts in proptest::collection::vec(0_usize..20_000, 0..12),
        noise in any::<bool>(),
    ) {
        let body = Bytes::from(if noise { random(size) } else { json(size) });
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(body.len())).collect();
        cuts.sort_unstable();
        let (mut pieces, mut from) = (Vec::new(), 0);
        for cut in cuts {
            pieces.push(body.slice(from..cut));
            from = cut;
        }
        pieces.push(body.slice(from..));
        prop_assert_eq!(histogram(&pieces, body.len()), histogram(from_ref(&body), body.len()));
        let seen: usize = histogram(&pieces, body.len()).iter().map(|&count| usize::from(count)).sum();
        prop_assert_eq!(seen, body.len().min(SAMPLE));
    }
}
