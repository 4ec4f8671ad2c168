//! The report: for people, and for scripts.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::advice::{self, Advice};
use super::link::Link;
use super::sample::Sample;
use super::trial::Trial;

/// The table, then the policy.
pub(super) fn text(samples: &[Sample], trials: &[Trial], advice: &Advice, link: Link) -> String {
    let mut text = String::new();
    for sample in samples {
        let cut = if sample.cut { " (its beginning)" } else { "" };
        let _ = writeln!(text, "{}: {} bytes{cut}", sample.name, sample.bytes.len());
    }
    let _ = writeln!(
        text,
        "\n{:<6} {:>5} {:>12} {:>12} {:>8}   pays below",
        "coding", "level", "CPU ms", "bytes", "ratio"
    );
    for trial in trials {
        let pays = trial
            .break_even()
            .map_or_else(|| "never".to_owned(), |speed| speed.to_string());
        let dense = if trial.dense { "  (kept copies)" } else { "" };
        let _ = writeln!(
            text,
            "{:<6} {:>5} {:>12.3} {:>12} {:>6.1} %   {pays}{dense}",
            trial.coding.token(),
            trial.level,
            trial.cpu.as_secs_f64() * 1e3,
            trial.coded,
            trial.ratio() * 100.0,
        );
    }
    let _ = writeln!(
        text,
        "\n# Soonest at the client over {link}, by CPU time and bytes on {}:",
        if samples.len() == 1 {
            "this body"
        } else {
            "these bodies"
        }
    );
    text.push_str(&advice::yaml(advice));
    text
}

/// The same as one object; speeds in bits a second, `ratio` coded bytes for a plain one.
pub(super) fn json(samples: &[Sample], trials: &[Trial], advice: &Advice, link: Link) -> Value {
    let samples: Vec<_> = samples
        .iter()
        .map(
            |sample| json!({ "name": sample.name, "bytes": sample.bytes.len(), "cut": sample.cut }),
        )
        .collect();
    let trials: Vec<_> = trials
        .iter()
        .map(|trial| {
            json!({
                "coding": trial.coding.token(),
                "level": trial.level,
                "cpu_ms": trial.cpu.as_secs_f64() * 1e3,
                "bytes_before": trial.plain,
                "bytes": trial.coded,
                "ratio": trial.ratio(),
                "pays_below": trial.break_even().map(Link::bits_per_second),
                "dense": trial.dense,
            })
        })
        .collect();
    let codings: Vec<_> = advice.iter().map(|(coding, _)| coding.token()).collect();
    let levels = advice
        .iter()
        .map(|(coding, level)| (coding.token().to_owned(), json!(level)));
    let compress = if advice.is_empty() {
        json!({ "enabled": false })
    } else {
        json!({ "encodings": codings, "levels": Value::Object(levels.collect()) })
    };
    json!({
        "link": link.bits_per_second(),
        "samples": samples,
        "trials": trials,
        "policy": { "defaults": { "compress": compress } },
    })
}
