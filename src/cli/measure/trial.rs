//! One coding at one level, over all samples.

use std::time::Duration;

use super::link::Link;
use super::sample::Sample;
use crate::codec::{self, CodecError, Coding, Recipe};
use crate::work::CpuClock;

/// A sample is coded again until it took so long, all runs together...
const ENOUGH: Duration = Duration::from_millis(60);

/// ... or so often; the median counts.
const RUNS: usize = 9;

/// What is tried: the levels a policy may name for answers on the fly, and the densest ones, which
/// copies in the cache are recompressed at.
const LEVELS: [(Coding, &[u8], u8); 3] = [
    (Coding::Zstd, &[1, 3, 6, 9], 19),
    (Coding::Brotli, &[1, 2, 3, 4, 5], 11),
    (Coding::Gzip, &[1, 2, 4, 6, 9], 12),
];

/// What came of it.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) coding: Coding,
    pub(super) level: u8,
    /// Only for copies that are kept.
    pub(super) dense: bool,
    /// Of all samples together.
    pub(super) plain: usize,
    pub(super) coded: usize,
    pub(super) cpu: Duration,
}

/// The recipes that are tried, in this order.
pub(super) fn recipes() -> Vec<Recipe> {
    let levels = LEVELS.into_iter().flat_map(|(coding, levels, densest)| {
        let levels = levels.iter().copied().chain([densest]);
        levels.map(move |level| Recipe::new(coding, level))
    });
    levels.collect()
}

impl Trial {
    /// Codes every sample.
    pub(super) fn of(recipe: Recipe, samples: &[Sample]) -> Result<Self, CodecError> {
        let mut trial = Self {
            coding: recipe.coding,
            level: recipe.effort,
            dense: LEVELS
                .iter()
                .any(|(coding, _, densest)| *coding == recipe.coding && *densest == recipe.effort),
            plain: 0,
            coded: 0,
            cpu: Duration::ZERO,
        };
        for sample in samples {
            let (coded, cpu) = code(recipe, sample)?;
            trial.plain += sample.bytes.len();
            trial.coded += coded;
            trial.cpu += cpu;
        }
        Ok(trial)
    }

    /// Coded bytes for a plain one.
    pub(super) fn ratio(&self) -> f64 {
        self.coded as f64 / self.plain as f64
    }

    /// The link below which the answer is there sooner coded; `None`: on none.
    pub(super) fn break_even(&self) -> Option<Link> {
        Link::break_even(self.plain.saturating_sub(self.coded), self.cpu)
    }

    /// Until the client has it over this link.
    pub(super) fn takes(&self, link: Link) -> Duration {
        self.cpu + link.carries(self.coded)
    }
}

/// Its size, and the median of what the runs cost.
fn code(recipe: Recipe, sample: &Sample) -> Result<(usize, Duration), CodecError> {
    let (mut runs, mut spent, mut coded) = (Vec::new(), Duration::ZERO, 0);
    while runs.is_empty() || (spent < ENOUGH && runs.len() < RUNS) {
        let clock = CpuClock::start();
        let bytes = codec::whole(
            recipe,
            std::slice::from_ref(&sample.bytes),
            sample.bytes.len(),
            0,
        )?;
        let cpu = clock.elapsed();
        coded = bytes.len();
        spent += cpu;
        runs.push(cpu);
    }
    runs.sort_unstable();
    Ok((coded, runs[runs.len() / 2]))
}
