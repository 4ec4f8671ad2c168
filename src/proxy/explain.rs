//! `Thinwire-Explain`: tells an operator's client on the answer itself why it looks as it does.
//!
//! The question never reaches an app, whoever asks it; the answer is for clients in
//! `admin.explain_to` alone, because it names servers and faults.
//!
//! The field is a dictionary (RFC 9651) under the names of the access log. What is only known at
//! the end of a stream is not in it: `pool_wait_ms` is what was waited before the head.

use std::fmt::Write as _;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Response};

use super::facts::Client;
use super::snapshot::Shared;
use crate::body::{Body, Ledger};
use crate::telemetry::CacheResult;

const FIELD: HeaderName = HeaderName::from_static("thinwire-explain");

/// Takes the question out of a request; whether it is to be answered.
pub(super) fn is_wanted(shared: &Shared, client: Client, headers: &mut HeaderMap) -> bool {
    let Some(asked) = headers.remove(FIELD) else {
        return false;
    };
    let admin = &shared.snapshot.load().settings.admin;
    let may_ask = client
        .ip()
        .is_some_and(|ip| admin.explain_to.iter().any(|net| net.contains(&ip)));
    may_ask && asked == "1"
}

/// Puts the explanation on an answer that has a record.
pub(super) fn explain(response: &mut Response<Body>) {
    let told = response.body().ledger().map(tell);
    if let Some(value) = told.and_then(|told| HeaderValue::try_from(told).ok()) {
        response.headers_mut().insert(FIELD, value);
    }
}

fn tell(ledger: &Ledger) -> String {
    let mut told = String::with_capacity(256);
    string(&mut told, "route", ledger.metrics.name());
    let coding = ledger.coding.map_or("identity", |coding| coding.token());
    token(&mut told, "coding", coding);
    if let (Some(_), Some(level)) = (ledger.coding, ledger.level) {
        token(&mut told, "level", level);
    }
    token(&mut told, "reason", ledger.reason);
    if let Some(why) = why(ledger.reason) {
        string(&mut told, "why", why);
    }
    let cache = ledger.cache.map_or("none", CacheResult::word);
    token(&mut told, "cache", cache);
    millis(&mut told, "pool_wait_ms", ledger.pool_waited());
    if let Some(server) = &ledger.server {
        string(&mut told, "upstream", server);
    }
    if let Some(took) = ledger.server_took {
        millis(&mut told, "upstream_ms", took);
    }
    if let Some(trace) = &ledger.trace {
        string(
            &mut told,
            "trace_id",
            &String::from_utf8_lossy(&trace.trace_id()),
        );
    }
    if let Some(error) = &ledger.error {
        string(&mut told, "error", error);
    }
    told
}

/// What a reason means, and which key of the configuration is behind it.
fn why(reason: &str) -> Option<&'static str> {
    Some(match reason {
        "compressed" => "the client takes this coding and the policy wants it",
        "min_size" => "the body is smaller than compress.min_size",
        "type" => "the media type is not among compress.types, or is among compress.except_types",
        "incompressible" => "the bytes look random, or the coded form was no smaller",
        "no_transform" => "Cache-Control: no-transform in the request or the answer",
        "already_coded" => "the app set a Content-Encoding itself",
        "not_accepted" => "the client takes none of compress.encodings, or likes plain as well",
        "disabled" => "compress.enabled is false here, or the app said so",
        "pressure" => "the pool is busy beyond pool.max_wait",
        "status" => "an answer of this status is never coded",
        "range" => "it is a part of something, or a question for one",
        "method" => "an answer to this method is never coded",
        "upgrade" => "the connection changed its protocol",
        "cross_site" => "a page of another site asks, and breach.cross_site is plain",
        "version" => {
            "HTTP/1.0 takes a coding only where the whole is known, and it was not in time"
        }
        _ => return None,
    })
}

fn key(told: &mut String, name: &str) {
    if !told.is_empty() {
        told.push_str(", ");
    }
    told.push_str(name);
    told.push('=');
}

fn token(told: &mut String, name: &str, value: impl std::fmt::Display) {
    key(told, name);
    let _ = write!(told, "{value}");
}

fn millis(told: &mut String, name: &str, value: Duration) {
    token(told, name, format_args!("{:.3}", value.as_secs_f64() * 1e3));
}

/// A string of RFC 9651 section 3.3.3 holds ASCII alone; the rest becomes `?`.
fn string(told: &mut String, name: &str, value: &str) {
    key(told, name);
    told.push('"');
    for char in value.chars() {
        match char {
            '"' | '\\' => told.extend(['\\', char]),
            ' '..='~' => told.push(char),
            _ => told.push('?'),
        }
    }
    told.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_quoted_stays_a_dictionary() {
        let mut told = String::new();
        string(&mut told, "route", "a \"b\" \\ \u{e9}\r\n");
        token(&mut told, "level", 4);
        millis(&mut told, "pool_wait_ms", Duration::from_micros(1_234));
        assert_eq!(
            told,
            r#"route="a \"b\" \\ ???", level=4, pool_wait_ms=1.234"#
        );
    }

    #[test]
    fn an_unknown_reason_is_left_without_a_sentence() {
        assert_eq!(why("new"), None);
    }
}
