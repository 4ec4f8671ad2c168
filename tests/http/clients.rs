//! Who the client is, and what one client may do: PROXY headers, certificates, limits by address.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::support::grpc::{begin, status};
use crate::support::stream::Stream;
use crate::support::{Ca, Conn, Origin, Proxy, Setup, eventually};

const SLOWLY: &str = "limits: { per_client: { requests_per_second: 1, burst: 3 } }";

fn fine() -> Origin {
    Origin::answer(200, &[], "fine")
}

/// How many of so many requests for a client behind a trusted proxy are answered.
fn answered(proxy: &Proxy, client: &str, of: usize) -> usize {
    let replies = (0..of).map(|_| proxy.get("/", &[("X-Forwarded-For", client)]));
    replies.filter(|reply| reply.status == 200).count()
}

#[test]
fn a_client_that_asks_too_often_gets_429_and_others_are_served() {
    let app = fine();
    let proxy = Setup::before(&app)
        .listen("- { address: 127.0.0.1:0, trust_forwarded_from: [127.0.0.0/8] }")
        .route(SLOWLY)
        .start();
    // A slow machine earns one more meanwhile.
    assert!((3..=5).contains(&answered(&proxy, "192.0.2.1", 30)));
    assert!((3..=5).contains(&answered(&proxy, "192.0.2.2", 30)));
    // The one before a trusted proxy counts; what it claims itself does not.
    assert!(answered(&proxy, "6.6.6.6, 192.0.2.1", 10) <= 2);
    let refused = (0..9).map(|_| proxy.get("/late", &[]));
    let refused = refused.into_iter().find(|reply| reply.status == 429);
    let refused = refused.expect("the proxy's own address has a limit, too");
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=2).contains(&wait));
    let line = eventually("its line", || {
        let lines = proxy.access_lines();
        lines.into_iter().find(|line| line["status"] == 429)
    });
    assert_eq!(line["ended_by"], "client");
    let counted = [("status", "429"), ("route", "everything")];
    assert!(proxy.metrics().sum("thinwire_responses_total", &counted) >= 27.0);
}

#[test]
fn an_untrusted_client_cannot_claim_another_address() {
    let app = fine();
    let proxy = Proxy::with(&app, SLOWLY);
    let served = (0..30)
        .map(|number| answered(&proxy, &format!("192.0.2.{number}"), 1))
        .sum::<usize>();
    assert!((3..=6).contains(&served), "{served}");
}

#[test]
fn a_call_too_many_is_resource_exhausted_and_a_websocket_too_many_429() {
    let app = fine();
    let proxy = Proxy::with(
        &app,
        "limits: { per_client: { requests_per_second: 1, burst: 1 } }",
    );
    let _ = proxy.get("/", &[]);
    let client = proxy.h2();
    let exhausted = eventually("a refusal", || {
        let reply = begin(&client, "/shop.Orders/List", &[]).reply();
        (status(&reply) == Some("8")).then_some(reply)
    });
    assert_eq!(exhausted.status, 200);
    eventually("a refusal", || {
        let fields = [
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
        ];
        (proxy.get("/ws", &fields).status == 429).then_some(())
    });
}

#[test]
fn an_address_has_so_many_connections() {
    let app = fine();
    let proxy = Setup::before(&app)
        .top("network: { per_client_connections: 2 }")
        .start();
    let mut kept = [proxy.conn(), proxy.conn()];
    for conn in &mut kept {
        conn.get("/", &[]).expect(200);
    }
    let mut third = proxy.conn();
    assert!(third.closed().is_empty());
    let refused = [("reason", "per_client_connections")];
    proxy.until("thinwire_refused_total", &refused, |count| count >= 1.0);
    let [first, mut second] = kept;
    drop(first);
    eventually("a place", || {
        let mut conn = proxy.conn();
        conn.try_send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").ok()?;
        conn.try_reply().ok().map(|reply| reply.expect(200))
    });
    second.get("/", &[]).expect(200);
}

/// Version 2 for 192.0.2.7:5000.
const BINARY: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x07\x7f\0\0\x01\x13\x88\0\x50";

const LINE: &[u8] = b"PROXY TCP4 192.0.2.7 127.0.0.1 5000 80\r\n";

#[test]
fn a_balancer_says_whom_it_speaks_for() {
    let app = fine();
    let ca = Ca::new();
    let pair = ca.issue(&["localhost"]);
    let setup = Setup::before(&app).listen(&format!(
        "- {{ address: 127.0.0.1:0, proxy_protocol: true }}\n\
         - address: 127.0.0.1:0\n  proxy_protocol: true\n  tls:\n    certificates:\n      - {}",
        pair.yaml()
    ));
    let proxy = setup.start();
    for header in [LINE, BINARY] {
        let mut conn = Conn::open(proxy.addr(0));
        conn.send([header, b"GET /clear HTTP/1.1\r\nHost: x\r\n\r\n"].concat());
        conn.reply().expect(200);
        assert_eq!(app.last().head.field("x-forwarded-for"), Some("192.0.2.7"));
        // It holds for the connection.
        conn.get("/again", &[]).expect(200);
        assert_eq!(app.last().head.field("x-forwarded-for"), Some("192.0.2.7"));
        assert_eq!(proxy.access("/again")["client"], "192.0.2.7");
        let tcp = std::net::TcpStream::connect(proxy.addr(1)).unwrap();
        std::io::Write::write_all(&mut &tcp, header).unwrap();
        let stream = Stream::client_over(tcp, "localhost", ca.client(&["http/1.1"]));
        let mut conn = Conn::over(stream, "localhost".into());
        conn.get("/tls", &[]).expect(200);
        assert_eq!(app.last().head.field("x-forwarded-for"), Some("192.0.2.7"));
    }
    let mut unknown = Conn::open(proxy.addr(0));
    unknown.send("PROXY UNKNOWN\r\n");
    unknown.get("/", &[]).expect(200);
    assert_eq!(app.last().head.field("x-forwarded-for"), Some("127.0.0.1"));
}

#[test]
fn a_connection_without_its_header_is_closed_unanswered() {
    let app = fine();
    let proxy = Setup::before(&app)
        .listen("- { address: 127.0.0.1:0, proxy_protocol: true }")
        .top("network: { tls_handshake: 200ms }")
        .start();
    let request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    for (sent, what) in [
        (request, "none"),
        ("PROXY TCP4 1.2.3.4\r\n", "bad"),
        ("PROXY ", "late"),
    ] {
        let mut conn = Conn::open(proxy.addr(0));
        conn.send(sent);
        assert!(conn.closed().is_empty(), "{what}");
    }
    let refused = [("reason", "proxy_protocol")];
    proxy.until("thinwire_refused_total", &refused, |count| count == 3.0);
    assert!(app.requests().is_empty());
}

#[test]
fn the_app_sees_the_certificate_that_the_client_showed() {
    let app = fine();
    let (ca, clients) = (Ca::new(), Ca::new());
    let pair = ca.issue(&["localhost"]);
    let proxy = Setup::before(&app)
        .listen(&format!(
            "- address: 127.0.0.1:0\n  tls:\n    certificates:\n      - {}\n    client_ca: \"{}\"\n- address: 127.0.0.1:0",
            pair.yaml(),
            clients.file().display()
        ))
        .start();
    let shown = clients.issue_client("alice");
    let expected = format!(":{}:", BASE64.encode(shown.der()));
    for alpn in [&["http/1.1"][..], &[]] {
        // The second of them resumes the session of the first.
        let config = ca.client_showing(&shown, alpn);
        for _ in 0..2 {
            let stream = Stream::client(proxy.addr(0), "localhost", config.clone());
            let mut conn = Conn::over(stream, "localhost".into());
            let forged = [("Client-Cert", ":AAAA:"), ("Client-Cert-Chain", ":AAAA:")];
            conn.get("/", &forged).expect(200);
            let head = app.last().head;
            assert_eq!(head.field("client-cert"), Some(&*expected));
            assert_eq!(head.field("client-cert-chain"), None);
        }
    }
    let mut clear = Conn::open(proxy.addr(1));
    clear.get("/", &[("Client-Cert", ":AAAA:")]).expect(200);
    assert_eq!(app.last().head.field("client-cert"), None);
}
