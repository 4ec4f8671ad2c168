//! An exchange as a span: the proxy's own stay in the trace, parent of the app's.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};

use super::{attribute, nanos, now, text};
use crate::codec::Coding;
use crate::telemetry::Record;

/// `None`: it has no trace (refused before it had one), or its trace is not sampled.
pub(super) fn of(record: &Record<'_>) -> Option<Span> {
    let trace = record.trace?;
    if !trace.is_sampled() {
        return None;
    }
    let end = now();
    let is_failure = record.status >= 500 || record.ended_by.is_some();
    Some(Span {
        trace_id: bytes(&trace.trace_id()),
        span_id: bytes(&trace.span_id()),
        parent_span_id: trace.parent_id().map(|id| bytes(&id)).unwrap_or_default(),
        name: format!("{} {}", record.method, record.route),
        kind: SpanKind::Server.into(),
        start_time_unix_nano: end.saturating_sub(nanos(record.duration)),
        end_time_unix_nano: end,
        attributes: attributes(record),
        status: is_failure.then(|| Status {
            message: record.error.unwrap_or_default().to_owned(),
            code: StatusCode::Error.into(),
        }),
        ..Span::default()
    })
}

/// HTTP's by the semantic conventions, ours under the access log's names.
fn attributes(record: &Record<'_>) -> Vec<opentelemetry_proto::tonic::common::v1::KeyValue> {
    let count = |value: u64| Value::IntValue(i64::try_from(value).unwrap_or(i64::MAX));
    let (path, query) = record.path.split_once('?').unwrap_or((record.path, ""));
    let coding = record.coding.map_or("identity", Coding::token);
    let version = record.protocol.trim_start_matches("HTTP/");
    let mut attributes = vec![
        text("http.request.method", record.method),
        text("server.address", record.host),
        text("url.path", path),
        text("network.protocol.version", version.trim_end_matches(".0")),
        attribute("http.response.status_code", count(record.status.into())),
        text("thinwire.route", record.route),
        text("thinwire.coding", coding),
        text("thinwire.reason", record.reason),
        attribute("thinwire.bytes_before", count(record.bytes_before)),
        attribute("thinwire.bytes_after", count(record.bytes_after)),
        millis("thinwire.pool_wait_ms", record.pool_waited),
    ];
    if !query.is_empty() {
        attributes.push(text("url.query", query));
    }
    if let Some(client) = record.client {
        attributes.push(text("client.address", &client.to_string()));
    }
    if let Some(took) = record.upstream_took {
        attributes.push(millis("thinwire.upstream_ms", took));
    }
    for (key, value) in [
        ("thinwire.cache", record.cache),
        ("thinwire.upstream", record.upstream),
        ("thinwire.ended_by", record.ended_by),
    ] {
        attributes.extend(value.map(|value| text(key, value)));
    }
    attributes
}

fn millis(
    key: &str,
    time: std::time::Duration,
) -> opentelemetry_proto::tonic::common::v1::KeyValue {
    attribute(key, Value::DoubleValue(time.as_secs_f64() * 1e3))
}

/// Ids are bytes there.
fn bytes(hex: &[u8]) -> Vec<u8> {
    let nibble = |digit: u8| (digit as char).to_digit(16).unwrap_or(0) as u8;
    hex.chunks_exact(2)
        .map(|pair| nibble(pair[0]) << 4 | nibble(pair[1]))
        .collect()
}
