//! How a body is squeezed: the coding, how hard, and over how wide a window.

use super::Coding;

/// The widest zstd window: browsers refuse more than 8 MiB.
const ZSTD_WINDOW: u8 = 23;

/// br: up to 18 a wider window saves HTML 2 % of the bytes a step; beyond, it costs up to 1.5 times
/// the CPU and saves nothing worth that.
const BROTLI_WINDOW: u8 = 18;

/// The densest br level that keeps up with a stream.
const BROTLI_STREAM: u8 = 5;

/// zlib's densest level; 10 to 12 are libdeflate's own, for whole bodies.
const DEFLATE_STREAM: u8 = 9;

/// Coding, effort and window of one encoder run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Recipe {
    /// What comes out.
    pub coding: Coding,
    /// The level, in the engine's own scale.
    pub effort: u8,
    /// The base-2 logarithm of the window, in bytes.
    pub window: u8,
    /// The body's size where it is known, for engines that prepare themselves for it.
    pub(super) size: Option<u64>,
}

impl Recipe {
    /// The recipe of a configured level, for a body of unknown size. Levels beyond the engine's
    /// scale are brought into it.
    #[must_use]
    pub fn new(coding: Coding, level: u8) -> Self {
        let effort = match coding {
            Coding::Gzip | Coding::Deflate => level.clamp(1, 12),
            Coding::Brotli => level.min(11),
            Coding::Zstd => level.clamp(1, 22),
        };
        Self {
            coding,
            effort,
            window: 0,
            size: None,
        }
        .fitted(None)
    }

    /// The same for a body of this many bytes (absent: nobody knows): a window that fits.
    #[must_use]
    pub fn fitted(self, size: Option<u64>) -> Self {
        let window = match self.coding {
            Coding::Gzip | Coding::Deflate => 15,
            Coding::Brotli => brotli_window(self.effort, size),
            Coding::Zstd => zstd_window(self.effort, size),
        };
        Self {
            window,
            size,
            ..self
        }
    }

    /// The same for a stream, of this many bytes in all if that is known: levels that cannot keep
    /// up with an application are lowered (br to 5, gzip to 9).
    #[must_use]
    pub fn streaming(self, length: Option<u64>) -> Self {
        let effort = match self.coding {
            Coding::Gzip | Coding::Deflate => self.effort.min(DEFLATE_STREAM),
            Coding::Brotli => self.effort.min(BROTLI_STREAM),
            Coding::Zstd => self.effort,
        };
        Self { effort, ..self }.fitted(length)
    }

    /// The next cheaper one that is worth its bytes; none: nothing is left but plain.
    ///
    /// Measured on JSON, CPU and bytes against the step before: gzip 6 to 4: 0.60, +8 %; gzip 4 to
    /// 1: 0.48, +15 %; br 5 to 4: 0.55, +12 %; br 4 to 1: 0.30, +6 %; zstd 6 to 1: 0.2, same size.
    /// Below zstd 1 (-1: 0.94, +44 %) nothing is gained.
    #[must_use]
    pub fn cheaper(self) -> Option<Self> {
        let effort = match (self.coding, self.effort) {
            (Coding::Gzip | Coding::Deflate, 7..) => 6,
            (Coding::Gzip | Coding::Deflate, 5..=6) => 4,
            (Coding::Gzip | Coding::Deflate, 2..=4) => 1,
            (Coding::Brotli, 5..) => 4,
            (Coding::Brotli, 2..=4) => 1,
            (Coding::Zstd, 2..) => 1,
            _ => return None,
        };
        Some(Self { effort, ..self }.fitted(self.size))
    }
}

/// 16 to 18 by size. From level 5 on the engine has a slower matcher for windows below 17.
fn brotli_window(effort: u8, size: Option<u64>) -> u8 {
    let Some(size) = size else {
        return BROTLI_WINDOW;
    };
    let least = if effort < BROTLI_STREAM { 16 } else { 17 };
    covering(size).clamp(least, BROTLI_WINDOW)
}

/// The engine's own window for the level, never beyond what browsers take.
fn zstd_window(effort: u8, size: Option<u64>) -> u8 {
    let own = match effort {
        ..=1 => 19,
        2 => 20,
        3..=8 => 21,
        9..=18 => 22,
        19.. => ZSTD_WINDOW,
    };
    size.map_or(own, |size| covering(size).clamp(10, own))
}

/// The smallest window that holds `size` bytes.
fn covering(size: u64) -> u8 {
    let bits = u64::BITS - size.saturating_sub(1).leading_zeros();
    u8::try_from(bits).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_fit_the_body_and_stay_within_what_clients_take() {
        let br = Recipe::new(Coding::Brotli, 4);
        for (size, window) in [
            (None, 18),
            (Some(10_000), 16),
            (Some(65_536), 16),
            (Some(65_537), 17),
            (Some(1 << 30), 18),
        ] {
            assert_eq!(br.fitted(size).window, window, "{size:?}");
        }
        assert_eq!(Recipe::new(Coding::Brotli, 5).fitted(Some(100)).window, 17);
        assert_eq!(Recipe::new(Coding::Gzip, 4).fitted(Some(10)).window, 15);
        for level in 1..=22 {
            let zstd = Recipe::new(Coding::Zstd, level);
            assert!(zstd.window <= 23, "level {level}");
            assert_eq!(zstd.fitted(Some(5_000)).window, 13);
            assert_eq!(zstd.fitted(Some(0)).window, 10);
        }
    }

    #[test]
    fn streams_get_no_level_that_cannot_keep_up() {
        assert_eq!(Recipe::new(Coding::Brotli, 11).streaming(None).effort, 5);
        assert_eq!(Recipe::new(Coding::Gzip, 12).streaming(None).effort, 9);
        assert_eq!(Recipe::new(Coding::Brotli, 3).streaming(None).effort, 3);
        assert_eq!(
            Recipe::new(Coding::Brotli, 11)
                .streaming(Some(9 << 20))
                .window,
            18
        );
    }

    #[test]
    fn every_recipe_gets_cheaper_until_nothing_is_left() {
        for coding in [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd] {
            for level in 0..=22 {
                let mut recipe = Recipe::new(coding, level).fitted(Some(70_000));
                let mut steps = 0;
                while let Some(next) = recipe.cheaper() {
                    assert!(next.effort < recipe.effort);
                    assert_eq!(next.size, recipe.size);
                    recipe = next;
                    steps += 1;
                }
                assert!(steps <= 3, "{coding} {level}");
            }
        }
        assert_eq!(Recipe::new(Coding::Zstd, 1).cheaper(), None);
    }
}
