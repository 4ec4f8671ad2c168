//! What reaches the app of a request, and the client of an answer: heads, name by name.

use std::io;

use crate::support::wire::Head;
use crate::support::{Call, Fields, H2Origin, Origin, Proxy, Setup};

fn ok() -> Origin {
    Origin::answer(200, &[], "fine")
}

/// Names of a head, in lower case and order, without those that say nothing here.
fn names(head: &Head) -> Vec<String> {
    let names = head
        .fields
        .iter()
        .map(|(name, _)| name.to_ascii_lowercase());
    let mut names: Vec<_> = names.filter(|name| name != "date").collect();
    names.sort();
    names
}

/// What a request without fields of its own arrives with.
const ALWAYS: [&str; 7] = [
    "accept-encoding",
    "forwarded",
    "host",
    "traceparent",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
];

fn with_always(more: &[&str]) -> Vec<String> {
    let all = ALWAYS.iter().chain(&["x-forwarded-proto"]).chain(more);
    let mut all: Vec<_> = all.map(|&name| name.to_owned()).collect();
    all.sort();
    all
}

#[test]
fn what_concerns_the_client_s_connection_ends_here() {
    let app = ok();
    let proxy = Proxy::before(&app);
    let fields = [
        ("Connection", "keep-alive, X-Hop"),
        ("Connection", "x-other"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Connection", "keep-alive"),
        ("Proxy-Authorization", "Basic eA=="),
        ("TE", "deflate"),
        ("HTTP2-Settings", "AAMAAABkAAQAAP__"),
        ("X-Hop", "1"),
        ("X-Other", "2"),
        ("X-Mine", "3"),
        ("X-Mine", "4"),
    ];
    proxy.get("/", &fields).expect(200);
    let seen = app.last().head;
    assert_eq!(names(&seen), with_always(&["x-mine", "x-mine"]));
    assert_eq!(seen.all("x-mine"), ["3", "4"]);
}

#[test]
fn no_connection_option_takes_away_what_is_for_all() {
    let app = ok();
    let proxy = Proxy::before(&app);
    let kept = [
        ("Authorization", "Bearer x"),
        ("Cookie", "a=1"),
        ("Content-Type", "text/plain"),
        ("If-None-Match", "\"x\""),
        ("Origin", "http://a"),
    ];
    let doomed = "host, authorization, cookie, content-type, if-none-match, origin, via, \
                  x-forwarded-for, forwarded, content-length, transfer-encoding";
    let fields = [&kept[..], &[("Connection", doomed)]].concat();
    proxy.ask("POST", "/", &fields, b"body").expect(200);
    let seen = app.last();
    for (name, value) in kept {
        assert_eq!(seen.head.all(name), [value]);
    }
    let by_us = ["via", "x-forwarded-for", "forwarded", "host"];
    assert!(by_us.iter().all(|name| seen.head.field(name).is_some()));
    assert_eq!(seen.body, b"body");
}

#[test]
fn what_concerns_the_app_s_connection_ends_here_too() {
    let fields = [
        ("Connection", "keep-alive, X-Private"),
        ("X-Private", "1"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Authenticate", "Basic"),
        ("Upgrade", "h2c"),
        ("Server", "app"),
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
        ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ];
    let app = Origin::answer(200, &fields, "fine");
    let proxy = Proxy::before(&app);
    for reply in [proxy.get("/", &[]), proxy.h2().get("/", &[])] {
        let expected = [
            "content-length",
            "server",
            "set-cookie",
            "set-cookie",
            "via",
        ];
        assert_eq!(names(&reply.head), expected, "{}", reply.version);
        assert_eq!(reply.all("set-cookie"), ["a=1", "b=2"]);
        assert_eq!(reply.header("date"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
        assert_eq!(reply.header("via"), Some("1.1 thinwire"));
    }
}

#[test]
fn via_names_every_hop_and_its_version() {
    let app = Origin::answer(200, &[("Via", "1.0 inner")], "fine");
    let proxy = Proxy::before(&app);
    let reply = proxy.get("/", &[("Via", "1.0 outer, 1.1 next")]);
    assert_eq!(
        app.last().head.all("via").join(", "),
        "1.0 outer, 1.1 next, 1.1 thinwire"
    );
    assert_eq!(reply.list("via"), ["1.0 inner", "1.1 thinwire"]);
    proxy.h2().get("/", &[]).expect(200);
    assert_eq!(app.last().head.all("via"), ["2 thinwire"]);
    let mut old = proxy.conn();
    old.send("GET / HTTP/1.0\r\n\r\n");
    old.reply().expect(200);
    assert_eq!(app.last().head.all("via"), ["1.0 thinwire"]);
    let app = H2Origin::answer(&[], "fine", &[]);
    let reply = Proxy::before(&app).get("/", &[]);
    assert_eq!(reply.header("via"), Some("2 thinwire"));
}

/// Everything about where a request comes from that a client may claim.
const CLAIMS: [(&str, &str); 9] = [
    ("X-Forwarded-For", "10.9.8.7"),
    ("X-Forwarded-Proto", "https"),
    ("X-Forwarded-Host", "evil.example"),
    ("X-Forwarded-Port", "1"),
    ("X-Forwarded-Prefix", "/evil"),
    ("X_Forwarded_For", "10.9.8.7"),
    ("Forwarded", "for=10.9.8.7"),
    ("Client-Cert", ":YQ==:"),
    ("Client_Cert", ":YQ==:"),
];

#[test]
fn nobody_says_where_a_request_comes_from_but_the_proxy() {
    let app = ok();
    let proxy = Proxy::before(&app);
    let host = proxy.addr(0).to_string();
    let check = |what: &str| {
        let seen = app.last().head;
        assert_eq!(names(&seen), with_always(&[]), "{what}");
        assert_eq!(seen.field("x-forwarded-for"), Some("127.0.0.1"), "{what}");
        assert_eq!(seen.field("x-forwarded-proto"), Some("http"), "{what}");
        assert_eq!(seen.field("x-forwarded-host"), Some(&*host), "{what}");
        let forwarded = format!("for=127.0.0.1;proto=http;host=\"{host}\"");
        assert_eq!(seen.field("forwarded"), Some(&*forwarded), "{what}");
    };
    proxy.get("/", &[]).expect(200);
    check("without claims");
    proxy.get("/", &CLAIMS).expect(200);
    check("with claims");
    let lower = CLAIMS.map(|(name, value)| (name.to_ascii_lowercase(), value));
    let lower: Vec<_> = lower
        .iter()
        .map(|(name, value)| (&**name, *value))
        .collect();
    proxy.h2().get("/", &lower).expect(200);
    check("over h2");
}

#[test]
fn a_trusted_proxy_in_front_is_believed_and_added_to() {
    let app = ok();
    let listen = "- address: 127.0.0.1:0\n  trust_forwarded_from: [127.0.0.0/8]";
    let proxy = Setup::before(&app).listen(listen).start();
    proxy.get("/", &CLAIMS).expect(200);
    let seen = app.last().head;
    assert_eq!(seen.field("x-forwarded-for"), Some("10.9.8.7, 127.0.0.1"));
    assert_eq!(seen.field("x-forwarded-proto"), Some("https"));
    assert_eq!(seen.field("x-forwarded-host"), Some("evil.example"));
    assert_eq!(seen.field("x-forwarded-port"), Some("1"));
    let forwarded = seen.field("forwarded").expect("Forwarded");
    assert!(
        forwarded.starts_with("for=10.9.8.7, for=127.0.0.1;"),
        "{forwarded}"
    );
    // A certificate is shown in a handshake here or not at all.
    assert!(seen.all("client-cert").is_empty() && seen.all("client_cert").is_empty());
    // Trust is by address: this network is not ours.
    let listen = "- address: 127.0.0.1:0\n  trust_forwarded_from: [10.0.0.0/8]";
    let proxy = Setup::before(&app).listen(listen).start();
    proxy.get("/", &CLAIMS).expect(200);
    assert_eq!(app.last().head.field("x-forwarded-for"), Some("127.0.0.1"));
}

#[test]
fn the_host_that_the_client_asked_for_reaches_the_app() {
    let app = ok();
    let proxy = Proxy::before(&app);
    for host in ["Shop.Example:8443", "shop.example", "[::1]:80"] {
        proxy.get("/", &[("Host", host)]).expect(200);
        let head = app.last().head;
        assert_eq!(head.all("host"), [host]);
        assert_eq!(head.field("x-forwarded-host"), Some(host));
        let request = http::Request::get(format!("http://{host}/"))
            .body(())
            .unwrap();
        proxy.h2().begin(request, true).reply().expect(200);
        assert_eq!(app.last().head.all("host"), [host]);
    }
    let app = H2Origin::answer(&[], "fine", &[]);
    Proxy::before(&app)
        .get("/", &[("Host", "shop.example:81")])
        .expect(200);
    let request = app.requests().pop().expect("a request");
    let authority = request.uri().authority().expect(":authority");
    assert_eq!(authority.as_str(), "shop.example:81");
    assert!(!request.headers().contains_key("host"));
}

#[test]
fn a_route_edits_heads_both_ways() {
    let app = Origin::answer(200, &[("Server", "app"), ("X-Secret", "1")], "fine");
    let edits = "headers:\n  request: { set: { x-set: new, user-agent: edge }, remove: [x-gone, via] }\n  \
                 response: { set: { strict-transport-security: max-age=1 }, remove: [x-secret, SERVER] }";
    let proxy = Proxy::with(&app, edits);
    let fields = [
        ("X-Set", "old"),
        ("X-Set", "older"),
        ("X-Gone", "1"),
        ("User-Agent", "me"),
    ];
    let reply = proxy.get("/", &fields).expect(200);
    let seen = app.last().head;
    assert_eq!(seen.all("x-set"), ["new"]);
    assert_eq!(seen.all("user-agent"), ["edge"]);
    assert!(seen.all("x-gone").is_empty() && seen.all("via").is_empty());
    assert_eq!(reply.header("strict-transport-security"), Some("max-age=1"));
    assert!(reply.all("x-secret").is_empty() && reply.all("server").is_empty());
}

#[test]
fn edits_hold_for_coded_answers_and_changed_protocols_too() {
    let edits = "headers: { response: { set: { x-set: new }, remove: [x-secret] } }";
    let app = Origin::start(|call| {
        if call.head.field("upgrade").is_some() {
            let fields = [
                ("Upgrade", "websocket"),
                ("Connection", "upgrade"),
                ("X-Secret", "1"),
            ];
            call.raw_head(101, &fields)?;
            return call.gone();
        }
        let fields = [("Content-Type", "text/plain"), ("X-Secret", "1")];
        call.answer(200, &fields, &b"text ".repeat(1000))
    });
    let proxy = Proxy::with(&app, edits);
    let reply = proxy.get("/", &[("Accept-Encoding", "gzip")]);
    assert_eq!(reply.coding(), "gzip");
    let mut conn = proxy.conn();
    conn.request(
        "GET",
        "/",
        &[("Connection", "upgrade"), ("Upgrade", "websocket")],
        b"",
    );
    for head in [reply.head, conn.head().head] {
        assert_eq!(head.field("x-set"), Some("new"), "{}", head.line);
        assert_eq!(head.field("x-secret"), None, "{}", head.line);
    }
}

#[test]
fn cookies_that_h2_splits_are_one_field_for_an_http1_app() {
    let app = ok();
    let proxy = Proxy::before(&app);
    let crumbs = [("cookie", "a=1"), ("cookie", "b=2"), ("cookie", "c=3")];
    proxy.h2().get("/", &crumbs).expect(200);
    assert_eq!(app.last().head.all("cookie"), ["a=1; b=2; c=3"]);
}

#[test]
fn fields_pass_byte_by_byte() {
    let app = Origin::respond(
        &b"HTTP/1.1 200 OK\r\nX-Latin: caf\xe9\r\nX-Empty:\r\nContent-Length: 0\r\n\r\n"[..],
    );
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.send(&b"GET / HTTP/1.1\r\nHost: a\r\nX-Latin: caf\xe9\r\nX-Empty:\r\n\r\n"[..]);
    let reply = conn.reply().expect(200);
    for raw in [&app.last().head.raw, &reply.head.raw] {
        let has = |line: &[u8]| memchr::memmem::find(&raw.to_ascii_lowercase(), line).is_some();
        assert!(
            has(b"\r\nx-latin: caf\xe9\r\n"),
            "{}",
            String::from_utf8_lossy(raw)
        );
        assert!(has(b"\r\nx-empty:"), "{}", String::from_utf8_lossy(raw));
    }
}

#[test]
fn methods_that_nobody_knows_pass() {
    let app = ok();
    let proxy = Proxy::before(&app);
    for method in ["PROPFIND", "QUERY", "get", "M-SEARCH", "TRACE"] {
        proxy.ask(method, "/", &[], b"").expect(200);
        assert_eq!(app.last().head.line, format!("{method} / HTTP/1.1"));
    }
}

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn a_trace_is_joined_or_begun_and_the_log_names_it() {
    let app = ok();
    let proxy = Proxy::before(&app);
    let state = ("tracestate", "vendor=1");
    proxy
        .get("/joined", &[("traceparent", PARENT), state])
        .expect(200);
    let seen = app.last().head;
    let parent = seen.field("traceparent").expect("traceparent");
    assert_eq!(&parent[..36], &PARENT[..36]);
    assert_ne!(parent, PARENT, "the span is ours");
    assert_eq!(seen.field("tracestate"), Some("vendor=1"));
    assert_eq!(proxy.access("/joined")["trace_id"], PARENT[3..35]);
    let mut begun = Vec::new();
    for (path, fields) in [
        ("/none", &[state][..]),
        ("/bad", &[("traceparent", "00-xyz"), state]),
        (
            "/two",
            &[("traceparent", PARENT), ("traceparent", PARENT), state],
        ),
    ] {
        proxy.get(path, fields).expect(200);
        let seen = app.last().head;
        let parent = seen.field("traceparent").expect("traceparent").to_owned();
        assert_eq!(parent.len(), PARENT.len(), "{path}");
        assert_eq!(seen.field("tracestate"), None, "{path}");
        assert_eq!(proxy.access(path)["trace_id"], parent[3..35], "{path}");
        begun.push(parent[3..35].to_owned());
    }
    begun.push(PARENT[3..35].to_owned());
    begun.sort();
    begun.dedup();
    assert_eq!(begun.len(), 4, "each begins its own: {begun:?}");
}

#[test]
fn an_answer_to_head_keeps_its_length_and_has_no_body() {
    let app = Origin::answer(200, &[("Content-Type", "image/png")], vec![0; 4000]);
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    let reply = conn.ask("HEAD", "/", &[], b"").expect(200);
    assert_eq!(reply.header("content-length"), Some("4000"));
    assert_eq!(app.last().head.line, "HEAD / HTTP/1.1");
    // Nothing is in the way of the next answer.
    assert_eq!(conn.get("/", &[]).body.len(), 4000);
    let reply = proxy.h2().ask("HEAD", "/", &[], b"").expect(200);
    assert_eq!(reply.header("content-length"), Some("4000"));
    assert!(reply.body.is_empty());
}

/// Answers by path with what the head said and nothing more.
fn bare(call: &mut Call<'_>) -> io::Result<()> {
    let status = call.path().trim_start_matches('/').parse().unwrap_or(200);
    call.raw_head(status, &[("X-Kept", "1")])
}

#[test]
fn answers_without_a_body_are_not_given_one() {
    let app = Origin::start(bare);
    let proxy = Proxy::before(&app);
    for status in ["204", "304"] {
        let reply = proxy
            .conn()
            .get(&format!("/{status}"), &[("Accept-Encoding", "gzip")]);
        assert_eq!(reply.status.to_string(), status);
        let framed: Fields<'_> = &[("content-length", ""), ("transfer-encoding", "")];
        assert!(
            framed.iter().all(|(name, _)| reply.all(name).is_empty()),
            "{status}"
        );
        assert_eq!(reply.header("x-kept"), Some("1"));
    }
}

/// What the app's own connection may say of its framing.
fn framed(call: &mut Call<'_>) -> io::Result<()> {
    match call.path() {
        "/length" => call.answer(200, &[], b"fine"),
        "/chunks" => {
            call.chunked(200, &[])?;
            call.chunk("fi")?;
            call.chunk("ne")?;
            call.end()
        }
        "/http10" => {
            call.send("HTTP/1.0 200 OK\r\n\r\nfine")?;
            call.close()
        }
        _ => {
            call.raw_head(200, &[])?;
            call.send("fine")?;
            call.close()
        }
    }
}

#[test]
fn every_framing_of_an_app_reaches_every_client() {
    let app = Origin::start(framed);
    let proxy = Proxy::before(&app);
    let client = proxy.h2();
    let mut conn = proxy.conn();
    for path in ["/length", "/chunks", "/http10", "/close", "/length"] {
        assert_eq!(conn.get(path, &[]).expect(200).body, b"fine", "{path}");
        assert_eq!(
            client.get(path, &[]).expect(200).body,
            b"fine",
            "{path} over h2"
        );
        let mut old = proxy.conn();
        old.send(format!("GET {path} HTTP/1.0\r\n\r\n"));
        let reply = old.reply().expect(200);
        let none: Fields<'_> = &[];
        assert_eq!(
            (reply.body.as_slice(), reply.trailers.len()),
            (&b"fine"[..], none.len())
        );
        assert!(old.closed().is_empty(), "{path} over HTTP/1.0");
    }
}
