//! Active checks: each server is asked from time to time whether it is well.
//!
//! A check goes the way of a request (address, PROXY header, TLS, protocol) on a connection of its
//! own, which no request uses and `max_connections` does not count. It ends with its upstream.

use std::sync::Weak;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Upstream;
use super::connect::{Ends, held_to_grammar};
use super::endpoint::Endpoint;
use super::error::ConnectError;
use super::gate::Gate;
use super::io::Io;
use crate::config::settings::{Health, HealthCheck, UpstreamProtocol};

/// What is read of an answer; a `HealthCheckResponse` has two bytes.
const MOST: usize = 4 << 10;

/// `grpc.health.v1.HealthCheckResponse.ServingStatus.SERVING`.
const SERVING: u64 = 1;

/// Why a server is taken for ill.
#[derive(Debug, thiserror::Error)]
pub(super) enum Illness {
    #[error("no answer in time")]
    Late,
    #[error(transparent)]
    Unreached(#[from] ConnectError),
    #[error("the exchange failed: {0}")]
    Broken(#[from] hyper::Error),
    #[error("the answer is {0}")]
    Status(StatusCode),
    #[error("grpc-status {0}")]
    GrpcStatus(String),
    #[error("the service does not serve")]
    NotServing,
    #[error("the answer is unreadable")]
    Unreadable,
}

/// Asks one server again and again, until its upstream is gone.
pub(super) async fn watch(upstream: Weak<Upstream>, index: usize, health: Health) {
    // Servers are not asked all at once.
    sleep(health.interval.mul_f64(fastrand::f64() * 0.2)).await;
    loop {
        let Some(running) = upstream.upgrade() else {
            return;
        };
        let endpoint = &running.endpoints[index];
        let found = timeout(health.timeout, check(&running, endpoint, &health.check)).await;
        let found = found.unwrap_or(Err(Illness::Late));
        running.checked(endpoint, &health, found);
        drop(running);
        sleep(jittered(health.interval)).await;
    }
}

/// Within a tenth, so that many proxies do not ask in step.
fn jittered(interval: Duration) -> Duration {
    interval.mul_f64(0.9 + fastrand::f64() * 0.2)
}

async fn check(
    upstream: &Upstream,
    endpoint: &Endpoint,
    check: &HealthCheck,
) -> Result<(), Illness> {
    let place = Gate::new(1).enter().ok_or(Illness::Late)?;
    let io = endpoint.connector.connect(Ends::default(), place).await?;
    let (request, service) = match check {
        HealthCheck::Tcp => return Ok(()),
        HealthCheck::Path(path) => (of_path(path)?, None),
        HealthCheck::Grpc(service) => (of_service(service), Some(service)),
    };
    let (mut head, body) = request.into_parts();
    endpoint
        .client
        .address(&mut head, endpoint.scheme(), endpoint.authority());
    if upstream.protocol() == UpstreamProtocol::Http1 {
        let close = HeaderValue::from_static("close");
        head.headers.insert(header::CONNECTION, close);
    }
    let request = Request::from_parts(head, body);
    // The connection's driver ends with this.
    let mut driver = JoinSet::new();
    let response = send(&mut driver, upstream.protocol(), io, request).await?;
    let status = response.status();
    match service {
        None if status.is_success() => Ok(()),
        Some(_) if status == StatusCode::OK => serves(response).await,
        _ => Err(Illness::Status(status)),
    }
}

async fn send(
    driver: &mut JoinSet<()>,
    protocol: UpstreamProtocol,
    io: Io,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, Illness> {
    Ok(match protocol {
        UpstreamProtocol::Http1 => {
            let io = TokioIo::new(held_to_grammar(io));
            let (mut sender, connection) = http1::handshake(io).await?;
            driver.spawn(async { drop(connection.await) });
            sender.send_request(request).await?
        }
        UpstreamProtocol::Http2 => {
            let io = TokioIo::new(io);
            let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
            driver.spawn(async { drop(connection.await) });
            sender.send_request(request).await?
        }
    })
}

fn of_path(path: &str) -> Result<Request<Full<Bytes>>, Illness> {
    Request::builder()
        .uri(path)
        .header(header::USER_AGENT, "thinwire-health")
        .body(Full::default())
        .map_err(|_| Illness::Unreadable)
}

/// `grpc.health.v1.Health/Check`: one message, whose field 1 is the service's name.
fn of_service(service: &str) -> Request<Full<Bytes>> {
    let mut message = BytesMut::new();
    if !service.is_empty() {
        message.put_u8(1 << 3 | 2);
        varint(service.len(), &mut message);
        message.put_slice(service.as_bytes());
    }
    let mut body = BytesMut::with_capacity(5 + message.len());
    body.put_u8(0);
    body.put_u32(u32::try_from(message.len()).unwrap_or(0));
    body.put_slice(&message);
    let mut request = Request::new(Full::new(body.freeze()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = http::Uri::from_static("/grpc.health.v1.Health/Check");
    let fields = [
        (header::CONTENT_TYPE, "application/grpc"),
        (header::TE, "trailers"),
        (header::USER_AGENT, "thinwire-health"),
    ];
    for (name, value) in fields {
        request
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    request
}

fn varint(mut value: usize, output: &mut BytesMut) {
    while value >= 0x80 {
        output.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    output.put_u8(value as u8);
}

/// Whether the answer to `Check` is SERVING, with status 0.
async fn serves(response: Response<Incoming>) -> Result<(), Illness> {
    let (head, body) = response.into_parts();
    ok(&head.headers)?;
    let collected = Limited::new(body, MOST)
        .collect()
        .await
        .map_err(|_| Illness::Unreadable)?;
    if let Some(trailers) = collected.trailers() {
        ok(trailers)?;
    }
    match status_of(&collected.to_bytes()) {
        Some(SERVING) => Ok(()),
        Some(_) => Err(Illness::NotServing),
        None => Err(Illness::Unreadable),
    }
}

fn ok(fields: &HeaderMap) -> Result<(), Illness> {
    match fields.get("grpc-status") {
        Some(status) if status != "0" => Err(Illness::GrpcStatus(
            String::from_utf8_lossy(status.as_bytes()).into_owned(),
        )),
        _ => Ok(()),
    }
}

/// Field 1 of the one message; an empty message is UNKNOWN (0).
fn status_of(body: &[u8]) -> Option<u64> {
    let (prefix, message) = body.split_first_chunk::<5>()?;
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    if prefix[0] != 0 || message.len() != length as usize {
        return None;
    }
    match message {
        [] => Some(0),
        [0x08, status, ..] if *status < 0x80 => Some(u64::from(*status)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_the_health_service() {
        let table: [(&[u8], Option<u64>); 7] = [
            (&[0, 0, 0, 0, 2, 8, 1], Some(SERVING)),
            (&[0, 0, 0, 0, 2, 8, 2], Some(2)),
            (&[0, 0, 0, 0, 0], Some(0)),
            (&[1, 0, 0, 0, 2, 8, 1], None),
            (&[0, 0, 0, 0, 3, 8, 1], None),
            (&[0, 0, 0, 0, 2, 16, 1], None),
            (&[0, 0], None),
        ];
        for (body, expected) in table {
            assert_eq!(status_of(body), expected, "{body:?}");
        }
    }

    #[test]
    fn long_names_of_services_are_written_whole() {
        let mut length = BytesMut::new();
        varint(300, &mut length);
        assert_eq!(&length[..], [0xac, 0x02]);
    }
}
