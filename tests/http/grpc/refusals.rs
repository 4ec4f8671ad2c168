//! What the proxy itself has to say: 200, and the status in a head that is all there is.

use std::net::TcpListener;

use super::support::grpc::*;
use super::support::wire::Framing;
use super::support::*;

/// A head with this status, no body, and a message in clean text.
#[track_caller]
fn refused(reply: &Reply, code: &str) {
    assert_eq!((reply.status, status(reply)), (200, Some(code)));
    assert_eq!(reply.header("content-type"), Some("application/grpc"));
    assert!(reply.framing == Framing::None && reply.body.is_empty());
    let message = reply.header("grpc-message").expect("words");
    assert!(message.len() > 5 && !message.contains('<'), "{message}");
}

#[test]
fn an_app_that_cannot_be_reached_is_unavailable() {
    // Rule 12.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = nobody.local_addr().unwrap();
    drop(nobody);
    let app = H2Origin::answer(&[GRPC], "", &[OK]);
    let yaml = Setup::before(&app)
        .yaml()
        .replace(&app.server(), &format!("http://{addr}"));
    let proxy = Proxy::start(&yaml);
    refused(&call(&proxy.h2(), "/s/m", &[], &message(0, b"x")), "14");
    let line = proxy.access("/s/m");
    assert_eq!(
        (&line["status"], &line["ended_by"]),
        (&200.into(), &"upstream".into())
    );
}

#[test]
fn no_route_is_unimplemented() {
    let app = H2Origin::answer(&[GRPC], "", &[OK]);
    let yaml = Setup::before(&app).yaml().replace("path: /", "path: /only");
    let proxy = Proxy::start(&yaml);
    refused(&call(&proxy.h2(), "/s/m", &[], &message(0, b"x")), "12");
}

#[test]
fn an_app_that_speaks_http1_is_unimplemented() {
    let app = Origin::json(big());
    let proxy = Proxy::before(&app);
    refused(&call(&proxy.h2(), "/s/m", &[], &message(0, b"x")), "12");
    assert!(app.requests().is_empty());
}

#[test]
fn what_an_app_says_in_http_stays_http() {
    let app = H2Origin::start(|mut call| async move {
        call.body().await?;
        call.head(503, &[("content-type", "text/html")], false)?;
        call.data("<html>busy</html>", true).await
    });
    let proxy = Proxy::before(&app);
    let reply = call(&proxy.h2(), "/s/m", &[TAKES_GZIP], &message(0, b"x"));
    assert_eq!(
        (reply.status, reply.body.as_slice()),
        (503, &b"<html>busy</html>"[..])
    );
}
