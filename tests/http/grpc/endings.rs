//! How calls end: trailers, truncations, resets, deadlines, silence.

use std::time::{Duration, Instant};

use ::h2::Reason;

use super::support::grpc::*;
use super::support::*;

#[test]
fn a_head_that_is_all_there_is_stays_one_frame() {
    // Rule 10: trailers-only.
    let app = H2Origin::start(|mut call| async move {
        let fields = [
            GRPC,
            ("grpc-status", "5"),
            ("grpc-message", "no%20such"),
            ("why-bin", "AA"),
        ];
        call.head(200, &fields, true)
    });
    let proxy = Proxy::before(&app);
    let mut stream = begin(&proxy.h2(), "/s/m", &[TAKES_GZIP]);
    stream.send(&message(0, b"ask"), true);
    let reply = stream.head();
    assert!(
        reply.framing == wire::Framing::None,
        "END_STREAM on the head"
    );
    assert_eq!(status(&reply), Some("5"));
    assert_eq!(reply.header("grpc-message"), Some("no%20such"));
    assert_eq!(reply.header("why-bin"), Some("AA"));
}

#[test]
fn an_answer_that_ends_within_a_message_is_reset_with_internal() {
    // Rule 10: both clients report OK for it, and lose the message.
    let whole = message(0, &records(5_000));
    for (what, cut) in [
        ("half a small message", message(0, b"small")[..7].to_vec()),
        ("half a prefix", vec![0, 0, 0]),
        ("half a held message", whole[..3_000].to_vec()),
        ("a prefix alone", whole[..5].to_vec()),
    ] {
        let body = [message(0, b"first"), cut].concat();
        for ended in [&[OK][..], &[]] {
            let app = H2Origin::answer(&[GRPC], body.clone(), ended);
            let proxy = Proxy::before(&app);
            let mut stream = begin(&proxy.h2(), "/s/m", &[TAKES_GZIP]);
            stream.send(&message(0, b"ask"), true);
            let broken = stream.try_reply().expect_err(what);
            assert_eq!(broken.reason(), Some(Reason::INTERNAL_ERROR), "{what}");
            // A reset may overtake what was sent before it.
            let so_far = broken.so_far.map_or_else(Vec::new, |reply| reply.body);
            assert!(body.starts_with(&so_far), "{what}");
            assert_eq!(proxy.access("/s/m")["ended_by"], "upstream", "{what}");
        }
    }
}

#[test]
fn resets_of_the_app_reach_the_client_as_they_are() {
    // Rule 13, before the head and after it; NO_ERROR before the end is a truncation.
    let app = H2Origin::start(|mut call| async move {
        let path = call.path().to_owned();
        call.body().await?;
        if path.starts_with("/after") {
            call.head(200, &[GRPC], false)?;
            call.data(message(0, b"first"), false).await?;
        }
        call.reset(match path.rsplit('/').next() {
            Some("cancel") => Reason::CANCEL,
            Some("refused") => Reason::REFUSED_STREAM,
            Some("calm") => Reason::ENHANCE_YOUR_CALM,
            Some("internal") => Reason::INTERNAL_ERROR,
            _ => Reason::NO_ERROR,
        });
        Ok(())
    });
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    for (path, reason) in [
        ("/before/cancel", Reason::CANCEL),
        ("/before/refused", Reason::REFUSED_STREAM),
        ("/before/calm", Reason::ENHANCE_YOUR_CALM),
        ("/before/internal", Reason::INTERNAL_ERROR),
        ("/before/no_error", Reason::INTERNAL_ERROR),
        ("/after/cancel", Reason::CANCEL),
        ("/after/refused", Reason::REFUSED_STREAM),
        ("/after/calm", Reason::ENHANCE_YOUR_CALM),
        ("/after/no_error", Reason::INTERNAL_ERROR),
    ] {
        let mut stream = begin(&client, path, &[TAKES_GZIP]);
        stream.send(&message(0, b"ask"), true);
        let broken = stream.try_reply().expect_err(path);
        assert_eq!(broken.reason(), Some(reason), "{path}");
    }
}

#[test]
fn a_cancelled_call_is_cancelled_at_the_app_at_once() {
    // Rule 13, in each state of a call.
    let app = H2Origin::start(|mut call| async move {
        if call.path().starts_with("/answering") {
            call.head(200, &[GRPC], false)?;
            call.data(message(0, b"first"), false).await?;
        }
        let reason = call.gone().await?;
        assert_eq!(reason, Reason::CANCEL);
        Ok(())
    });
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    for path in [
        "/silent/open",
        "/silent/ended",
        "/answering/open",
        "/answering/ended",
    ] {
        for _ in 0..5 {
            let mut stream = begin(&client, path, &[TAKES_GZIP]);
            stream.send(&message(0, b"ask"), path.ends_with("ended"));
            if path.starts_with("/answering") {
                stream.head();
                stream.piece();
            }
            eventually("the call at the app", || (app.streams() == 1).then_some(()));
            stream.reset(Reason::CANCEL);
            eventually("its end there", || (app.streams() == 0).then_some(()));
        }
    }
    for line in proxy.access_lines() {
        assert_eq!(line["ended_by"], "client", "{line}");
    }
}

#[test]
fn the_deadline_of_a_client_is_kept_with_status_4() {
    // Rule 14.
    let app = H2Origin::start(|mut call| async move {
        if call.path() == "/s/begun" {
            call.head(200, &[GRPC], false)?;
            call.data(message(0, b"first"), false).await?;
        }
        call.gone().await?;
        Ok(())
    });
    let proxy = Proxy::before(&app);
    for (path, first) in [("/s/silent", &b""[..]), ("/s/begun", &message(0, b"first"))] {
        let began = Instant::now();
        let reply = call(
            &proxy.h2(),
            path,
            &[("grpc-timeout", "200m")],
            &message(0, b"ask"),
        );
        assert!(
            began.elapsed() >= Duration::from_millis(200),
            "not before the client's own"
        );
        assert_eq!((reply.status, status(&reply)), (200, Some("4")), "{path}");
        assert_eq!(reply.body, first);
        eventually("its end at the app", || (app.streams() == 0).then_some(()));
        assert_eq!(
            app.requests().pop().unwrap().headers()["grpc-timeout"],
            "200m"
        );
    }
}

#[test]
fn a_silent_stream_outlives_the_timeouts_of_http() {
    // Rule 14: response_head, request_body and idle are not for calls.
    let answered = Signal::new();
    let go = answered.clone();
    let app = H2Origin::start(move |mut call| {
        let go = go.clone();
        async move {
            let first = call.piece().await?;
            go.heard().await;
            call.head(200, &[GRPC], false)?;
            call.data(first.unwrap(), false).await?;
            call.body().await?;
            call.end_with(&[OK])
        }
    });
    let proxy = Setup::before(&app)
        .upstream("timeouts: { response_head: 100ms, idle: 100ms }")
        .route("timeouts: { request_body: 100ms }")
        .top("network: { keep_alive: 200ms }")
        .start();
    let mut stream = begin(&proxy.h2(), "/s/bidi", &[TAKES_GZIP]);
    stream.send(&message(0, b"hello"), false);
    // Other calls show that time went by: each of these is answered by its own deadline.
    for _ in 0..3 {
        let deadline = [("grpc-timeout", "300m")];
        assert_eq!(
            status(&call(&proxy.h2(), "/s/other", &deadline, &message(0, b"x"))),
            Some("4")
        );
    }
    answered.fire();
    let reply = stream.head();
    assert_eq!(stream.piece().unwrap(), message(0, b"hello"));
    stream.send(b"", true);
    assert_eq!(status(&stream.rest(reply)), Some("0"));
}

#[test]
fn an_answer_may_come_and_end_before_the_request_does() {
    // Rules 13 and 19.
    let app = H2Origin::start(|mut call| async move {
        call.head(200, &[GRPC], false)?;
        call.data(message(0, &records(20_000)), false).await?;
        call.end_with(&[("grpc-status", "9"), ("grpc-message", "enough")])
    });
    let proxy = Proxy::before(&app);
    let mut stream = begin(&proxy.h2(), "/s/early", &[TAKES_GZIP]);
    stream.send(&message(0, b"one of many"), false);
    let reply = stream.reply();
    assert!(plain(&reply.body, "gzip") == [records(20_000)]);
    assert_eq!(
        (status(&reply), reply.trailer("grpc-message")),
        (Some("9"), Some("enough"))
    );
}

#[test]
fn a_thousand_cancelled_calls_leave_nothing_behind() {
    let app = H2Origin::start(|mut call| async move {
        call.head(200, &[GRPC], false)?;
        let framed = message(0, &records(400_000));
        loop {
            call.data(framed.clone(), false).await?;
        }
    });
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    let round = || {
        for _ in 0..250 {
            let mut stream = begin(&client, "/s/endless", &[TAKES_GZIP]);
            stream.head();
            stream.reset(Reason::CANCEL);
        }
        eventually("the app's streams to end", || {
            (app.streams() == 0).then_some(())
        });
        proxy.until("thinwire_pool_jobs", &[], |jobs| jobs == 0.0);
        proxy.memory_kib()
    };
    let first = round();
    let last = [round(), round(), round()][2];
    assert!(last < first + (8 << 10), "{first} to {last} KiB");
}
