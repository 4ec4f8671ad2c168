//! `thinwire measure`: what codings and levels cost on a body, and which policy fits.

use std::process::Output;

use serde_json::Value;

use crate::support::{Demo, Origin, Setup, folder, json_of, noise, thinwire};

fn file(name: &str, bytes: &[u8]) -> String {
    let file = folder("measure").join(name);
    std::fs::write(&file, bytes).unwrap();
    file.display().to_string()
}

fn out(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn measured(arguments: &[&str]) -> Value {
    let output = thinwire(&[&["measure", "--json"], arguments].concat());
    serde_json::from_str(&out(&output)).expect("JSON")
}

#[test]
fn a_file_s_table_ends_with_a_policy_that_check_accepts() {
    let body = file("users.json", &json_of(50_000));
    let output = thinwire(&["measure", &body]);
    let table = out(&output);
    for words in ["coding", "level", "CPU ms", "bytes", "ratio", "pays below"] {
        assert!(table.contains(words), "{words}: {table}");
    }
    for coding in ["zstd", "br", "gzip"] {
        assert!(
            table.lines().any(|line| line.starts_with(coding)),
            "{table}"
        );
    }
    let (_, policy) = table.split_once("defaults:").expect("a policy");
    let yaml = Setup::before(&Demo).yaml() + "defaults:" + policy;
    let config = file("config.yaml", yaml.as_bytes());
    let checked = thinwire(&["check", "--config", &config]);
    let faults = String::from_utf8_lossy(&checked.stderr);
    assert_eq!(checked.status.code(), Some(0), "{faults}\n{yaml}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.lines().count() >= 10 && !said.contains('\r'),
        "plain lines: {said}"
    );
}

#[test]
fn json_says_for_each_trial_what_it_cost_and_when_it_pays() {
    let plain = json_of(50_000);
    let report = measured(&[&file("users.json", &plain)]);
    assert_eq!(report["link"], 1e8);
    assert_eq!(report["samples"][0]["bytes"], plain.len());
    let trials = report["trials"].as_array().expect("trials");
    assert!(trials.len() >= 12);
    for trial in trials {
        let number = |key: &str| {
            trial[key]
                .as_f64()
                .unwrap_or_else(|| panic!("{key}: {trial}"))
        };
        assert_eq!(number("bytes_before"), plain.len() as f64);
        let ratio = number("bytes") / number("bytes_before");
        assert!((number("ratio") / ratio - 1.0).abs() < 1e-6, "{trial}");
        assert!(number("ratio") < 0.6, "{trial}");
        let pays = (number("bytes_before") - number("bytes")) * 8e3 / number("cpu_ms");
        assert!((number("pays_below") / pays - 1.0).abs() < 1e-6, "{trial}");
    }
    let codings = &report["policy"]["defaults"]["compress"]["encodings"];
    assert!(
        codings
            .as_array()
            .is_some_and(|codings| !codings.is_empty())
    );
}

#[test]
fn a_slow_link_and_random_bytes_are_taken_into_account() {
    let report = measured(&["--link", "56kbit", &file("noise.bin", &noise(40_000))]);
    assert_eq!(report["link"], 56e3);
    let enabled = &report["policy"]["defaults"]["compress"]["enabled"];
    assert_eq!(*enabled, false, "nothing pays");
    let fast = measured(&["--link", "900gbit", &file("users.json", &json_of(50_000))]);
    assert_eq!(fast["policy"]["defaults"]["compress"]["enabled"], false);
}

#[test]
fn a_url_is_asked_for_its_plain_bytes() {
    let plain = json_of(20_000);
    let app = Origin::json(plain.clone());
    let url = format!("{}/users?id=1", app.server());
    let other = file("other.json", &json_of(10_000));
    let report = measured(&[&url, &other]);
    assert_eq!(report["samples"][0]["name"], url.as_str());
    assert_eq!(report["samples"][0]["bytes"], plain.len());
    assert_eq!(report["samples"].as_array().map(Vec::len), Some(2));
    let sent = &app.requests()[0].head;
    assert_eq!(sent.field("accept-encoding"), Some("identity"));
}

#[test]
fn what_cannot_be_measured_is_exit_1_and_what_is_no_speed_is_exit_2() {
    let missing = folder("measure").join("none");
    let missing = missing.display().to_string();
    let empty = file("empty", b"");
    let app = Origin::answer(404, &[], "no");
    let refused = format!("{}/x", app.server());
    for (target, word) in [
        (&missing, "No such file"),
        (&empty, "empty"),
        (&refused, "404"),
    ] {
        let output = thinwire(&["measure", target]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains(word) && said.contains(target.as_str()),
            "{said}"
        );
    }
    let output = thinwire(&["measure", "--link", "fast", &empty]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(thinwire(&["measure"]).status.code(), Some(2));
}

/// A JSON line a tick.
fn ticks(count: usize) -> Vec<u8> {
    let mut dice = fastrand::Rng::with_seed(3);
    let line = |number| {
        let (bid, size) = (dice.u32(1_000..2_000), dice.u32(1..500));
        let quote =
            format!(r#"{{"type":"tick","venue":"XNAS","state":"open","bid":{bid},"size":{size}}}"#);
        format!(r#"{{"seq":{number},"quotes":[{quote},{quote},{quote}]}}"#) + "\n"
    };
    (0..count).map(line).collect::<String>().into_bytes()
}

#[test]
fn websocket_messages_are_measured_by_takeover_and_window() {
    let report = measured(&["--websocket", &file("ticks.jsonl", &ticks(300))]);
    assert_eq!(report["messages"], 300);
    let trials = report["trials"].as_array().expect("trials");
    assert_eq!(trials.len(), 14);
    let ratio = |takeover: bool, bits: u64| {
        let found = trials
            .iter()
            .find(|trial| trial["context_takeover"] == takeover && trial["window_bits"] == bits);
        found
            .and_then(|trial| trial["ratio"].as_f64())
            .expect("a trial")
    };
    assert!(ratio(true, 12) < ratio(false, 12), "history helps");
    assert!(ratio(true, 15) <= ratio(true, 9));
    assert!(
        trials
            .iter()
            .all(|trial| trial["us_a_message"].as_f64() > Some(0.0))
    );
    let held = |trial: &Value| trial["bytes_a_connection"].as_u64().expect("bytes");
    assert!(trials.iter().all(|trial| held(trial) <= 8 << 10));
    let policy = &report["policy"]["defaults"]["websocket"];
    assert_eq!(policy["context_takeover"], true);
    // A JSON string stands for what is in it.
    let strings = measured(&["--websocket", &file("strings.jsonl", b"\"a\\nb\"\n\n[1]\n")]);
    assert_eq!(
        (&strings["messages"], &strings["trials"][0]["bytes_before"]),
        (&2.into(), &6.into())
    );
    assert_eq!(
        strings["policy"]["defaults"]["websocket"]["compress"],
        false
    );
}

#[test]
fn grpc_messages_are_measured_as_calls_treat_them() {
    let messages = [json_of(20_000), json_of(300), noise(20_000)];
    let framed: Vec<u8> = messages
        .iter()
        .flat_map(|message| crate::support::grpc::message(0, message))
        .collect();
    let plain = messages.iter().map(Vec::len).sum::<usize>();
    let last = format!("at byte {}", framed.len() - messages[2].len() - 5);
    let report = measured(&["--grpc", &file("calls.bin", &framed)]);
    assert_eq!(report["messages"], 3);
    for trial in report["trials"].as_array().expect("trials") {
        assert_eq!(trial["compressed"], 1, "the long one that shrinks: {trial}");
        assert_eq!(trial["bytes_before"], plain);
        assert!(trial["bytes"].as_u64() > Some(20_300), "{trial}");
    }
    let policy = &report["policy"]["defaults"]["grpc"]["encodings"];
    assert!(policy.as_array().is_some_and(|codings| codings.len() == 1));
    for (content, word) in [
        (&framed[..framed.len() - 1], &*last),
        (&[1, 0, 0, 0, 1, 7][..], "flags 0x01"),
        (&[0, 0, 0, 0, 0][..], "empty"),
    ] {
        let output = thinwire(&["measure", "--grpc", &file("bad.bin", content)]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains(word), "{said}");
    }
    assert_eq!(thinwire(&["measure"]).status.code(), Some(2));
}
