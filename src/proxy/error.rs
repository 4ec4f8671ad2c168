//! The one place where a failure becomes an answer.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, Uri, header};

use super::facts::Client;
use super::snapshot::Shared;
use crate::body::{Body, EndedBy, Guarded, Ledger, Source};
use crate::protocol::{Failure, Kind, grpc};

/// What a client that finds no room is asked to wait, in seconds.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// A request that never became one: the gate refused its head.
pub struct RefusedHead {
    /// What it is answered with.
    pub status: StatusCode,
    /// The word it is counted under.
    pub word: &'static str,
    /// What is wrong with it.
    pub what: String,
    /// Its method, if legible.
    pub method: Option<String>,
    /// Its target, if legible.
    pub target: Option<String>,
    /// Its host, if legible.
    pub host: Option<String>,
}

/// Answers with what went wrong, in a short line of text.
pub(super) fn response(failure: &Failure, mut ledger: Box<Ledger>) -> Response<Body> {
    let status = failure.kind.status();
    ledger.status = status;
    ledger.coding = None;
    ledger.reason = "status";
    ledger.broken(failure.ended_by(), failure.describe());
    if let Some(dialect) = ledger.dialect
        && let Some(mut response) = grpc::refusal(dialect, failure)
    {
        ledger.status = response.status();
        let body = Guarded::new(Source::Empty, ledger, None, None);
        *response.body_mut() = Body::Guarded(Box::new(body));
        return response;
    }
    let text = text(status, failure.kind.sentence());
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(text.len()));
    match failure.kind {
        Kind::Unavailable(_) => {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        Kind::TooManyRequests(seconds) => {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        Kind::MethodNotAllowed => {
            let allow = "GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH";
            headers.insert(header::ALLOW, HeaderValue::from_static(allow));
        }
        Kind::WebSocketVersion => {
            headers.insert(
                header::SEC_WEBSOCKET_VERSION,
                HeaderValue::from_static("13"),
            );
            if ledger.protocol != "HTTP/2.0" {
                headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
                headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            }
        }
        _ => {}
    }
    // What is left of the request's body is not worth reading.
    if failure.ended_by() == EndedBy::Client
        && ledger.protocol != "HTTP/2.0"
        && closes(failure.kind)
    {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let source = if ledger.method == Method::HEAD {
        Source::Empty
    } else {
        Source::Ready(text)
    };
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

/// Answers a head that the gate refused; it leaves its record like any other.
pub fn refuse(shared: &Arc<Shared>, client: Client, refused: RefusedHead) -> Response<Body> {
    let method = refused
        .method
        .and_then(|method| Method::from_bytes(method.as_bytes()).ok());
    let target = refused.target.and_then(|target| target.parse::<Uri>().ok());
    let mut ledger = Ledger::open(
        shared.sink.clone(),
        Arc::clone(&shared.unrouted),
        method.unwrap_or_default(),
        target.unwrap_or_default(),
    );
    shared.metrics.refused(refused.word).inc();
    ledger.client = client.ip();
    ledger.host = refused.host.map(Into::into);
    ledger.status = refused.status;
    ledger.broken(EndedBy::Client, refused.what.as_str());
    let mut response = Response::new(Body::Empty);
    *response.status_mut() = refused.status;
    let text = text(refused.status, &refused.what);
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    let body = Guarded::new(Source::Ready(text), ledger, None, None);
    *response.body_mut() = Body::Guarded(Box::new(body));
    response
}
