//! What the service does with the gate: hints, parking, tunnels.

use super::*;

#[tokio::test]
async fn hints_go_out_before_the_answer_and_never_into_it() {
    let mut scene = scene();
    scene.send(get("/hints")).await;
    let answer = scene.until("hinted").await;
    assert!(answer.starts_with("HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200"));

    // From another task, while the service still waits for the app.
    scene.send(get("/wait")).await;
    scene.app.arrived.notified().await;
    scene.settle().await;
    let hints = scene.app.waiting.lock().clone().unwrap();
    assert!(hints.send(HINTS));
    assert_eq!(scene.until("\r\n\r\n").await.as_bytes(), HINTS);
    assert!(hints.send(HINTS));
    assert_eq!(scene.until("\r\n\r\n").await.as_bytes(), HINTS);
    scene.app.go.notify_one();
    scene.until("waited").await;
    assert!(!hints.send(HINTS));

    // Pipelined behind an answer, they belong to the second one only.
    scene.send(get("/a") + &get("/hints")).await;
    let answers = scene.until("hinted").await;
    assert_eq!(statuses(&answers), ["200", "103", "200"]);
    assert!(!hints.send(HINTS));
    assert_eq!(*scene.app.hinted.lock(), [true, true]);
}

#[tokio::test]
async fn hints_may_follow_hypers_own_100() {
    let mut scene = scene();
    let head =
        "POST /hints HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n";
    scene.send(head).await;
    assert_eq!(scene.until("\r\n\r\n").await.as_bytes(), write::CONTINUE);
    scene.send("abc").await;
    assert_eq!(statuses(&scene.until("hinted").await), ["103", "200"]);
}

#[tokio::test]
async fn hints_are_dropped_while_an_earlier_answer_is_on_its_way() {
    let (mut client, socket) = duplex(256);
    let mut gate = Gate::new(socket, LIMITS, b"");
    let handle = gate.handle();
    client
        .write_all((get("/") + &get("/")).as_bytes())
        .await
        .unwrap();
    let mut both = vec![0; get("/").len() * 2];
    gate.read_exact(&mut both).await.unwrap();
    let Turn::Serve(first) = handle.begin() else {
        panic!("refused")
    };
    gate.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    drop(first);
    let Turn::Serve(second) = handle.begin() else {
        panic!("refused")
    };
    assert!(!second.hints().send(HINTS));
    gate.flush().await.unwrap();
    assert!(second.hints().send(HINTS));
    gate.write_all(b"H").await.unwrap();
    assert!(!second.hints().send(HINTS));
    drop(gate);
    let mut seen = String::new();
    client.read_to_string(&mut seen).await.unwrap();
    assert_eq!(statuses(&seen), ["200", "103"]);
    assert!(seen.ends_with("\r\n\r\nH"));
}

#[tokio::test]
async fn an_idle_connection_is_parked_and_wakes_up_again() {
    let (client, socket) = duplex(1024);
    let app = Arc::<App>::default();
    let mut gate = Gate::new(socket, LIMITS, b"");
    let handle = gate.handle();
    let mut scene = Scene {
        client,
        app,
        server: tokio::spawn(async { Ok(()) }),
    };
    for path in ["/a", "/b", "/c"] {
        assert!(handle.is_idle());
        scene.send(get(path)).await;
        assert!(poll_fn(|cx| gate.poll_arrival(cx)).await.unwrap());
        assert!(!handle.is_idle());
        let mut connection = connection!(gate, &scene.app);
        poll_fn(|cx| {
            assert!(connection.poll_without_shutdown(cx).is_pending());
            if handle.is_idle() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        let parts = connection.into_parts();
        assert!(parts.read_buf.is_empty());
        gate = parts.io.into_inner();
        scene.until(path).await;
    }
    let written = handle.traffic().written;
    assert!(written > 0);
    assert_eq!(handle.traffic().read, get("/a").len() as u64 * 3);
    scene.client.shutdown().await.unwrap();
    assert!(!poll_fn(|cx| gate.poll_arrival(cx)).await.unwrap());
}

#[tokio::test]
async fn a_connection_is_not_idle_while_anything_of_it_is_needed() {
    let gate = Gate::new(duplex(1).0, LIMITS, get("/").as_bytes());
    let handle = gate.handle();
    assert!(!handle.is_idle(), "a request that nobody has read");
    drop(gate);

    let (mut client, socket) = duplex(1024);
    let mut gate = Gate::new(socket, LIMITS, b"");
    let handle = gate.handle();
    client.write_all(get("/").as_bytes()).await.unwrap();
    let mut space = [0; 1024];
    let count = gate.read(&mut space).await.unwrap();
    assert_eq!(&space[..count], get("/").as_bytes());
    assert!(!handle.is_idle(), "a request that the service has not seen");
    let Turn::Serve(exchange) = handle.begin() else {
        panic!("refused")
    };
    let part = exchange.part();
    assert!(!handle.is_idle(), "a request without an answer");
    gate.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    drop(exchange);
    assert!(!handle.is_idle(), "an answer that was not flushed");
    gate.flush().await.unwrap();
    assert!(!handle.is_idle(), "a body that is still being read");
    drop(part);
    assert!(handle.is_idle());
    client.write_all(b"GET").await.unwrap();
    tokio::select! {
        biased;
        _ = gate.read(&mut space) => panic!("a part of a head passed"),
        () = tokio::task::yield_now() => {}
    }
    assert!(!handle.is_idle(), "a head that has begun");
}

fn upgrade(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
}

#[tokio::test]
async fn early_bytes_of_a_tunnel_are_not_taken_for_a_request() {
    let mut scene = scene();
    scene.send(upgrade("/tunnel") + "\n early \0").await;
    let head = scene.until("\r\n\r\n").await;
    assert_eq!(statuses(&head), ["101"]);
    scene.until("\n early \0").await;
    scene.send("\r\nlate").await;
    scene.until("\r\nlate").await;
    scene.client.shutdown().await.unwrap();
    assert_eq!(scene.rest().await, "");
    assert_eq!(scene.app.refusals(), []);
}

#[tokio::test]
async fn after_a_declined_upgrade_requests_go_on() {
    let mut scene = scene();
    scene
        .send(upgrade("/a") + &upgrade("/b") + &get("/c"))
        .await;
    scene.until("/a").await;
    scene.until("/b").await;
    scene.until("/c").await;
    scene.send(upgrade("/d")).await;
    scene.until("/d").await;
    scene.settle().await;
    scene.send(get("/e") + "\n").await;
    assert_eq!(statuses(&scene.rest().await), ["200", "400"]);
}

#[tokio::test]
async fn early_bytes_are_held_within_bounds() {
    let mut scene = scene_with(1024, b"");
    scene
        .send("GET /wait HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
        .await;
    scene.app.arrived.notified().await;
    let early = vec![b'e'; LIMITS.head * 4];
    tokio::select! {
        biased;
        _ = scene.client.write_all(&early) => panic!("all of it was taken"),
        () = async { for _ in 0..500 { tokio::task::yield_now().await } } => {}
    }
    scene.app.go.notify_one();
    let answers = scene.until("waited").await;
    assert_eq!(statuses(&answers), ["200"]);
}

#[test]
fn an_idle_gate_is_small() {
    assert!(size_of::<Gate<()>>() <= 320, "{}", size_of::<Gate<()>>());
    assert!(size_of::<Shared>() <= 160, "{}", size_of::<Shared>());
}
