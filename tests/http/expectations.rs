//! Expect (RFC 9110 section 10.1.1): 100-continue is answered here, once the app is there.

use crate::support::{Nowhere, Origin, Proxy};

const HEAD: &str =
    "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-Continue\r\n\r\n";

fn taking() -> Origin {
    Origin::start(|call| {
        let body = call.body()?;
        call.answer(200, &[], &body)
    })
}

#[test]
fn a_client_that_waits_is_told_to_go_on_and_the_app_never_hears_of_it() {
    let app = taking();
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    for _ in 0..2 {
        conn.send(HEAD);
        let told = conn.any_head().expect("an answer before the body");
        assert!(told.line.starts_with("HTTP/1.1 100"), "{}", told.line);
        conn.send("body");
        let reply = conn.reply().expect(200);
        assert_eq!(reply.body, b"body");
        assert!(reply.informational.is_empty(), "told twice");
        assert_eq!(app.last().head.field("expect"), None);
    }
}

#[test]
fn a_client_that_does_not_wait_is_served_too() {
    let app = taking();
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.send(format!("{HEAD}body"));
    assert_eq!(conn.reply().expect(200).body, b"body");
    assert_eq!(conn.get("/next", &[]).status, 200);
}

#[test]
fn nobody_is_told_to_go_on_while_there_is_no_app() {
    let gone = Nowhere::reserve();
    let proxy = Proxy::before(&gone);
    let mut conn = proxy.conn();
    conn.send(HEAD);
    let reply = conn.reply();
    assert_eq!(reply.status, 502);
    assert!(reply.informational.is_empty());
}

#[test]
fn an_app_that_answers_at_once_spares_the_upload() {
    let app = Origin::start(|call| {
        call.answer(403, &[("Connection", "close")], b"no")?;
        call.close()
    });
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.send(HEAD);
    assert_eq!(conn.reply().status, 403);
}

#[test]
fn an_expectation_that_nobody_defined_is_417() {
    let app = taking();
    let proxy = Proxy::before(&app);
    for expectation in ["200-ok", "100-continue, other", "100-continue;x=1"] {
        let reply = proxy.get("/x", &[("Expect", expectation)]);
        assert_eq!(reply.status, 417, "{expectation}");
        let reply = proxy.h2().get("/x", &[("expect", expectation)]);
        assert_eq!(reply.status, 417, "{expectation} over h2");
    }
    assert!(app.requests().is_empty());
    assert_eq!(proxy.access("/x")["status"], 417);
}

#[test]
fn a_refused_expectation_costs_no_connection() {
    let app = taking();
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    assert_eq!(conn.get("/", &[("Expect", "more")]).status, 417);
    assert_eq!(conn.get("/", &[]).status, 200);
}

#[test]
fn an_http10_client_cannot_wait_for_100() {
    let app = taking();
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    let head = "POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n";
    conn.send(format!("{head}body"));
    let reply = conn.reply().expect(200);
    assert!(reply.informational.is_empty());
    assert_eq!(app.last().head.field("expect"), None);
}

#[test]
fn an_h2_upload_that_expects_100_goes_through() {
    let app = taking();
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    let mut stream = client.start("POST", "/", &[("expect", "100-continue")], false);
    stream.send(b"body", true);
    assert_eq!(stream.reply().expect(200).body, b"body");
    assert_eq!(app.last().head.field("expect"), None);
}
