//! Stories of a scripted application and a proxy that asks it.

mod http1;
mod http2;
mod origin;
mod patience;
mod tls;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use parking_lot::Mutex;

use super::{Answer, Call, SendError, Upstream};
use crate::body::Body;
use crate::config::settings::{
    self, Balance, ProxyProtocol, Server, UpstreamProtocol, UpstreamTls,
};
use crate::telemetry::ServerMetrics;

/// Long enough for anything that is going to happen.
const PATIENCE: Duration = Duration::from_secs(20);

/// Fails the test instead of hanging it.
async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("it did not happen")
}

fn settings(servers: Vec<Server>) -> settings::Upstream {
    settings::Upstream {
        name: "app".into(),
        servers,
        protocol: UpstreamProtocol::Http1,
        balance: Balance::RoundRobin,
        tls: UpstreamTls::default(),
        proxy_protocol: ProxyProtocol::None,
        health: None,
        eject: None,
        max_connections: 16,
        connect_timeout: Duration::from_secs(5),
        response_head_timeout: Duration::from_secs(5),
        idle_timeout: Duration::from_secs(4),
        retries: 1,
    }
}

/// An upstream and the counts of its servers, in their order.
struct App {
    upstream: Upstream,
    metrics: Arc<Mutex<Vec<ServerMetrics>>>,
}

impl App {
    fn new(settings: &settings::Upstream) -> Self {
        let metrics = Arc::new(Mutex::new(Vec::new()));
        let made = Arc::clone(&metrics);
        let upstream = Upstream::new(settings, None, None, move |_| {
            made.lock().push(ServerMetrics::default());
            made.lock().last().cloned().unwrap_or_default()
        });
        Self {
            upstream: upstream.expect("good settings"),
            metrics,
        }
    }

    fn of(server: Server) -> Self {
        Self::new(&settings(vec![server]))
    }

    fn counts(&self, server: usize) -> ServerMetrics {
        self.metrics.lock()[server].clone()
    }

    async fn send(&self, request: Request<Body>) -> Result<Answer, SendError> {
        let repeatable = request.method().is_idempotent();
        let head_timeout = Some(Duration::from_secs(5));
        let call = Call {
            repeatable,
            head_timeout,
            ..Call::default()
        };
        within(self.upstream.send(request, call)).await
    }

    async fn get(&self, path: &str) -> Result<Answer, SendError> {
        self.send(request(Method::GET, path, Body::Empty)).await
    }

    fn in_flight(&self) -> usize {
        self.upstream
            .endpoints
            .iter()
            .map(|endpoint| endpoint.load.count())
            .sum()
    }
}

fn request(method: Method, path: &str, body: Body) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(path)
        .header("host", "www.example.org")
        .body(body)
        .expect("a good request")
}

/// All of the answer's body; the lease ends with it.
async fn text(answer: Answer) -> String {
    let body = within(answer.response.into_body().collect())
        .await
        .expect("a whole body");
    String::from_utf8(body.to_bytes().to_vec()).expect("text")
}

/// A request body that a test feeds, piece by piece, through a real connection of hyper's.
async fn fed() -> (Feed, Body) {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (found, body) = tokio::sync::oneshot::channel();
    let found = Mutex::new(Some(found));
    let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
        if let Some(found) = found.lock().take() {
            let _ = found.send(request.into_body());
        }
        std::future::pending::<Result<http::Response<Body>, std::io::Error>>()
    });
    tokio::spawn(
        hyper::server::conn::http1::Builder::new()
            .serve_connection(hyper_util::rt::TokioIo::new(theirs), service),
    );
    let mut feed = Feed(ours);
    feed.raw(b"PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        .await;
    (feed, Body::Incoming(within(body).await.expect("a request")))
}

/// The client's end of [`fed`].
struct Feed(tokio::io::DuplexStream);

impl Feed {
    async fn raw(&mut self, bytes: &[u8]) {
        use tokio::io::AsyncWriteExt as _;
        self.0.write_all(bytes).await.expect("somebody reads");
    }

    async fn piece(&mut self, text: &str) {
        self.raw(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
            .await;
    }

    async fn end(&mut self) {
        self.raw(b"0\r\n\r\n").await;
    }
}

fn full(text: &'static str) -> Body {
    Body::Full(Bytes::from_static(text.as_bytes()))
}
