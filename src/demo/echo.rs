//! `/upload` and `/headers`: what of a request reaches an application behind the proxy.

use bytes::Bytes;
use flate2::Crc;
use http::header::{AsHeaderName, CONTENT_ENCODING, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::answer::{Body, refuse, whole};

/// What arrived and how. The body is read to its end and not kept.
pub(super) async fn upload(request: Request<Incoming>) -> Response<Body> {
    let (parts, mut body) = request.into_parts();
    let request = Request::from_parts(parts, ());
    let mut crc = Crc::new();
    let (mut bytes, mut frames) = (0_u64, 0_u64);
    let mut trailers = HeaderMap::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return refuse(StatusCode::BAD_REQUEST, "The body broke off.\n");
        };
        match frame.into_data() {
            Ok(data) => {
                crc.update(&data);
                bytes += data.len() as u64;
                frames += 1;
            }
            Err(frame) => trailers = frame.into_trailers().unwrap_or_default(),
        }
    }
    let headers = request.headers();
    let mut report = describe(&request);
    report["content_encoding"] = field(headers, CONTENT_ENCODING);
    report["content_length"] = field(headers, CONTENT_LENGTH);
    report["transfer_encoding"] = field(headers, TRANSFER_ENCODING);
    report["bytes"] = bytes.into();
    report["frames"] = frames.into();
    report["crc32"] = format!("{:08x}", crc.sum()).into();
    report["trailers"] = lines(&trailers);
    pretty(&report)
}

/// The request line and the header lines, in order.
pub(super) fn headers<B>(request: &Request<B>) -> Response<Body> {
    pretty(&describe(request))
}

fn describe<B>(request: &Request<B>) -> Value {
    json!({
        "method": request.method().as_str(),
        "target": request.uri().to_string(),
        "version": format!("{:?}", request.version()),
        "headers": lines(request.headers()),
    })
}

/// Each field line as a pair of name and value.
fn lines(headers: &HeaderMap) -> Value {
    let pairs = headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        json!([name.as_str(), value])
    });
    pairs.collect()
}

/// All lines of a field as one value, or null.
fn field(headers: &HeaderMap, name: impl AsHeaderName) -> Value {
    let values = headers.get_all(name).into_iter();
    let values: Vec<_> = values
        .map(|value| String::from_utf8_lossy(value.as_bytes()))
        .collect();
    if values.is_empty() {
        Value::Null
    } else {
        values.join(", ").into()
    }
}

/// For people who look at it through curl.
fn pretty(report: &Value) -> Response<Body> {
    whole("application/json", Bytes::from(format!("{report:#}\n")))
}
