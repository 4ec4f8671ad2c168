#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;

type Body = BoxBody<Bytes, std::convert::Infallible>;

/// hyper's client on a strict connection, and the app's end of it.
async fn connection() -> (SendRequest<Body>, DuplexStream) {
    let (socket, app) = duplex(64 * 1024);
    let handshake = Builder::new().handshake(TokioIo::new(Strict::new(socket)));
    let (sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection.with_upgrades());
    (sender, app)
}

fn request(method: Method) -> Request<Body> {
    let body = Full::new(Bytes::new()).boxed();
    let request = Request::builder()
        .method(method)
        .uri("/")
        .header("host", "a");
    request.body(body).unwrap()
}

/// Reads a request's head, then answers.
async fn app(app: &mut DuplexStream, answer: &str) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(app.read_u8().await.unwrap());
    }
    app.write_all(answer.as_bytes()).await.unwrap();
}

async fn ask(method: Method, answer: &str) -> hyper::Result<Response<Incoming>> {
    let (mut sender, mut origin) = connection().await;
    let (response, ()) = tokio::join!(
        sender.send_request(request(method)),
        app(&mut origin, answer)
    );
    response
}

fn fault(error: &hyper::Error) -> Option<Refusal> {
    malformed_in(error).map(|MalformedAnswer(refusal)| *refusal)
}

#[tokio::test]
async fn an_answer_with_a_malformed_head_fails() {
    for (answer, refusal) in [
        ("HTTP/1.1 200 OK\nContent-Length: 0\n\n", Refusal::BareLf),
        (
            "HTTP/1.1 200 OK\r\nX : a\r\n\r\n",
            Refusal::SpaceBeforeColon,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            Refusal::LengthAndCoding,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
            Refusal::RepeatedLength,
        ),
        ("SSH-2.0-server\r\n", Refusal::StatusLine),
    ] {
        let error = ask(Method::GET, answer).await.unwrap_err();
        assert_eq!(fault(&error), Some(refusal), "{answer:?}");
    }
}

#[tokio::test]
async fn an_answer_with_malformed_chunks_fails_in_its_body() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let answer = format!("{head}3\r\nabc\r\n3 \r\nabc\r\n0\r\n\r\n");
    let mut body = ask(Method::GET, &answer).await.unwrap().into_body();
    let first = body.frame().await.unwrap().unwrap();
    assert_eq!(first.into_data().unwrap(), "abc");
    let error = body.frame().await.unwrap().unwrap_err();
    assert_eq!(fault(&error), Some(Refusal::ChunkSize));
}

#[tokio::test]
async fn an_app_that_leaves_within_a_head_has_not_answered_nothing() {
    let (mut sender, mut origin) = connection().await;
    let (response, ()) = tokio::join!(sender.send_request(request(Method::GET)), async move {
        app(&mut origin, "HTTP/1.1 200 OK\r\nContent-Le").await;
    });
    assert_eq!(fault(&response.unwrap_err()), Some(Refusal::Cut));

    let (mut sender, mut origin) = connection().await;
    let (response, ()) = tokio::join!(sender.send_request(request(Method::GET)), async move {
        app(&mut origin, "").await;
    });
    let error = response.unwrap_err();
    assert!(error.is_incomplete_message() && fault(&error).is_none());
}

#[tokio::test]
async fn exchanges_follow_each_other_however_their_bytes_are_cut() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let (mut sender, mut origin) = connection().await;
    for (method, answer, body) in [
        (
            Method::GET,
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
            "abc",
        ),
        (
            Method::HEAD,
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n",
            "",
        ),
        (
            Method::GET,
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n",
            "",
        ),
        (
            Method::GET,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;e\r\na\r\n0\r\nX: y\r\n\r\n",
            "a",
        ),
        (Method::GET, "HTTP/1.1 200\r\n\r\nto the end", "to the end"),
    ] {
        let (collected, ()) = tokio::join!(
            async {
                let response = sender.send_request(request(method)).await.unwrap();
                assert!(response.status() == 200 || response.status() == 304);
                response.into_body().collect().await.unwrap().to_bytes()
            },
            async {
                app(&mut origin, hints).await;
                for byte in answer.bytes() {
                    origin.write_all(&[byte]).await.unwrap();
                    tokio::task::yield_now().await;
                }
                if body == "to the end" {
                    origin.shutdown().await.unwrap();
                }
            }
        );
        assert_eq!(collected, body);
        if body != "to the end" {
            sender.ready().await.unwrap();
        }
    }
}

#[tokio::test]
async fn the_rest_of_a_request_is_not_taken_for_the_next_one() {
    let (mut sender, mut origin) = connection().await;
    let (parts, receiver) = tokio::sync::mpsc::unbounded_channel::<&str>();
    let upload = Request::post("/").header("host", "a");
    let upload = upload.header("content-length", 5 + 28);
    let upload = upload
        .body(StreamBody::new(stream(receiver)).boxed())
        .unwrap();
    parts.send("first").unwrap();
    let (response, ()) = tokio::join!(
        sender.send_request(upload),
        app(&mut origin, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    );
    // Answered early; the upload goes on, with what looks like another request.
    response.unwrap().into_body().collect().await.unwrap();
    parts.send("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    drop(parts);
    let mut rest = Vec::new();
    while !rest.ends_with(b"\r\n\r\n") {
        rest.push(origin.read_u8().await.unwrap());
    }
    sender.ready().await.unwrap();
    // Taken for the answer to a HEAD, its body would not be looked at.
    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\na\r\n0\r\n\r\n";
    let (response, ()) = tokio::join!(
        sender.send_request(request(Method::GET)),
        app(&mut origin, answer)
    );
    let error = response.unwrap().into_body().collect().await.unwrap_err();
    assert_eq!(fault(&error), Some(Refusal::ChunkSize));
}

/// The frames of a body, as they are sent to it.
fn stream(
    mut receiver: tokio::sync::mpsc::UnboundedReceiver<&'static str>,
) -> impl futures_core::Stream<Item = Result<Frame<Bytes>, std::convert::Infallible>> {
    struct Parts<F>(F);
    impl<F: FnMut(&mut Context<'_>) -> Poll<Option<&'static str>> + Unpin> futures_core::Stream
        for Parts<F>
    {
        type Item = Result<Frame<Bytes>, std::convert::Infallible>;
        fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
            (self.0)(cx).map(|part| part.map(|part| Ok(Frame::data(Bytes::from(part)))))
        }
    }
    Parts(move |cx: &mut Context<'_>| receiver.poll_recv(cx))
}

#[tokio::test]
async fn a_request_that_cannot_be_framed_costs_the_connection_only() {
    let (mut sender, mut origin) = connection().await;
    // No Host: nobody here sends that.
    let bare = Request::head("/")
        .body(Full::new(Bytes::new()).boxed())
        .unwrap();
    let (response, ()) = tokio::join!(
        sender.send_request(bare),
        app(&mut origin, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")
    );
    assert_eq!(response.unwrap().status(), StatusCode::OK);
    assert!(sender.ready().await.is_err());
}

#[tokio::test]
async fn after_101_bytes_are_nobodys_business() {
    let (mut sender, mut origin) = connection().await;
    let mut upgrade = request(Method::GET);
    upgrade
        .headers_mut()
        .insert("connection", "upgrade".parse().unwrap());
    upgrade
        .headers_mut()
        .insert("upgrade", "x".parse().unwrap());
    let answer = "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n\n\0early";
    let (response, ()) = tokio::join!(sender.send_request(upgrade), app(&mut origin, answer));
    let mut io = TokioIo::new(hyper::upgrade::on(response.unwrap()).await.unwrap());
    let mut early = [0; 7];
    io.read_exact(&mut early).await.unwrap();
    assert_eq!(&early, b"\n\0early");
    io.write_all(b"GET \n").await.unwrap();
    let mut late = [0; 5];
    origin.read_exact(&mut late).await.unwrap();
    origin.write_all(b"HTTP/1.1 \n").await.unwrap();
    let mut late = [0; 10];
    io.read_exact(&mut late).await.unwrap();
}
