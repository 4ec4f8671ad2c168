#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::telemetry::{
    CacheResult, Direction, Extension, Form, Kind, SharedOperation, SharedOutcome,
};

const TABLE: &str = include_str!("../../tests/fixtures/metrics.txt");

/// Counts in every family once.
fn touched() -> Metrics {
    let metrics = Metrics::new();
    let route = metrics.route("api");
    drop(route.begin());
    route.response(
        200,
        Some(Coding::Gzip),
        "compressed",
        Duration::from_millis(3),
    );
    route.encode_run(Kind::Http, Coding::Gzip);
    route.encoded(
        Kind::Http,
        Coding::Gzip,
        1000,
        100,
        Duration::from_micros(250),
    );
    route.app_compressed(Kind::Grpc);
    route.cache(CacheResult::Hit);
    route.websocket_connections(Extension::Deflate).inc();
    route
        .websocket_messages(Direction::ToClient, Form::Deflated)
        .inc();
    route.grpc_message(Direction::ToApp, Form::Recoded);
    metrics.pool().wait_short.observe(0.001);
    metrics
        .server("app", "http://127.0.0.1:8000")
        .answered
        .inc();
    metrics.cache_bytes(None).set(4096);
    metrics
        .shared_cache()
        .count(SharedOperation::Find, SharedOutcome::Hit);
    metrics.refused("head").inc();
    metrics
}

/// The label names of all samples of `name`, without `le`.
fn labels(text: &str, name: &str) -> BTreeSet<String> {
    let samples = text.lines().filter(|line| {
        let rest = line.strip_prefix(name).unwrap_or("");
        ["{", " ", "_bucket{", "_sum", "_count"]
            .iter()
            .any(|next| rest.starts_with(next))
    });
    let label = regex_lite::Regex::new(r#"[{,]([a-z_]+)=""#).unwrap();
    samples
        .flat_map(|line| label.captures_iter(line).map(|found| found[1].to_owned()))
        .filter(|label| label != "le")
        .collect()
}

#[test]
fn every_row_of_the_table_is_there_by_name_kind_and_labels() {
    let metrics = touched();
    let _server = metrics.server("app", "http://127.0.0.1:8000");
    let text = metrics.encode();
    let mut names = BTreeSet::new();
    for row in TABLE.lines().filter(|row| !row.starts_with('#')) {
        let [name, kind, wanted] = row.split(' ').collect::<Vec<_>>()[..] else {
            panic!("a row of three columns: {row}");
        };
        names.insert(name);
        assert!(
            text.contains(&format!("# TYPE {name} {kind}\n")),
            "{row} in\n{text}"
        );
        let wanted = wanted
            .split(',')
            .filter(|label| *label != "-")
            .map(str::to_owned);
        assert_eq!(
            labels(&text, name),
            wanted.collect(),
            "labels of {name} in\n{text}"
        );
    }
    let typed = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    assert_eq!(
        typed.collect::<BTreeSet<_>>(),
        names,
        "nothing beside the table"
    );
}

#[test]
fn numbers_arrive_where_they_belong() {
    let text = touched().encode();
    for sample in [
        "thinwire_responses_total{route=\"api\",status=\"200\",coding=\"gzip\",reason=\"compressed\"} 1",
        "thinwire_response_seconds_count{route=\"api\"} 1",
        "thinwire_encodes_total{route=\"api\",kind=\"http\",coding=\"gzip\"} 1",
        "thinwire_codec_seconds_total{route=\"api\",kind=\"http\",coding=\"gzip\"} 0.00025",
        "thinwire_plain_bytes_total{route=\"api\",kind=\"http\",coding=\"gzip\"} 1000",
        "thinwire_coded_bytes_total{route=\"api\",kind=\"http\",coding=\"gzip\"} 100",
        "thinwire_pool_jobs{state=\"waiting\"} 0",
        "thinwire_cache_bytes{coding=\"identity\"} 4096",
        "thinwire_requests_in_flight{route=\"api\"} 0",
        "thinwire_refused_total{reason=\"head\"} 1",
    ] {
        assert!(
            text.lines().any(|line| line == sample),
            "{sample} in\n{text}"
        );
    }
}

#[test]
fn a_reload_goes_on_counting_where_it_was() {
    let metrics = Metrics::new();
    let before = metrics.route("api");
    assert!(Arc::ptr_eq(&before, &metrics.route("api")));
    assert!(!Arc::ptr_eq(&before, &metrics.route("-")));
    let clone = metrics.clone();
    drop(metrics);
    assert!(Arc::ptr_eq(&before, &clone.route("api")));
}

#[test]
fn a_route_named_to_break_the_format_does_not() {
    let metrics = Metrics::new();
    metrics
        .route("a\"}\nevil 1\\")
        .response(200, None, "type", Duration::ZERO);
    let text = metrics.encode();
    assert!(!text.lines().any(|line| line.starts_with("evil")), "{text}");
    assert!(text.contains(r#"route="a\"}\nevil 1\\""#), "{text}");
}
