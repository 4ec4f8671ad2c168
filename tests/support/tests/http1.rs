use std::io;
use std::sync::Mutex;

use super::super::wire::Framing;
use super::super::*;

#[test]
fn a_reply_is_seen_to_the_last_byte() {
    let app = Origin::answer(
        203,
        &[("X-One", "1"), ("Vary", "a"), ("Vary", "Accept-Encoding")],
        "body",
    );
    let reply = get(app.addr(), "/x?y", &[("Accept-Encoding", "gzip")]).expect(203);
    let raw = b"HTTP/1.1 203 Scripted\r\nX-One: 1\r\nVary: a\r\nVary: Accept-Encoding\r\nContent-Length: 4\r\n\r\n";
    assert_eq!(reply.head.raw, raw);
    assert_eq!(
        (reply.body.as_slice(), reply.framing),
        (b"body".as_slice(), Framing::Length(4))
    );
    assert_eq!(reply.list("vary"), ["a", "Accept-Encoding"]);
    assert_eq!(reply.varies(), 1);
    assert_eq!(reply.coding(), "identity");
}

#[test]
fn a_request_is_recorded_as_it_came() {
    let app = Origin::json(big());
    let mut conn = Conn::open(app.addr());
    let raw = "PUT /p HTTP/1.1\r\nhOsT:x\r\nTransfer-Encoding: chunked\r\n\r\n3;e=1\r\nabc\r\n0\r\nSum: 9\r\n\r\n";
    conn.send(raw);
    assert_eq!(conn.reply().decoded(), big());
    let seen = app.last();
    assert_eq!(String::from_utf8_lossy(&seen.raw), raw);
    assert_eq!(seen.head.fields[0], ("hOsT".to_owned(), "x".to_owned()));
    assert_eq!(
        (seen.body.as_slice(), seen.whole),
        (b"abc".as_slice(), true)
    );
    assert_eq!(seen.trailers, [("Sum".to_owned(), "9".to_owned())]);
}

#[test]
fn a_connection_is_kept_and_a_head_has_no_body() {
    let app = Origin::json(big());
    let mut conn = Conn::open(app.addr());
    let head = conn.ask("HEAD", "/1", &[], b"");
    assert_eq!(
        head.header("content-length"),
        Some(big().len().to_string().as_str())
    );
    assert!(head.body.is_empty());
    // Two requests at once, two answers in order.
    conn.send("GET /2 HTTP/1.1\r\nHost: x\r\n\r\nGET /3 HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_eq!(conn.reply().body, big());
    assert_eq!(conn.reply().body, big());
    let lines: Vec<_> = app
        .requests()
        .into_iter()
        .map(|seen| seen.head.line)
        .collect();
    assert_eq!(
        lines,
        ["HEAD /1 HTTP/1.1", "GET /2 HTTP/1.1", "GET /3 HTTP/1.1"]
    );
    assert_eq!((app.accepted(), app.open()), (1, 1));
    drop(conn);
    eventually("the connection to end", || (app.open() == 0).then_some(()));
}

#[test]
fn a_script_decides_when_and_how() {
    let go = Signal::new();
    let heard = go.clone();
    let app = Origin::start(move |call| {
        call.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")?;
        call.chunked(200, &[("Trailer", "Sum")])?;
        call.chunk("first")?;
        call.wait(&heard);
        call.chunk("second")?;
        call.end_with(&[("Sum", "2")])
    });
    let mut conn = Conn::open(app.addr());
    conn.request("GET", "/", &[], b"");
    let reply = conn.head();
    assert_eq!(reply.informational[0].field("link"), Some("</a>"));
    assert_eq!(conn.piece().as_deref(), Some(b"first".as_slice()));
    // The rest is not sent before this.
    go.fire();
    let reply = conn.rest(reply);
    assert_eq!(
        (reply.body.as_slice(), reply.chunks.as_slice()),
        (b"second".as_slice(), [5, 6].as_slice())
    );
    assert_eq!(reply.trailer("sum"), Some("2"));
}

#[test]
fn a_body_that_breaks_off_is_not_taken_for_complete() {
    let app = Origin::start(|call| match call.path() {
        "/length" => {
            call.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")?;
            call.close()
        }
        "/chunked" => {
            call.chunked(200, &[])?;
            call.chunk("abc")?;
            call.close()
        }
        "/nonsense" => call.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"),
        "/reset" => call.reset(),
        _ => call.close(),
    });
    let broken = |target: &str| {
        let mut conn = Conn::open(app.addr());
        conn.request("GET", target, &[], b"");
        conn.try_reply().expect_err(target)
    };
    for target in ["/length", "/chunked"] {
        let broken = broken(target);
        assert!(broken.was_cut(), "{broken}");
        assert_eq!(broken.so_far.expect("a head").body, b"abc");
    }
    assert_eq!(broken("/nonsense").kind(), Some(io::ErrorKind::InvalidData));
    assert_eq!(
        broken("/reset").kind(),
        Some(io::ErrorKind::ConnectionReset)
    );
    assert_eq!(broken("/close").kind(), Some(io::ErrorKind::UnexpectedEof));
}

#[test]
fn a_body_may_end_with_its_connection() {
    let app = Origin::start(|call| {
        call.send("HTTP/1.0 200 OK\r\n\r\nall of it")?;
        call.close()
    });
    let reply = get(app.addr(), "/", &[]);
    assert_eq!(
        (reply.version.as_str(), reply.framing),
        ("HTTP/1.0", Framing::Close)
    );
    assert_eq!(reply.body, b"all of it");
}

#[test]
fn an_app_may_answer_before_the_upload_is_there() {
    let app = Origin::start(|call| {
        let first = call.piece()?;
        assert_eq!(first.as_deref(), Some(b"part".as_slice()));
        call.answer(413, &[], b"enough")
    });
    let mut conn = Conn::open(app.addr());
    conn.request("POST", "/", &[("Transfer-Encoding", "chunked")], b"");
    conn.chunk(b"part");
    conn.reply().expect(413);
    assert!(!app.last().whole);
    conn.closed();
}

#[test]
fn an_app_sees_its_client_leave() {
    let left = Signal::new();
    let seen = left.clone();
    let app = Origin::start(move |call| {
        call.chunked(200, &[])?;
        call.gone()?;
        seen.fire();
        Ok(())
    });
    let mut conn = Conn::open(app.addr());
    conn.request("GET", "/", &[], b"");
    conn.head();
    conn.reset();
    left.wait();
}

#[test]
fn tls_and_unix_sockets_carry_the_same() {
    let ca = Ca::new();
    let pair = ca.issue(&["app.test", "127.0.0.1"]);
    let secure = Origin::tls(&pair, |call| call.answer(200, &[], &noise(300_000)));
    let mut conn = Conn::tls(secure.addr(), "app.test", &ca);
    assert_eq!(conn.get("/", &[]).body, noise(300_000));
    assert_eq!(conn.stream().alpn(), Some(b"http/1.1".as_slice()));
    let mut wrong = Conn::tls(secure.addr(), "other.test", &ca);
    assert!(wrong.try_send("GET / HTTP/1.1\r\n\r\n").is_err());

    let local = Origin::unix(|call| call.answer(200, &[], b"local"));
    let server = local.server();
    let path = server.strip_prefix("unix:").expect("a unix address");
    assert_eq!(Conn::unix(path.as_ref()).get("/", &[]).body, b"local");
}

#[test]
fn what_follows_an_upgrade_is_bytes() {
    let app = Origin::start(|call| {
        call.raw_head(101, &[("Upgrade", "echo"), ("Connection", "Upgrade")])?;
        let said = call.read_until("\n")?;
        call.send(said)
    });
    let mut conn = Conn::open(app.addr());
    conn.request(
        "GET",
        "/",
        &[("Upgrade", "echo"), ("Connection", "Upgrade")],
        b"",
    );
    conn.head().expect(101);
    conn.send("hello\n");
    assert_eq!(conn.read_until("\n"), b"hello\n");
    assert!(conn.closed().is_empty());
}

#[test]
fn curl_gets_the_same_bytes() {
    let app = Origin::json(big());
    let got = curl(&[&format!("{}/", app.server())]);
    assert_eq!((got.status, got.errors.as_str()), (0, ""));
    assert!(got.body == big());
}

#[test]
fn several_lines_of_a_single_field_are_noticed() {
    let app = Origin::answer(200, &[("ETag", "a"), ("ETag", "b")], "");
    let reply = get(app.addr(), "/", &[]);
    assert_eq!(reply.all("etag"), ["a", "b"]);
    assert!(std::panic::catch_unwind(|| reply.header("etag").map(str::len)).is_err());
}

#[test]
fn a_test_can_wait_for_what_comes_later() {
    let looks = Mutex::new(0);
    let seen = eventually("the third look", || {
        let mut looks = looks.lock().unwrap();
        *looks += 1;
        (*looks == 3).then_some("seen")
    });
    assert_eq!(seen, "seen");
}
