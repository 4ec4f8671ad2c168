//! The report on messages: for people, and for scripts.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::messages::{Tried, Way};

/// A policy gives up so much of the best ratio for less memory or CPU, at most.
const GOOD_ENOUGH: f64 = 1.05;

/// The table, then the policy.
pub(super) fn text(name: &str, messages: usize, tried: &[Tried]) -> String {
    let plain = tried.first().map_or(0, |tried| tried.plain);
    let mut text = format!("{name}: {messages} messages, {plain} bytes\n\n");
    let calls = tried
        .iter()
        .any(|tried| matches!(tried.way, Way::Grpc { .. }));
    text.push_str(if calls {
        "coding  level   compressed        bytes    ratio   us a message\n"
    } else {
        "takeover  bits   compressed        bytes    ratio   us a message   KiB a connection\n"
    });
    for tried in tried {
        let (compressed, sent, ratio) = (tried.compressed, tried.sent, tried.ratio() * 100.0);
        let each = tried.each.as_secs_f64() * 1e6;
        let _ = match tried.way {
            Way::Grpc { coding, level } => writeln!(
                text,
                "{:<7} {level:>5} {compressed:>12} {sent:>12} {ratio:>6.1} % {each:>14.1}",
                coding.token()
            ),
            Way::WebSocket { takeover, bits } => {
                let (takeover, kib) = (on(takeover), tried.held as f64 / 1024.0);
                writeln!(
                    text,
                    "{takeover:<8} {bits:>5} {compressed:>12} {sent:>12} {ratio:>6.1} % {each:>14.1} {kib:>18.1}"
                )
            }
        };
    }
    let _ = writeln!(text, "\n# By bytes, memory and CPU time on these messages:");
    text.push_str(&yaml(tried));
    text
}

fn on(takeover: bool) -> &'static str {
    if takeover { "on" } else { "off" }
}

/// The same as one object; times in microseconds of CPU, sizes in bytes.
pub(super) fn json(name: &str, messages: usize, tried: &[Tried]) -> Value {
    let trials: Vec<_> = tried
        .iter()
        .map(|tried| {
            let mut trial = json!({
                "bytes_before": tried.plain,
                "bytes": tried.sent,
                "ratio": tried.ratio(),
                "compressed": tried.compressed,
                "us_a_message": tried.each.as_secs_f64() * 1e6,
            });
            match tried.way {
                Way::Grpc { coding, level } => {
                    trial["coding"] = coding.token().into();
                    trial["level"] = level.into();
                }
                Way::WebSocket { takeover, bits } => {
                    trial["context_takeover"] = takeover.into();
                    trial["window_bits"] = bits.into();
                    trial["bytes_a_connection"] = tried.held.into();
                }
            }
            trial
        })
        .collect();
    json!({ "name": name, "messages": messages, "trials": trials, "policy": policy(tried) })
}

/// The way to recommend: the smallest, or one that is nearly as small and cheaper. None: nothing
/// shrinks.
fn best(tried: &[Tried]) -> Option<&Tried> {
    let least = tried.iter().map(|tried| tried.sent).min()?;
    let most = (least as f64 * GOOD_ENOUGH) as usize;
    let good = tried
        .iter()
        .filter(|tried| tried.sent <= most && tried.sent < tried.plain);
    good.min_by_key(|tried| (tried.held, tried.each))
}

fn policy(tried: &[Tried]) -> Value {
    let calls = tried
        .iter()
        .any(|tried| matches!(tried.way, Way::Grpc { .. }));
    let section = if calls { "grpc" } else { "websocket" };
    let keys = match best(tried).map(|tried| tried.way) {
        None => json!({ "compress": false }),
        Some(Way::WebSocket { takeover, bits }) => {
            json!({ "context_takeover": takeover, "window_bits": bits })
        }
        Some(Way::Grpc { coding, level }) => {
            json!({ "encodings": [coding.token()], "levels": { coding.token(): level } })
        }
    };
    json!({ "defaults": { section: keys } })
}

fn yaml(tried: &[Tried]) -> String {
    match best(tried).map(|tried| tried.way) {
        Some(Way::WebSocket { takeover, bits }) => format!(
            "defaults:\n  websocket: {{ context_takeover: {takeover}, window_bits: {bits} }}\n"
        ),
        Some(Way::Grpc { coding, level }) => {
            let coding = coding.token();
            format!(
                "defaults:\n  grpc: {{ encodings: [{coding}], levels: {{ {coding}: {level} }} }}\n"
            )
        }
        None => {
            let calls = tried
                .iter()
                .any(|tried| matches!(tried.way, Way::Grpc { .. }));
            let section = if calls { "grpc" } else { "websocket" };
            format!("defaults:\n  {section}: {{ compress: false }}\n")
        }
    }
}
