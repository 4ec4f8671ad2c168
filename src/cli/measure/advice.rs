//! Which codings and levels a policy should name, by what was measured.
//!
//! The measure is the time until the client has the answer: CPU time and the way over its link.

use std::fmt::Write as _;

use super::link::Link;
use super::trial::Trial;
use crate::codec::Coding;

/// The level of each coding that pays on the link, the best coding first; empty: none does.
pub(super) type Advice = Vec<(Coding, u8)>;

/// The best level of each coding; dense ones are not for answers that somebody waits for.
pub(super) fn of(trials: &[Trial], link: Link) -> Advice {
    let mut best: Vec<&Trial> = Vec::new();
    for trial in trials.iter().filter(|trial| !trial.dense) {
        let pays = trial
            .break_even()
            .is_some_and(|speed| speed.bits_per_second() > link.bits_per_second());
        if !pays {
            continue;
        }
        match best.iter_mut().find(|best| best.coding == trial.coding) {
            Some(before) if trial.takes(link) < before.takes(link) => *before = trial,
            Some(_) => {}
            None => best.push(trial),
        }
    }
    best.sort_by_key(|trial| trial.takes(link));
    best.iter()
        .map(|trial| (trial.coding, trial.level))
        .collect()
}

/// A policy to paste into the configuration.
pub(super) fn yaml(advice: &Advice) -> String {
    let mut yaml = String::from("defaults:\n  compress:\n");
    if advice.is_empty() {
        yaml.push_str("    enabled: false\n");
        return yaml;
    }
    let codings: Vec<_> = advice.iter().map(|(coding, _)| coding.token()).collect();
    let levels: Vec<_> = advice
        .iter()
        .map(|(coding, level)| format!("{coding}: {level}"))
        .collect();
    let _ = writeln!(yaml, "    encodings: [{}]", codings.join(", "));
    let _ = writeln!(yaml, "    levels: {{ {} }}", levels.join(", "));
    yaml
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::time::Duration;

    use super::*;

    fn trial(coding: Coding, level: u8, coded: usize, millis: u64) -> Trial {
        Trial {
            coding,
            level,
            dense: false,
            plain: 1_000_000,
            coded,
            cpu: Duration::from_millis(millis),
        }
    }

    fn trials() -> Vec<Trial> {
        vec![
            trial(Coding::Gzip, 1, 300_000, 3),
            trial(Coding::Gzip, 6, 200_000, 12),
            trial(Coding::Zstd, 1, 190_000, 2),
            Trial {
                dense: true,
                ..trial(Coding::Zstd, 19, 100_000, 4)
            },
        ]
    }

    #[test]
    fn slow_links_want_density_and_fast_ones_speed() {
        let slow = of(&trials(), "10mbit".parse().unwrap());
        assert_eq!(slow, [(Coding::Zstd, 1), (Coding::Gzip, 6)]);
        let fast = of(&trials(), "1gbit".parse().unwrap());
        assert_eq!(fast, [(Coding::Zstd, 1), (Coding::Gzip, 1)]);
    }

    #[test]
    fn what_does_not_pay_is_not_advised() {
        let faster = of(&trials(), "3gbit".parse().unwrap());
        assert_eq!(faster, [(Coding::Zstd, 1)]);
        assert!(of(&trials(), "10gbit".parse().unwrap()).is_empty());
        let noise = [trial(Coding::Gzip, 1, 1_000_100, 3)];
        let none = of(&noise, "1mbit".parse().unwrap());
        assert_eq!(yaml(&none), "defaults:\n  compress:\n    enabled: false\n");
    }
}
