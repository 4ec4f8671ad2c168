//! What work costs, before it is done: a table of CPU time.
//!
//! Measured on one 2-core x86-64 server CPU over 117 KiB and 1.1 MB of JSON (`benches/codec.rs`);
//! [`crate::work`] corrects it by what work really takes on the machine at hand.

use std::time::Duration;

use super::{Coding, Recipe};

/// The CPU time of one slice of a stream's beginning, which somebody waits for.
pub const SLICE: Duration = Duration::from_micros(500);

/// The same further on. Each turn begins with cold caches: sixteen br streams of 1.1 MB by turns of
/// 500 us took 1.5 times the CPU of turns of 2 ms.
pub const BULK_SLICE: Duration = Duration::from_millis(2);

/// Work up to here costs no more than handing it to another thread is worth (NUMBERS.md).
const INLINE: Duration = Duration::from_micros(100);

/// Slices are not cut smaller, however dense the level: engines work in blocks.
const LEAST_SLICE: usize = 4 << 10;

/// What is held for one slice, however fast the level.
const LARGEST_SLICE: usize = 128 << 10;

/// libdeflate by level: tenths of a nanosecond a byte. A level that is not listed costs what the
/// next one does, here as below.
const LIBDEFLATE: [u32; 13] = [
    28, 28, 42, 48, 57, 68, 96, 144, 320, 690, 1_250, 2_000, 4_300,
];

/// zlib-rs by level, 1 standing for 2.
const ZLIB: [u32; 10] = [36, 36, 36, 54, 69, 75, 90, 190, 440, 230];

/// br, whole or not.
const BROTLI: [u32; 12] = [32, 29, 53, 70, 94, 180, 300, 400, 470, 2_440, 7_500, 18_000];

/// zstd, whole; 11, 14, 17, 20 and 21 not measured.
const ZSTD: [u32; 23] = [
    19, 19, 24, 27, 28, 115, 100, 175, 200, 240, 400, 580, 580, 900, 2_600, 2_600, 5_500, 10_500,
    10_500, 11_000, 14_500, 14_500, 14_500,
];

/// zstd 1 where each 16 KiB are flushed: 1.65 of whole (NUMBERS.md).
const ZSTD_FLUSHED: u32 = 31;

/// CPU time of [`whole`](super::whole) on `bytes`.
#[must_use]
pub fn whole_estimate(recipe: Recipe, bytes: usize) -> Duration {
    // br makes an engine for each body, the others reset one.
    let set_up = Duration::from_micros(if recipe.coding == Coding::Brotli {
        15
    } else {
        5
    });
    let rate = match recipe.coding {
        Coding::Gzip | Coding::Deflate => of(&LIBDEFLATE, recipe.effort),
        Coding::Brotli => of(&BROTLI, recipe.effort),
        Coding::Zstd => of(&ZSTD, recipe.effort),
    };
    set_up + time(rate, bytes)
}

/// CPU time of a stream's encoder on `bytes`.
#[must_use]
pub fn stream_estimate(recipe: Recipe, bytes: usize) -> Duration {
    time(stream_rate(recipe), bytes)
}

/// Bytes of a stream that are about so much work, [`SLICE`] or [`BULK_SLICE`].
#[must_use]
pub fn slice_bytes(recipe: Recipe, slice: Duration) -> usize {
    let bytes = slice.as_nanos() * 10 / u128::from(stream_rate(recipe));
    usize::try_from(bytes)
        .unwrap_or(usize::MAX)
        .clamp(LEAST_SLICE, LARGEST_SLICE)
}

/// Encoding so many bytes of a stream is not worth a hand-over.
#[must_use]
pub fn is_inline(recipe: Recipe, bytes: usize) -> bool {
    stream_estimate(recipe, bytes) <= INLINE
}

/// Encoding a whole body of so many bytes is not worth a hand-over.
#[must_use]
pub fn is_inline_whole(recipe: Recipe, bytes: usize) -> bool {
    whole_estimate(recipe, bytes) <= INLINE
}

/// CPU time of bringing forth `bytes` of plain output.
#[must_use]
pub fn decode_estimate(coding: Coding, bytes: usize) -> Duration {
    let rate = match coding {
        Coding::Gzip | Coding::Deflate => 13,
        Coding::Brotli => 21,
        Coding::Zstd => 12,
    };
    time(rate, bytes)
}

/// Decoding so many bytes of input, should they inflate eightfold, is not worth a hand-over.
#[must_use]
pub fn is_inline_decode(coding: Coding, input: usize) -> bool {
    decode_estimate(coding, input.saturating_mul(8)) <= INLINE
}

fn stream_rate(recipe: Recipe) -> u32 {
    match recipe.coding {
        Coding::Gzip | Coding::Deflate => of(&ZLIB, recipe.effort),
        Coding::Brotli => of(&BROTLI, recipe.effort),
        Coding::Zstd => of(&ZSTD, recipe.effort).max(ZSTD_FLUSHED),
    }
}

/// The rate of a level; beyond the table the last one.
fn of<const N: usize>(table: &[u32; N], effort: u8) -> u32 {
    table[usize::from(effort).min(N - 1)]
}

/// `rate` is in tenths of a nanosecond a byte.
fn time(rate: u32, bytes: usize) -> Duration {
    Duration::from_nanos((bytes as u64).saturating_mul(u64::from(rate)) / 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_costs_the_same_whatever_the_level() {
        for (coding, levels) in [
            (Coding::Gzip, 1..=9),
            (Coding::Brotli, 0..=5),
            (Coding::Zstd, 1..=12),
        ] {
            for (level, slice) in levels.flat_map(|level| [(level, SLICE), (level, BULK_SLICE)]) {
                let recipe = Recipe::new(coding, level).streaming(None);
                let bytes = slice_bytes(recipe, slice);
                let cost = stream_estimate(recipe, bytes);
                assert!(
                    cost <= slice || bytes == LEAST_SLICE,
                    "{coding} {level}: {cost:?}"
                );
                assert!(
                    cost >= slice * 9 / 10 || bytes == LARGEST_SLICE,
                    "{coding} {level}: {cost:?}"
                );
            }
        }
    }

    #[test]
    fn small_bodies_are_done_in_place_and_large_ones_are_not() {
        let gzip = Recipe::new(Coding::Gzip, 4);
        assert!(is_inline_whole(gzip, 8 << 10));
        assert!(!is_inline_whole(gzip, 117 << 10));
        assert!(is_inline(gzip, 8 << 10));
        assert!(!is_inline_whole(Recipe::new(Coding::Brotli, 9), 2 << 10));
        assert!(is_inline_decode(Coding::Gzip, 4 << 10));
        assert!(!is_inline_decode(Coding::Brotli, 64 << 10));
    }

    #[test]
    fn a_cheaper_recipe_is_estimated_cheaper() {
        for coding in [Coding::Gzip, Coding::Brotli, Coding::Zstd] {
            for level in 0..=22 {
                let recipe = Recipe::new(coding, level);
                if let Some(cheaper) = recipe.cheaper() {
                    let (most, least) = (
                        whole_estimate(recipe, 1 << 20),
                        whole_estimate(cheaper, 1 << 20),
                    );
                    assert!(least < most, "{coding} {level}");
                }
            }
        }
    }

    #[test]
    fn nothing_overflows() {
        assert!(whole_estimate(Recipe::new(Coding::Zstd, 22), usize::MAX) > SLICE);
        assert!(!is_inline_decode(Coding::Gzip, usize::MAX));
    }
}
