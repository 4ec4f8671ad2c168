use ::h2::Reason;

use super::super::*;

#[test]
fn an_answer_has_its_trailers() {
    let app = H2Origin::answer(&[("x", "1"), ("x", "2")], big(), &[("grpc-status", "0")]);
    let reply = H2::open(app.addr()).get("/call?q", &[("te", "trailers")]);
    assert_eq!(reply.all("x"), ["1", "2"]);
    assert_eq!(reply.trailer("grpc-status"), Some("0"));
    assert!(reply.body == big());
    let seen = &app.requests()[0];
    assert_eq!(
        (seen.uri().path(), &seen.headers()["te"]),
        ("/call", &"trailers".parse().unwrap())
    );
}

#[test]
fn large_bodies_pass_within_the_windows_both_ways() {
    let app = H2Origin::start(async |mut call: H2Call| {
        let (body, trailers) = call.body().await?;
        assert_eq!(trailers["sum"], "9");
        call.head(200, &[], false)?;
        call.data(body, true).await
    });
    let client = H2::with(app.addr(), h2_client().initial_window_size(70_000));
    let mut stream = client.start("POST", "/echo", &[], false);
    stream.send(&noise(4_000_000), false);
    stream.end_with(&[("sum", "9")]);
    assert!(stream.reply().body == noise(4_000_000));
}

#[test]
fn both_sides_see_why_the_other_gave_up() {
    let left = Signal::new();
    let seen = left.clone();
    let app = H2Origin::start(move |mut call| {
        let seen = seen.clone();
        async move {
            call.head(200, &[], false)?;
            if call.path() == "/leave" {
                assert_eq!(call.gone().await?, Reason::CANCEL);
                seen.fire();
            } else {
                call.data("some", false).await?;
                call.reset(Reason::ENHANCE_YOUR_CALM);
            }
            Ok(())
        }
    });
    let client = H2::open(app.addr());
    let broken = client
        .start("GET", "/reset", &[], true)
        .try_reply()
        .expect_err("a reset");
    assert_eq!(broken.reason(), Some(Reason::ENHANCE_YOUR_CALM));
    assert!(broken.was_cut());

    let mut stream = client.start("GET", "/leave", &[], true);
    stream.head();
    stream.reset(Reason::CANCEL);
    left.wait();
    eventually("the scripts to end", || (app.streams() == 0).then_some(()));
    assert_eq!(app.accepted(), 1);
}

#[test]
fn informational_answers_come_before_the_answer() {
    let go = Signal::new();
    let heard = go.clone();
    let app = H2Origin::start(move |mut call| {
        let heard = heard.clone();
        async move {
            call.informational(103, &[("link", "</a>")])?;
            heard.heard().await;
            call.head(204, &[], true)
        }
    });
    let mut stream = H2::open(app.addr()).start("GET", "/", &[], true);
    assert_eq!(stream.informational().field("link"), Some("</a>"));
    go.fire();
    stream.reply().expect(204);
}

#[test]
fn an_app_that_is_dropped_takes_its_connections_along() {
    let app = H2Origin::start(async |mut call: H2Call| {
        call.head(200, &[], false)?;
        call.gone().await.map(drop)
    });
    let mut stream = H2::open(app.addr()).start("GET", "/", &[], true);
    let reply = stream.head();
    drop(app);
    assert!(
        stream
            .try_rest(reply)
            .expect_err("a connection that ended")
            .was_cut()
    );
}

fn h2_client() -> ::h2::client::Builder {
    ::h2::client::Builder::new()
}
