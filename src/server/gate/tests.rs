#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::*;
use crate::frame::http1::refusal_in;

const LIMITS: GateLimits = GateLimits {
    head: 32 * 1024,
    head_timeout: Duration::from_secs(10),
    send: Duration::from_secs(30),
};
const HINTS: &[u8] = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";

/// An answer that keeps its exchange until hyper drops it.
struct Held {
    bytes: Option<Bytes>,
    _exchange: Option<Exchange>,
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.bytes.as_ref().map_or(0, Bytes::len) as u64)
    }
}

/// The service behind the gate.
#[derive(Default)]
struct App {
    refused: Mutex<Vec<Refused>>,
    /// Sees `/wait` arrive, with a way to send hints.
    waiting: Mutex<Option<Hints>>,
    arrived: Notify,
    go: Notify,
    hinted: Mutex<Vec<bool>>,
}

impl App {
    fn refusals(&self) -> Vec<Refusal> {
        self.refused.lock().iter().map(|it| it.refusal).collect()
    }

    async fn answer(&self, handle: &Handle, request: Request<Incoming>) -> Response<Held> {
        let exchange = match handle.begin() {
            Turn::Serve(exchange) => exchange,
            Turn::Refuse(refused) => {
                let answer = plain(refused.refusal.status(), &refused.refusal.to_string(), None);
                self.refused.lock().push(*refused);
                return answer;
            }
        };
        let path = request.uri().path().to_owned();
        match path.as_str() {
            "/echo" => match request.into_body().collect().await {
                Ok(body) => {
                    let body = String::from_utf8(body.to_bytes().to_vec()).unwrap();
                    plain(StatusCode::OK, &body, Some(exchange))
                }
                Err(error) => {
                    let refusal = *refusal_in(&error).unwrap();
                    plain(refusal.status(), refusal.word(), Some(exchange))
                }
            },
            "/hints" => {
                request.into_body().collect().await.unwrap();
                self.hinted.lock().push(exchange.hints().send(HINTS));
                plain(StatusCode::OK, "hinted", Some(exchange))
            }
            "/wait" => {
                *self.waiting.lock() = Some(exchange.hints());
                self.arrived.notify_one();
                self.go.notified().await;
                plain(StatusCode::OK, "waited", Some(exchange))
            }
            "/tunnel" => {
                assert!(exchange.tunnel());
                tokio::spawn(async {
                    let io = hyper::upgrade::on(request).await.unwrap();
                    let (mut read, mut write) = tokio::io::split(TokioIo::new(io));
                    tokio::io::copy(&mut read, &mut write).await.unwrap();
                    write.shutdown().await.unwrap();
                });
                let mut answer = plain(StatusCode::SWITCHING_PROTOCOLS, "", Some(exchange));
                let headers = answer.headers_mut();
                headers.insert(header::CONNECTION, "upgrade".parse().unwrap());
                headers.insert(header::UPGRADE, "echo".parse().unwrap());
                answer
            }
            _ => plain(StatusCode::OK, &path, Some(exchange)),
        }
    }
}

fn plain(status: StatusCode, text: &str, exchange: Option<Exchange>) -> Response<Held> {
    let bytes = (!text.is_empty()).then(|| Bytes::copy_from_slice(text.as_bytes()));
    let body = Held {
        bytes,
        _exchange: exchange,
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

/// A hyper connection around a gate.
macro_rules! connection {
    ($gate:expr, $app:expr) => {{
        let handle = $gate.handle();
        let app = Arc::clone($app);
        let service = service_fn(move |request| {
            let (handle, app) = (handle.clone(), Arc::clone(&app));
            Box::pin(async move { Ok::<_, Infallible>(app.answer(&handle, request).await) })
        });
        http1::Builder::new()
            .auto_date_header(false)
            .serve_connection(TokioIo::new($gate), service)
    }};
}

// Below the macro, which it uses.
mod handle;

impl Peer for DuplexStream {
    fn failure(&self) -> Option<io::Error> {
        None
    }
}

struct Scene {
    client: DuplexStream,
    app: Arc<App>,
    server: JoinHandle<hyper::Result<()>>,
}

fn scene() -> Scene {
    scene_with(64 * 1024, b"")
}

fn scene_with(capacity: usize, prefix: &[u8]) -> Scene {
    let (client, socket) = duplex(capacity);
    let app = Arc::<App>::default();
    let gate = Gate::new(socket, LIMITS, prefix);
    let connection = connection!(gate, &app).with_upgrades();
    Scene {
        client,
        app,
        server: tokio::spawn(connection),
    }
}

impl Scene {
    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.client.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Lets everybody else run until nobody can.
    async fn settle(&self) {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }

    /// All that arrives until these words.
    async fn until(&mut self, end: &str) -> String {
        let mut seen = String::new();
        while !seen.ends_with(end) {
            seen.push(char::from(self.client.read_u8().await.unwrap()));
        }
        seen
    }

    /// All that arrives until the connection's end.
    async fn rest(&mut self) -> String {
        let mut seen = String::new();
        self.client.read_to_string(&mut seen).await.unwrap();
        seen
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// The statuses of all answers in these bytes.
fn statuses(answers: &str) -> Vec<&str> {
    let starts = answers.match_indices("HTTP/1.1 ");
    starts.map(|(at, _)| &answers[at + 9..at + 12]).collect()
}

#[tokio::test]
async fn a_bad_third_request_is_refused_after_the_first_two_are_answered() {
    let mut scene = scene();
    let bad = "PUT /c HTTP/1.1\r\nHost: b\r\nContent-Length : 3\r\n\r\nabc";
    scene
        .send(format!("{}{}{bad}{}", get("/a"), get("/b"), get("/d")))
        .await;
    let answers = scene.rest().await;
    assert_eq!(statuses(&answers), ["200", "200", "400"], "{answers}");
    assert!(
        answers.contains("\r\n\r\n/aHTTP/1.1 200 OK\r\n"),
        "{answers}"
    );
    assert!(
        answers.ends_with("white space before the colon of a field"),
        "{answers}"
    );

    let refused = scene.app.refused.lock().pop().unwrap();
    assert_eq!(refused.refusal, Refusal::SpaceBeforeColon);
    assert_eq!(refused.method.as_deref(), Some("PUT"));
    assert_eq!(refused.target.as_deref(), Some("/c"));
    assert_eq!(refused.host.as_deref(), Some("b"));
    drop(scene.client);
    scene.server.await.unwrap().unwrap();
}

#[tokio::test]
async fn it_does_not_matter_how_the_bytes_arrive() {
    let echo = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                3\r\nGET\r\n0\r\n\r\n";
    let stream = format!(
        "{}{echo}\r\n{}GET / HTTP/1.1\nHost: a\n\n",
        get("/a"),
        get("/b")
    );
    for cut in 1..stream.len() {
        let mut scene = scene();
        scene.send(&stream[..cut]).await;
        scene.settle().await;
        scene.send(&stream[cut..]).await;
        let answers = scene.rest().await;
        assert_eq!(
            statuses(&answers),
            ["200", "200", "200", "400"],
            "cut at {cut}"
        );
        assert!(answers.contains("\r\n\r\nGETHTTP/1.1"), "{answers}");
        assert_eq!(scene.app.refusals(), [Refusal::BareLf]);
    }
    let mut scene = scene();
    for byte in stream.bytes() {
        scene.send([byte]).await;
        scene.settle().await;
    }
    assert_eq!(statuses(&scene.rest().await), ["200", "200", "200", "400"]);
}

#[tokio::test]
async fn a_body_with_bad_chunks_fails_where_it_is_read() {
    let mut scene = scene();
    let head = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    scene.send(format!("{head}3\r\nabc\r\n0x1\r\n")).await;
    let answer = scene.rest().await;
    assert_eq!(statuses(&answer), ["400"]);
    assert!(answer.ends_with("bad_chunk_size"), "{answer}");
    assert_eq!(scene.app.refusals(), []);
}

#[tokio::test(start_paused = true)]
async fn a_late_head_is_refused_and_an_idle_connection_is_not_late() {
    let mut scene = scene();
    scene.send(get("/a")).await;
    scene.until("/a").await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    // The empty line that some clients send after a body is no head either.
    scene.send("\r\n").await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    scene.send(get("/b")).await;
    scene.until("/b").await;

    let begun = Instant::now();
    scene.send("GET /slow HT").await;
    scene.settle().await;
    tokio::time::sleep(Duration::from_secs(9)).await;
    scene.send("TP/1.1\r\nHost: a").await;
    assert_eq!(statuses(&scene.rest().await), ["408"]);
    assert_eq!(begun.elapsed().as_secs(), LIMITS.head_timeout.as_secs());
    let refused = scene.app.refused.lock().pop().unwrap();
    assert_eq!(refused.refusal, Refusal::Late);
    assert_eq!(refused.target.as_deref(), Some("/slow"));
    assert_eq!(refused.started, begun.into_std());
}

#[tokio::test(start_paused = true)]
async fn a_head_that_is_late_behind_a_running_answer_waits_for_its_turn() {
    let mut scene = scene();
    scene.send(get("/wait")).await;
    scene.app.arrived.notified().await;
    scene.send("GET /b").await;
    tokio::time::sleep(LIMITS.head_timeout * 2).await;
    scene.app.go.notify_one();
    assert_eq!(statuses(&scene.rest().await), ["200", "408"]);
}

#[tokio::test(start_paused = true)]
async fn each_head_has_its_own_time() {
    let mut scene = scene();
    for path in ["/a", "/b", "/c"] {
        let head = get(path);
        let (begin, end) = head.split_at(8);
        scene.send(begin).await;
        tokio::time::sleep(LIMITS.head_timeout / 2).await;
        scene.send(end).await;
        scene.until(path).await;
    }
    assert_eq!(scene.app.refusals(), []);
}

#[tokio::test]
async fn a_refused_head_request_is_answered_without_a_body() {
    let mut scene = scene();
    scene
        .send("HEAD / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n")
        .await;
    let answer = scene.rest().await;
    assert_eq!(statuses(&answer), ["400"]);
    assert!(answer.ends_with("\r\n\r\n"), "{answer}");
}

#[tokio::test]
async fn a_client_that_leaves_within_a_head_is_not_answered() {
    let mut scene = scene();
    scene.send("GET / HTTP/1.1\r\nHo").await;
    scene.settle().await;
    scene.client.shutdown().await.unwrap();
    assert_eq!(scene.rest().await, "");
    assert_eq!(scene.app.refusals(), []);
    scene.server.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_head_larger_than_a_read_arrives_whole() {
    let mut scene = scene();
    let field = format!("X: {}\r\n", "v".repeat(500));
    let head = format!("GET /big HTTP/1.1\r\nHost: a\r\n{}\r\n", field.repeat(60));
    scene.send(head + &get("/next")).await;
    scene.until("/big").await;
    scene.until("/next").await;

    let head = format!("GET /big HTTP/1.1\r\nHost: a\r\n{}\r\n", field.repeat(70));
    scene.send(head).await;
    assert_eq!(statuses(&scene.rest().await), ["431"]);
}

#[tokio::test]
async fn bytes_that_were_read_before_come_first() {
    let mut scene = scene_with(1024, b"GET /a HT");
    scene.send("TP/1.1\r\nHost: a\r\n\r\n").await;
    scene.until("/a").await;
    let mut scene = scene_with(1024, (get("/a") + "\n").as_bytes());
    assert_eq!(statuses(&scene.rest().await), ["200", "400"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_given_up() {
    let (mut client, socket) = duplex(16);
    let mut gate = Gate::new(socket, LIMITS, b"");
    let begun = Instant::now();
    let reader = tokio::spawn(async move {
        // Slow, but not stalled: every wait is its own.
        for _ in 0..3 {
            tokio::time::sleep(LIMITS.send / 2).await;
            client.read_exact(&mut [0; 16]).await.unwrap();
        }
        client
    });
    let error = gate.write_all(&[b'a'; 1024]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(begun.elapsed(), LIMITS.send / 2 * 3 + LIMITS.send);
    drop(reader.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn what_a_refused_client_still_sends_is_read_for_a_moment() {
    let mut scene = scene_with(1024, b"");
    scene
        .send("POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n")
        .await;
    scene.send(vec![b'a'; 100_000]).await;
    assert_eq!(statuses(&scene.rest().await), ["400"]);
    assert_eq!(scene.app.refusals(), [Refusal::NoHost]);
    let begun = Instant::now();
    scene.server.await.unwrap().unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(2));
}
