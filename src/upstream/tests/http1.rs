//! HTTP/1.1: connections are kept, closed, tried again, and never shared too early.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, Version};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use super::origin::{OK, Origin, Peer, nobody};
use super::*;

#[tokio::test]
async fn a_connection_is_used_again() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let (answer, mut peer) = tokio::join!(app.get("/one"), async {
        let mut peer = origin.accept().await;
        assert!(peer.serve().await.starts_with("GET /one HTTP/1.1\r\n"));
        peer
    });
    assert_eq!(text(answer.unwrap()).await, "ok");
    let (answer, head) = tokio::join!(app.get("/two"), peer.serve());
    assert_eq!(text(answer.unwrap()).await, "ok");
    assert!(head.starts_with("GET /two HTTP/1.1\r\n"));
    assert_eq!(app.counts(0).answered.get(), 2);
}

#[tokio::test]
async fn the_head_is_in_origin_form_with_the_clients_host() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let mut absolute = Request::new(Body::Empty);
    *absolute.uri_mut() = "https://www.example.org/a?b=c".parse().unwrap();
    *absolute.version_mut() = Version::HTTP_2;
    let (answer, head) = tokio::join!(app.send(absolute), async {
        origin.accept().await.serve().await
    });
    answer.unwrap();
    assert_eq!(head, "GET /a?b=c HTTP/1.1\r\nhost: www.example.org\r\n\r\n");
}

#[tokio::test]
async fn an_unread_body_keeps_the_connection_busy() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let (first, mut busy) = tokio::join!(app.get("/"), async {
        let mut peer = origin.accept().await;
        peer.head().await;
        peer.say("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nha")
            .await;
        peer
    });
    let (second, _peer) = tokio::join!(app.get("/"), async {
        let mut peer = origin.accept().await;
        peer.serve().await;
        peer
    });
    assert_eq!(text(second.unwrap()).await, "ok");
    assert_eq!(app.in_flight(), 1);
    busy.say("lf").await;
    assert_eq!(text(first.unwrap()).await, "half");
    assert_eq!(app.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_before_the_app_does_it() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let (answer, peer) = tokio::join!(app.get("/"), async {
        let mut peer = origin.accept().await;
        peer.serve().await;
        peer
    });
    text(answer.unwrap()).await;
    let since = tokio::time::Instant::now();
    peer.closed().await;
    let idle = since.elapsed();
    assert!(
        idle >= Duration::from_secs(3) && idle < Duration::from_secs(5),
        "{idle:?}"
    );
}

#[tokio::test]
async fn closing_what_is_idle() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let (answer, peer) = tokio::join!(app.get("/"), async {
        let mut peer = origin.accept().await;
        peer.serve().await;
        peer
    });
    text(answer.unwrap()).await;
    app.upstream.close_idle();
    peer.closed().await;
}

/// A first exchange, then `request` on the same connection, which the app closes when it has
/// read it.
async fn closed_under(
    app: &App,
    origin: &Origin,
    request: Request<Body>,
) -> Result<Answer, SendError> {
    let (answer, mut peer) = tokio::join!(app.get("/"), async {
        let mut peer = origin.accept().await;
        peer.serve().await;
        peer
    });
    text(answer.unwrap()).await;
    let server = async {
        peer.head().await;
        drop(peer);
        // A second connection comes, or the answer is an error and this is left behind.
        origin.accept().await.serve().await;
    };
    tokio::select! {
        answer = app.send(request) => answer,
        ((), answer) = async { tokio::join!(server, std::future::pending()) } => answer,
    }
}

#[tokio::test]
async fn a_repeatable_request_is_sent_again_when_a_kept_connection_closes() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    for body in [Body::Empty, full("all of it")] {
        let request = request(Method::PUT, "/", body);
        assert_eq!(
            text(closed_under(&app, &origin, request).await.unwrap()).await,
            "ok"
        );
        app.upstream.close_idle();
    }
    assert_eq!(app.counts(0).retried.get(), 2);
    assert_eq!(app.counts(0).failed.get(), 0);
}

#[tokio::test]
async fn a_post_is_never_sent_again() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let answer = closed_under(&app, &origin, request(Method::POST, "/", Body::Empty)).await;
    assert!(matches!(answer, Err(SendError::Closed(_))));
    assert_eq!(app.counts(0).retried.get(), 0);
    assert_eq!(app.counts(0).failed.get(), 1);
    assert!(origin.is_quiet().await);
}

#[tokio::test]
async fn a_post_that_found_its_connection_closed_was_not_sent() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let (answer, peer) = tokio::join!(app.get("/"), async {
        let mut peer = origin.accept().await;
        peer.serve().await;
        peer
    });
    text(answer.unwrap()).await;
    // The close and this byte arrive at once: the request is on its way to the connection before
    // its driver has looked.
    let (mut near, mut far) = UnixStream::pair().unwrap();
    drop(peer);
    far.write_all(b".").await.unwrap();
    near.read_u8().await.unwrap();
    let post = request(Method::POST, "/", full("once"));
    let (answer, head) = tokio::join!(app.send(post), async {
        origin.accept().await.serve().await
    });
    assert_eq!(text(answer.unwrap()).await, "ok");
    assert!(head.starts_with("POST / "));
    assert_eq!(app.counts(0).retried.get(), 1);
}

#[tokio::test]
async fn a_body_that_was_begun_is_never_sent_again() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let (mut feed, body) = fed().await;
    feed.piece("begun").await;
    let answer = closed_under(&app, &origin, request(Method::PUT, "/", body)).await;
    assert!(matches!(answer, Err(SendError::Closed(_))));
    assert!(origin.is_quiet().await);
}

#[tokio::test]
async fn a_body_that_nobody_took_is_sent_again() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let (mut feed, body) = fed().await;
    let (answer, mut peer) = tokio::join!(app.get("/"), async {
        let mut peer = origin.accept().await;
        peer.serve().await;
        peer
    });
    text(answer.unwrap()).await;
    let (answer, _peer) = tokio::join!(app.send(request(Method::PUT, "/", body)), async {
        peer.head().await;
        drop(peer);
        let mut peer = origin.accept().await;
        peer.head().await;
        feed.piece("late").await;
        feed.end().await;
        assert_eq!(peer.through("0\r\n\r\n").await, "4\r\nlate\r\n0\r\n\r\n");
        peer.say(OK).await;
        peer
    });
    assert_eq!(text(answer.unwrap()).await, "ok");
}

#[tokio::test]
async fn a_fresh_connection_that_closes_is_an_answer_enough() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let (answer, ()) = tokio::join!(app.get("/"), async {
        origin.accept().await.head().await;
    });
    assert!(matches!(answer, Err(SendError::Closed(_))));
    assert!(origin.is_quiet().await);
}

#[tokio::test]
async fn retries_zero_means_none() {
    let origin = Origin::new().await;
    let app = App::new(&settings::Upstream {
        retries: 0,
        ..settings(vec![origin.server()])
    });
    let answer = closed_under(&app, &origin, request(Method::GET, "/", Body::Empty)).await;
    assert!(matches!(answer, Err(SendError::Closed(_))));
}

#[tokio::test]
async fn a_server_that_refuses_is_passed_over_whatever_the_method() {
    let origin = Origin::new().await;
    let app = App::new(&settings(vec![nobody().await, origin.server()]));
    let post = request(Method::POST, "/", full("once"));
    let (answer, head) = tokio::join!(app.send(post), async {
        origin.accept().await.serve().await
    });
    let answer = answer.unwrap();
    assert_eq!(*answer.server, *origin.server().to_string());
    assert!(head.contains("content-length: 4\r\n"));
    assert_eq!(app.counts(0).connect_failed.get(), 1);
    assert_eq!(app.counts(1).answered.get(), 1);
}

#[tokio::test]
async fn nobody_listens_anywhere() {
    let app = App::new(&settings(vec![nobody().await, nobody().await]));
    let error = app.get("/").await.err().unwrap();
    assert!(matches!(error, SendError::Connect { .. }), "{error:?}");
    assert_eq!(
        app.counts(0).connect_failed.get() + app.counts(1).connect_failed.get(),
        2
    );
    assert_eq!(app.in_flight(), 0);
}

#[tokio::test]
async fn an_answer_that_is_no_http() {
    for nonsense in [
        "SSH-2.0-dropbear\r\n",
        "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
    ] {
        let origin = Origin::new().await;
        let app = App::of(origin.server());
        let (answer, _peer) = tokio::join!(app.get("/"), async {
            let mut peer = origin.accept().await;
            peer.head().await;
            peer.say(nonsense).await;
            peer
        });
        assert!(matches!(answer, Err(SendError::Malformed(_))), "{nonsense}");
        assert_eq!(app.counts(0).failed.get(), 1);
    }
}

#[tokio::test]
async fn an_upgraded_connection_is_a_tunnel_and_not_kept() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let mut asks = request(Method::GET, "/", Body::Empty);
    asks.headers_mut()
        .insert("connection", "upgrade".parse().unwrap());
    asks.headers_mut()
        .insert("upgrade", "websocket".parse().unwrap());
    let (answer, mut peer) = tokio::join!(app.send(asks), async {
        let mut peer = origin.accept().await;
        let head = peer.head().await;
        assert!(
            head.contains("connection: upgrade\r\nupgrade: websocket\r\n"),
            "{head}"
        );
        peer.say("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\n")
            .await;
        peer.say("upgrade: websocket\r\n\r\nearly").await;
        peer
    });
    let mut answer = answer.unwrap();
    assert_eq!(answer.response.status(), StatusCode::SWITCHING_PROTOCOLS);
    let upgraded = within(hyper::upgrade::on(&mut answer.response))
        .await
        .unwrap();
    let mut tunnel = Peer::new(hyper_util::rt::TokioIo::new(upgraded));
    assert_eq!(tunnel.through("early").await, "early");
    tunnel.say("there").await;
    assert_eq!(peer.through("there").await, "there");
    // Its place is taken as long as it lives, and it is nobody else's.
    assert_eq!(app.in_flight(), 1);
    let (other, _) = tokio::join!(app.get("/"), async { origin.accept().await.serve().await });
    text(other.unwrap()).await;
    tunnel.stream.shutdown().await.unwrap();
    drop((tunnel, answer));
    peer.closed().await;
    assert_eq!(app.in_flight(), 0);
}

#[tokio::test]
async fn informational_answers_reach_the_caller() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let mut asks = request(Method::GET, "/", Body::Empty);
    hyper::ext::on_informational(&mut asks, move |answer| sink.lock().push(answer.status()));
    let (answer, _peer) = tokio::join!(app.send(asks), async {
        let mut peer = origin.accept().await;
        peer.head().await;
        peer.say("HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n")
            .await;
        peer.say(OK).await;
        peer
    });
    assert_eq!(answer.unwrap().response.status(), StatusCode::OK);
    assert_eq!(*seen.lock(), [StatusCode::EARLY_HINTS]);
}

#[tokio::test]
async fn an_application_on_a_unix_socket() {
    let path = std::env::temp_dir().join(format!("thinwire-upstream-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let app = App::of(Server::Unix(path.clone()));
    let (answer, ()) = tokio::join!(app.get("/"), async {
        let mut peer = Peer::new(listener.accept().await.unwrap().0);
        assert!(peer.serve().await.contains("host: www.example.org\r\n"));
    });
    assert_eq!(text(answer.unwrap()).await, "ok");
    std::fs::remove_file(&path).unwrap();
}

#[tokio::test]
async fn a_proxy_header_speaks_for_one_client_and_its_connection_is_not_kept() {
    let origin = Origin::new().await;
    let v1 = settings::Upstream {
        proxy_protocol: ProxyProtocol::V1,
        ..settings(vec![origin.server()])
    };
    let app = App::new(&v1);
    for client in ["192.0.2.1:1000", "192.0.2.2:1000"] {
        let call = Call {
            client: client.parse().ok(),
            local: "192.0.2.9:80".parse().ok(),
            ..Call::default()
        };
        let asks = app
            .upstream
            .send(request(Method::GET, "/", Body::Empty), call);
        let (answer, peer) = tokio::join!(within(asks), async {
            let mut peer = origin.accept().await;
            let (ip, _) = client.split_once(':').unwrap();
            let line = peer.through("\r\n").await;
            assert_eq!(line, format!("PROXY TCP4 {ip} 192.0.2.9 1000 80\r\n"));
            peer.serve().await;
            peer
        });
        text(answer.unwrap()).await;
        peer.closed().await;
    }
}

#[tokio::test]
async fn large_bodies_pass_both_ways() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let sent = Bytes::from(vec![b'a'; 3_000_000]);
    let (answer, _peer) = tokio::join!(
        app.send(request(Method::POST, "/", Body::Full(sent))),
        async {
            let mut peer = origin.accept().await;
            peer.head().await;
            let got = peer.through(&"a".repeat(3_000_000)).await;
            peer.say(format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{got}",
                got.len()
            ))
            .await;
            peer
        }
    );
    assert_eq!(text(answer.unwrap()).await.len(), 3_000_000);
}
