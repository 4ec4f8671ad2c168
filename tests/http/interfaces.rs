//! The tables that operators hold on to, row by row, against a running proxy.
//!
//! `tests/fixtures/interfaces.md` is the contract's own text: a row that is added there is asked for
//! here.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Origin, Proxy, Reply, Setup, big, noise};

const CONTRACT: &str = include_str!("../fixtures/interfaces.md");

/// One metric of the table.
#[derive(Debug)]
struct Row {
    name: String,
    kind: String,
    /// With the words that each may take; none: any.
    labels: BTreeMap<String, BTreeSet<String>>,
}

/// Every row; a cell may name two metrics.
fn rows() -> Vec<Row> {
    let lines = CONTRACT
        .lines()
        .filter(|line| line.starts_with("| thinwire_"));
    let rows = lines.flat_map(|line| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [names, kind, labels] = cells[..] else {
            panic!("three cells: {line}");
        };
        let row = |name: &str| Row {
            name: name.trim().to_owned(),
            kind: kind.to_owned(),
            labels: labels_of(labels),
        };
        names.split(',').map(row).collect::<Vec<_>>()
    });
    rows.collect()
}

/// `route (remark), kind (one, other): remark`.
fn labels_of(cell: &str) -> BTreeMap<String, BTreeSet<String>> {
    let cell = cell.split(':').next().unwrap_or_default();
    let mut labels = BTreeMap::new();
    let mut rest = cell.trim();
    while !rest.is_empty() && rest != "-" {
        let ends = rest.find([',', '(']).unwrap_or(rest.len());
        let name = rest[..ends].trim().to_owned();
        let mut words = BTreeSet::new();
        rest = &rest[ends..];
        if let Some(inside) = rest.strip_prefix('(') {
            let (listed, after) = inside.split_once(')').expect("a closing bracket");
            if listed.contains(',') {
                words = listed
                    .split(',')
                    .map(|word| word.trim().to_owned())
                    .collect();
            }
            rest = after;
        }
        labels.insert(name, words);
        rest = rest.trim_start_matches(',').trim_start();
    }
    labels
}

/// The samples of a metric, as label names and values.
fn samples(text: &str, row: &Row) -> Vec<BTreeMap<String, String>> {
    let name = match row.kind.as_str() {
        "histogram" => format!("{}_count", row.name),
        _ => row.name.clone(),
    };
    let mut found = Vec::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix(&name) else {
            continue;
        };
        let inside = match rest.split_once('}') {
            Some((inside, _)) if rest.starts_with('{') => &inside[1..],
            _ if rest.starts_with(' ') => "",
            _ => continue,
        };
        let pairs = inside.split(',').filter(|pair| !pair.is_empty());
        let pair = |pair: &str| {
            let (label, value) = pair.split_once('=').expect("label=\"value\"");
            (label.to_owned(), value.trim_matches('"').to_owned())
        };
        found.push(pairs.map(pair).collect());
    }
    found
}

/// What an app does that the proxy counts in every row of HTTP's.
fn app() -> Origin {
    Origin::start(|call| {
        let json = ("Content-Type", "application/json");
        match call.path() {
            "/kept" => call.answer(200, &[json, ("Cache-Control", "max-age=60")], &big()),
            "/noise" => call.answer(200, &[json], &noise(65536)),
            "/coded" => call.answer(200, &[json, ("Content-Encoding", "br")], b"br"),
            "/small" => call.answer(200, &[json], b"{}"),
            _ => call.answer(200, &[json], &big()),
        }
    })
}

/// A proxy that has seen some of everything that HTTP has.
fn driven(app: &Origin) -> Proxy {
    let proxy = Setup::before(app)
        .route("cache: { enabled: true }")
        .top("pool: { inline: 0B }")
        .start();
    let asked = |target: &str, coding: &str| -> Reply {
        proxy
            .get(target, &[("Accept-Encoding", coding)])
            .expect(200)
    };
    for target in ["/kept", "/kept", "/noise", "/coded", "/small", "/"] {
        asked(target, "gzip");
        asked(target, "");
    }
    // Popular enough to be made denser.
    for _ in 0..40 {
        asked("/kept", "br");
    }
    proxy.until(
        "thinwire_codec_seconds_total",
        &[("kind", "cache")],
        |spent| spent > 0.0,
    );
    proxy
}

/// Counted by the tests of their protocols: `grpc`, `websocket`.
fn is_of_another_protocol(row: &Row) -> bool {
    row.name.starts_with("thinwire_grpc_") || row.name.starts_with("thinwire_websocket_")
}

#[test]
fn every_metric_of_the_table_is_there_with_its_kind_and_labels() {
    let app = app();
    let proxy = driven(&app);
    let text = proxy.admin("/metrics").expect(200).text();
    let rows = rows();
    assert_eq!(rows.len(), 17, "{rows:?}");
    for row in rows.iter().filter(|row| !is_of_another_protocol(row)) {
        let typed = format!("# TYPE {} {}", row.name, row.kind);
        assert!(text.contains(&typed), "{typed}");
        let samples = samples(&text, row);
        assert!(!samples.is_empty(), "{} has no sample", row.name);
        for sample in &samples {
            let names: Vec<_> = sample.keys().collect();
            assert_eq!(names, row.labels.keys().collect::<Vec<_>>(), "{}", row.name);
            for (label, value) in sample {
                let words = &row.labels[label];
                assert!(
                    words.is_empty() || words.contains(value),
                    "{}: {label}={value:?} is none of {words:?}",
                    row.name
                );
            }
        }
    }
}

#[test]
fn every_reason_that_is_counted_is_a_word_of_the_contract() {
    let (_, listed) = CONTRACT.split_once("`reason`: ").expect("the list");
    let (listed, _) = listed.split_once(';').expect("its end");
    let words: BTreeSet<_> = listed.split(',').map(str::trim).collect();
    let app = app();
    let proxy = driven(&app);
    let text = proxy.admin("/metrics").expect(200).text();
    let all = rows();
    let responses = all
        .iter()
        .find(|row| row.name == "thinwire_responses_total")
        .expect("a row");
    let seen: BTreeSet<_> = samples(&text, responses)
        .into_iter()
        .map(|labels| labels["reason"].clone())
        .collect();
    for reason in &seen {
        assert!(words.contains(reason.as_str()), "{reason}: {words:?}");
    }
    for reason in [
        "compressed",
        "min_size",
        "incompressible",
        "already_coded",
        "not_accepted",
    ] {
        assert!(seen.contains(reason), "{reason}: {seen:?}");
    }
}

#[test]
fn every_field_of_the_access_log_is_there() {
    let (_, listed) = CONTRACT.split_once("at least: ").expect("the list");
    let (listed, _) = listed.split_once(". WebSocket").expect("its end");
    let flat = listed
        .replace(['\n'], " ")
        .replace("(client, upstream, proxy)", "");
    let fields: Vec<_> = flat.split(',').map(str::trim).collect();
    assert_eq!(fields.len(), 19, "{fields:?}");
    let app = app();
    let proxy = driven(&app);
    for path in ["/kept", "/noise", "/small"] {
        let line = proxy.access(path);
        for field in &fields {
            assert!(line.get(*field).is_some(), "{field}: {line}");
        }
    }
}

#[test]
fn codec_seconds_are_the_threads_cpu_time_and_not_more_than_the_process_has_used() {
    let app = app();
    let mut proxy = driven(&app);
    let before = proxy.metrics().sum("thinwire_codec_seconds_total", &[]);
    // A client that does not read holds its encoder for a long time, and costs nothing by that.
    let mut idle = proxy.conn();
    idle.request("GET", "/", &[("Accept-Encoding", "zstd")], b"");
    idle.reply().expect(200);
    let metrics = proxy.metrics();
    for kind in ["http", "cache"] {
        let spent = metrics.sum("thinwire_codec_seconds_total", &[("kind", kind)]);
        assert!(spent > 0.0, "{kind}");
    }
    let spent = metrics.sum("thinwire_codec_seconds_total", &[]);
    assert!(spent >= before);
    // Ticks are hundredths of a second.
    let used = (proxy.process().cpu_ticks() + 2) as f64 / 100.0;
    assert!(spent <= used, "{spent} s of codecs in {used} s of CPU time");
}

#[test]
fn bytes_before_and_after_are_those_of_the_log() {
    let app = app();
    let proxy = Proxy::with(&app, "cache: { enabled: true }");
    let mut after = 0;
    for target in ["/kept", "/kept", "/small"] {
        let reply = proxy.get(target, &[("Accept-Encoding", "gzip")]);
        after += reply.body.len();
    }
    let labels = [("route", "everything")];
    let before = 2 * big().len() + 2;
    proxy.until("thinwire_bytes_before_total", &labels, |sum| {
        sum == before as f64
    });
    proxy.until("thinwire_bytes_after_total", &labels, |sum| {
        sum == after as f64
    });
}
