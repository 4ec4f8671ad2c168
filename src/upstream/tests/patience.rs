//! Limits: of time, of connections; and callers who leave.

use std::time::Duration;

use tokio::time::Instant;

use super::origin::{OK, Origin};
use super::*;

fn narrow(servers: Vec<Server>, connect: u64) -> App {
    App::new(&settings::Upstream {
        max_connections: 1,
        connect_timeout: Duration::from_secs(connect),
        ..settings(servers)
    })
}

#[tokio::test(start_paused = true)]
async fn all_connections_busy_for_too_long() {
    let origin = Origin::new().await;
    let app = narrow(vec![origin.server()], 2);
    let (first, mut peer) = tokio::join!(app.get("/"), async {
        let mut peer = origin.accept().await;
        peer.head().await;
        peer.say("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n")
            .await;
        peer
    });
    assert!(matches!(app.get("/").await, Err(SendError::Saturated)));
    peer.say("ok").await;
    assert_eq!(text(first.unwrap()).await, "ok");
    let (third, _) = tokio::join!(app.get("/"), peer.serve());
    assert_eq!(text(third.unwrap()).await, "ok");
}

#[tokio::test]
async fn the_one_connection_serves_all_who_wait() {
    let origin = Origin::new().await;
    let app = narrow(vec![origin.server()], 10);
    let serve = async {
        let mut peer = origin.accept().await;
        for _ in 0..50 {
            peer.serve().await;
        }
        peer
    };
    let ask = async || {
        for _ in 0..10 {
            assert_eq!(text(app.get("/").await.unwrap()).await, "ok");
        }
    };
    tokio::join!(serve, ask(), ask(), ask(), ask(), ask());
    assert!(origin.is_quiet().await);
}

#[tokio::test]
async fn an_idle_connection_makes_room_for_one_to_another_server() {
    let (one, two) = (Origin::new().await, Origin::new().await);
    let app = narrow(vec![one.server(), two.server()], 10);
    for _ in 0..2 {
        let (answer, idle) = tokio::join!(app.get("/"), async {
            let mut peer = one.accept().await;
            peer.serve().await;
            peer
        });
        text(answer.unwrap()).await;
        let (answer, idle_too) = tokio::join!(app.get("/"), async {
            idle.closed().await;
            let mut peer = two.accept().await;
            peer.serve().await;
            peer
        });
        text(answer.unwrap()).await;
        drop(idle_too);
    }
}

#[tokio::test]
async fn a_connection_kept_by_another_thread_serves_when_no_more_may_be_opened() {
    let origin = Origin::new().await;
    let app = Arc::new(narrow(vec![origin.server()], 10));
    let (answer, mut peer) = tokio::join!(app.get("/"), async {
        let mut peer = origin.accept().await;
        peer.serve().await;
        peer
    });
    text(answer.unwrap()).await;
    let there = Arc::clone(&app);
    let asks = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime
            .expect("a runtime")
            .block_on(async { text(there.get("/far").await.unwrap()).await })
    });
    assert!(peer.serve().await.starts_with("GET /far "));
    let answer = tokio::task::spawn(async move {
        while !asks.is_finished() {
            tokio::task::yield_now().await;
        }
        asks.join()
    });
    assert_eq!(within(answer).await.unwrap().expect("no panic"), "ok");
}

#[tokio::test(start_paused = true)]
async fn a_late_head() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let (answer, ()) = tokio::join!(app.get("/"), async {
        let mut peer = origin.accept().await;
        peer.head().await;
        peer.closed().await;
    });
    assert!(matches!(answer, Err(SendError::HeadTimeout)));
    assert_eq!(app.counts(0).timed_out.get(), 1);
    assert_eq!(app.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_slow_upload_is_no_late_head() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let (mut feed, body) = fed().await;
    let began = Instant::now();
    let (answer, _peer) = tokio::join!(app.send(request(Method::PUT, "/", body)), async {
        let mut peer = origin.accept().await;
        peer.head().await;
        for piece in ["one", "two", "six"] {
            tokio::time::sleep(Duration::from_secs(4)).await;
            feed.piece(piece).await;
            peer.through(piece).await;
        }
        feed.end().await;
        peer.through("0\r\n\r\n").await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        peer.say(OK).await;
        peer
    });
    answer.unwrap();
    assert!(began.elapsed() >= Duration::from_secs(16));
}

#[tokio::test(start_paused = true)]
async fn the_head_is_late_from_the_end_of_an_upload() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let (mut feed, body) = fed().await;
    let began = Instant::now();
    let (answer, ()) = tokio::join!(app.send(request(Method::PUT, "/", body)), async {
        let mut peer = origin.accept().await;
        peer.head().await;
        tokio::time::sleep(Duration::from_secs(4)).await;
        feed.end().await;
        peer.closed().await;
    });
    assert!(matches!(answer, Err(SendError::HeadTimeout)));
    let waited = began.elapsed();
    assert!(
        waited >= Duration::from_secs(9) && waited < Duration::from_secs(12),
        "{waited:?}"
    );
}

#[tokio::test]
async fn a_client_that_breaks_its_upload_is_not_the_servers_fault() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let (feed, body) = fed().await;
    let (answer, ()) = tokio::join!(app.send(request(Method::PUT, "/", body)), async {
        let mut peer = origin.accept().await;
        peer.head().await;
        drop(feed);
        peer.closed().await;
    });
    assert!(matches!(answer, Err(SendError::RequestBody(_))));
    assert_eq!(app.counts(0).failed.get(), 0);
    assert_eq!(app.counts(0).canceled.get(), 1);
}

#[tokio::test]
async fn a_caller_who_leaves_before_the_head_ends_the_exchange() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let peer = {
        let asks = app.get("/");
        tokio::select! {
            _ = asks => panic!("nobody answered"),
            peer = async {
                let mut peer = origin.accept().await;
                peer.head().await;
                peer
            } => peer,
        }
    };
    assert_eq!(app.in_flight(), 0);
    assert_eq!(app.counts(0).canceled.get(), 1);
    peer.closed().await;
    // Its place is free again.
    let places: Vec<_> = std::iter::from_fn(|| app.upstream.gate.enter()).collect();
    assert_eq!(places.len(), 16);
}

#[tokio::test]
async fn a_caller_who_leaves_the_body_ends_the_exchange() {
    let origin = Origin::new().await;
    let app = App::of(origin.server());
    let (answer, peer) = tokio::join!(app.get("/"), async {
        let mut peer = origin.accept().await;
        peer.head().await;
        peer.say("HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\nbegun")
            .await;
        peer
    });
    let answer = answer.unwrap();
    assert_eq!(app.in_flight(), 1);
    drop(answer);
    assert_eq!(app.in_flight(), 0);
    peer.closed().await;
    let places: Vec<_> = std::iter::from_fn(|| app.upstream.gate.enter()).collect();
    assert_eq!(places.len(), 16);
}

#[tokio::test]
async fn the_least_busy_server_is_asked() {
    let (one, two) = (Origin::new().await, Origin::new().await);
    let least = settings::Upstream {
        balance: Balance::LeastRequests,
        ..settings(vec![one.server(), two.server()])
    };
    let app = App::new(&least);
    let answer = async |origin: &Origin| {
        let mut peer = origin.accept().await;
        peer.head().await;
        peer.say(OK).await;
        peer
    };
    let (held, _one) = tokio::join!(app.get("/"), answer(&one));
    // The turn would be the second's, then the first's again: the first is busy.
    let (free, mut peer) = tokio::join!(app.get("/"), answer(&two));
    text(free.unwrap()).await;
    let (free, _) = tokio::join!(app.get("/"), peer.serve());
    assert_eq!(*free.unwrap().server, *two.server().to_string());
    drop(held);
}
