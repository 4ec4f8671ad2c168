//! The one place where a failure becomes an answer.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, Uri, header};

use super::facts::Client;
use super::snapshot::Shared;
use crate::body::{Body, EndedBy, Guarded, Ledger, Source};
use crate::protocol::{Failure, Kind};

/// What a client that finds no room is asked to wait, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// A request that never became one: it was refused before a route was known.
pub struct RefusedHead<'a> {
    /// What it is answered with.
    pub status: StatusCode,
    /// What is wrong with it.
    pub what: &'a str,
    /// Its method, if legible.
    pub method: Option<&'a str>,
    /// Its target, if legible.
    pub target: Option<&'a str>,
    /// Its host, if legible.
    pub host: Option<&'a str>,
}

/// Answers with what went wrong, in a short line of text.
pub(super) fn response(failure: &Failure, mut ledger: Box<Ledger>) -> Response<Body> {
    let status = failure.kind.status();
    ledger.status = status;
    ledger.coding = None;
    ledger.reason = "status";
    ledger.broken(failure.ended_by(), failure.describe());
    let text = text(status, failure.kind.sentence());
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(text.len()));
    match failure.kind {
        Kind::Unavailable(_) => {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        Kind::MethodNotAllowed => {
            let allow = "GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH";
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        _ => {}
    }
    // What is left of the request's body is not worth reading.
    if failure.ended_by() == EndedBy::Client && ledger.protocol != "HTTP/2.0" && closes(failure.kind) {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let source = if ledger.method == Method::HEAD { Source::Empty } else { Source::Ready(text) };
    *response.body_mut() = Body::Guarded(Box::new(Guarded::new(source, ledger, None, None)));
    response
}

fn closes(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::BadRequest(_) | Kind::SlowBody | Kind::TooLarge | Kind::HeadTooLarge | Kind::Gone
    )
}

fn text(status: StatusCode, sentence: &str) -> Bytes {
    let reason = status.canonical_reason().unwrap_or("");
    Bytes::from(format!("{} {reason}: {sentence}\n", status.as_u16()))
}

/// The whole answer, as bytes, to a head that hyper never saw; it leaves its record here.
pub fn refusal(shared: &Arc<Shared>, client: Client, refused: &RefusedHead<'_>) -> Bytes {
    let method = refused.method.and_then(|method| Method::from_bytes(method.as_bytes()).ok());
    let target = refused.target.and_then(|target| target.parse::<Uri>().ok());
    let mut ledger = Ledger::open(
        shared.sink.clone(),
        Arc::clone(&shared.unrouted),
        method.unwrap_or_default(),
        target.unwrap_or_default(),
    );
    ledger.client = client.ip();
    ledger.host = refused.host.map(Into::into);
    ledger.status = refused.status;
    ledger.broken(EndedBy::Client, refused.what);
    let body = text(refused.status, refused.what);
    ledger.sent(body.len());
    let mut head = String::with_capacity(256);
    let _ = write!(
        head,
        "HTTP/1.1 {} {}\r\ndate: {}\r\ncontent-type: text/plain; charset=utf-8\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        refused.status.as_u16(),
        refused.status.canonical_reason().unwrap_or(""),
        httpdate::fmt_http_date(SystemTime::now()),
        body.len(),
    );
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&body);
    Bytes::from(bytes)
}
