//! HTTP/2 without TLS: one connection, many exchanges, resets by name.

use std::task::Poll;
use std::time::Duration;

use h2::Reason;
use h2::server::{Connection, SendResponse};
use http::{Method, Response};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use super::origin::Origin;
use super::*;

type Server2 = Connection<TcpStream, Bytes>;

fn h2c(servers: Vec<Server>) -> settings::Upstream {
    settings::Upstream {
        protocol: UpstreamProtocol::Http2,
        ..settings(servers)
    }
}

async fn accept(origin: &Origin) -> Server2 {
    within(h2::server::handshake(origin.accept().await.stream))
        .await
        .unwrap()
}

async fn next(server: &mut Server2) -> (Request<h2::RecvStream>, SendResponse<Bytes>) {
    within(server.accept()).await.expect("a stream").unwrap()
}

/// Drives the connection until the proxy ends it.
async fn drive(server: &mut Server2) {
    within(async { while let Some(Ok(_)) = server.accept().await {} }).await;
}

#[tokio::test]
async fn streams_share_a_connection_and_keep_their_clients_authority() {
    let origin = Origin::new().await;
    let app = App::new(&h2c(vec![origin.server()]));
    let serve = async {
        let mut server = accept(&origin).await;
        let mut hosts = Vec::new();
        let mut open = Vec::new();
        for _ in 0..3 {
            let (asked, mut respond) = next(&mut server).await;
            assert_eq!(asked.uri().path_and_query().unwrap(), "/a?b");
            assert!(!asked.headers().contains_key("host"));
            hosts.push(asked.uri().authority().unwrap().to_string());
            open.push(respond.send_response(Response::new(()), false).unwrap());
        }
        for stream in &mut open {
            stream.send_data("ok".into(), true).unwrap();
        }
        drive(&mut server).await;
        hosts
    };
    let ask = async |host: &str| {
        let mut asks = request(Method::GET, "/a?b", Body::Empty);
        asks.headers_mut().insert("host", host.parse().unwrap());
        assert_eq!(text(app.send(asks).await.unwrap()).await, "ok");
    };
    let clients = async {
        tokio::join!(ask("a.example"), ask("b.example"), ask("c.example:81"));
        app.upstream.close_idle();
    };
    let (mut hosts, ()) = tokio::join!(serve, clients);
    hosts.sort();
    assert_eq!(hosts, ["a.example", "b.example", "c.example:81"]);
    assert!(origin.is_quiet().await);
}

/// The error that a reset with this code becomes, and how often the request was seen.
async fn reset_with(reason: Reason, resets: usize) -> (Result<Answer, SendError>, usize) {
    let origin = Origin::new().await;
    let app = App::new(&h2c(vec![origin.server()]));
    let mut seen = 0;
    let serve = async {
        let mut server = accept(&origin).await;
        loop {
            let (_, mut respond) = next(&mut server).await;
            seen += 1;
            if seen <= resets {
                respond.send_reset(reason);
            } else {
                respond.send_response(Response::new(()), true).unwrap();
            }
        }
    };
    let answer = tokio::select! {
        answer = app.send(request(Method::POST, "/", full("once"))) => answer,
        () = serve => unreachable!(),
    };
    (answer, seen)
}

#[tokio::test]
async fn a_reset_keeps_its_code() {
    for reason in [
        Reason::CANCEL,
        Reason::ENHANCE_YOUR_CALM,
        Reason::INTERNAL_ERROR,
    ] {
        let (answer, seen) = reset_with(reason, 1).await;
        assert!(matches!(answer, Err(SendError::Reset(code)) if code == reason));
        assert_eq!(seen, 1);
    }
}

#[tokio::test]
async fn a_refused_stream_was_not_processed_and_is_sent_again() {
    let (answer, seen) = reset_with(Reason::REFUSED_STREAM, 1).await;
    answer.unwrap();
    assert_eq!(seen, 2);
    let (answer, seen) = reset_with(Reason::REFUSED_STREAM, 9).await;
    assert!(matches!(
        answer,
        Err(SendError::Reset(Reason::REFUSED_STREAM))
    ));
    assert_eq!(seen, 2);
}

#[tokio::test]
async fn a_caller_who_leaves_cancels_the_stream() {
    let origin = Origin::new().await;
    let app = App::new(&h2c(vec![origin.server()]));
    let (answer, ()) = tokio::join!(app.get("/"), async {
        let mut server = accept(&origin).await;
        let (_, mut respond) = next(&mut server).await;
        let mut stream = respond.send_response(Response::new(()), false).unwrap();
        tokio::spawn(async move {
            let code = within(std::future::poll_fn(|cx| stream.poll_reset(cx)));
            let (_, code) = tokio::join!(drive(&mut server), code);
            assert_eq!(code.unwrap(), Reason::CANCEL);
        });
    });
    assert_eq!(app.in_flight(), 1);
    drop(answer.unwrap());
    assert_eq!(app.in_flight(), 0);
}

#[tokio::test]
async fn a_caller_who_leaves_before_the_head_cancels_the_stream() {
    let origin = Origin::new().await;
    let app = App::new(&h2c(vec![origin.server()]));
    let (mut server, mut respond) = tokio::select! {
        _ = app.get("/") => panic!("nobody answered"),
        pair = async {
            let mut server = accept(&origin).await;
            let (_, respond) = next(&mut server).await;
            (server, respond)
        } => pair,
    };
    let code = tokio::select! {
        code = within(std::future::poll_fn(|cx| respond.poll_reset(cx))) => code.unwrap(),
        () = drive(&mut server) => panic!("the connection is to be kept"),
    };
    assert_eq!(code, Reason::CANCEL);
    assert_eq!(app.in_flight(), 0);
}

#[tokio::test]
async fn after_goaway_a_new_connection_is_made() {
    let origin = Origin::new().await;
    let app = App::new(&h2c(vec![origin.server()]));
    let serve = async {
        for _ in 0..2 {
            let mut server = accept(&origin).await;
            let (_, mut respond) = next(&mut server).await;
            respond.send_response(Response::new(()), true).unwrap();
            server.graceful_shutdown();
            drive(&mut server).await;
        }
    };
    let ask = async {
        text(app.get("/").await.unwrap()).await;
        text(
            app.send(request(Method::POST, "/", full("once")))
                .await
                .unwrap(),
        )
        .await;
    };
    tokio::join!(serve, ask);
}

/// Reads frames until a request's head came.
async fn headers(stream: &mut TcpStream) {
    let mut preface = [0; 24];
    within(stream.read_exact(&mut preface)).await.unwrap();
    loop {
        let mut head = [0; 9];
        within(stream.read_exact(&mut head)).await.unwrap();
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        within(stream.read_exact(&mut payload)).await.unwrap();
        if head[3] == 1 {
            return;
        }
    }
}

#[tokio::test]
async fn what_a_goaway_leaves_out_is_sent_again_whatever_the_method() {
    let origin = Origin::new().await;
    let app = App::new(&h2c(vec![origin.server()]));
    let serve = async {
        let mut peer = origin.accept().await;
        peer.say([0, 0, 0, 4, 0, 0, 0, 0, 0]).await;
        headers(&mut peer.stream).await;
        // GOAWAY: the last stream is 0, NO_ERROR.
        peer.say([0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
            .await;
        let mut server = accept(&origin).await;
        let (asked, mut respond) = next(&mut server).await;
        assert_eq!(asked.method(), Method::POST);
        respond.send_response(Response::new(()), true).unwrap();
        drive(&mut server).await;
    };
    let ask = async {
        app.send(request(Method::POST, "/", full("once")))
            .await
            .unwrap();
        app.upstream.close_idle();
    };
    tokio::join!(serve, ask);
    assert_eq!(app.counts(0).retried.get(), 1);
}

#[tokio::test]
async fn a_server_that_speaks_http1_only() {
    let origin = Origin::new().await;
    let app = App::new(&h2c(vec![origin.server()]));
    let (answer, _peer) = tokio::join!(app.get("/"), async {
        let mut peer = origin.accept().await;
        peer.head().await;
        peer.say("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
            .await;
        peer
    });
    let error = answer.err().unwrap();
    assert!(matches!(error, SendError::Malformed(_)), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_before_the_app_does_it() {
    let origin = Origin::new().await;
    let app = App::new(&h2c(vec![origin.server()]));
    let (answer, mut server) = tokio::join!(app.get("/"), async {
        let mut server = accept(&origin).await;
        let (_, mut respond) = next(&mut server).await;
        respond.send_response(Response::new(()), true).unwrap();
        std::future::poll_fn(|cx| {
            let _ = server.poll_accept(cx);
            Poll::Ready(())
        })
        .await;
        server
    });
    let answer = answer.unwrap();
    // A stream that is open for long is not idleness.
    let since = tokio::time::Instant::now();
    tokio::select! {
        () = drive(&mut server) => {
            let idle = since.elapsed();
            assert!(idle >= Duration::from_secs(13) && idle < Duration::from_secs(15), "{idle:?}");
        }
        () = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            drop(answer);
            std::future::pending::<()>().await;
        } => {}
    }
}

#[tokio::test]
async fn busy_connections_get_company() {
    let origin = Origin::new().await;
    let app = App::new(&h2c(vec![origin.server()]));
    let serve = async {
        let mut busy = accept(&origin).await;
        let mut open = Vec::new();
        for _ in 0..100 {
            open.push(next(&mut busy).await);
        }
        let company = async {
            let mut company = accept(&origin).await;
            let (_, mut respond) = next(&mut company).await;
            respond.send_response(Response::new(()), true).unwrap();
            drive(&mut company).await;
        };
        tokio::join!(drive(&mut busy), company);
    };
    let mut asks: Vec<_> = (0..101).map(|_| Box::pin(app.get("/"))).collect();
    let first = std::future::poll_fn(|cx| {
        for ask in &mut asks {
            if let Poll::Ready(answer) = ask.as_mut().poll(cx) {
                return Poll::Ready(answer);
            }
        }
        Poll::Pending
    });
    tokio::select! {
        answer = first => drop(answer.unwrap()),
        () = serve => panic!("both are still in use"),
    }
    assert_eq!(app.in_flight(), 100);
}
