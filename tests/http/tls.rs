//! TLS on both sides: protocols, certificates, who has to show one, and clients that are not ours.

use std::process::{Command, Stdio};

use crate::support::stream::Stream;
use crate::support::{Ca, Conn, H2, Origin, Pair, Proxy, Setup, curl, folder, thinwire};

/// A TLS address that shows these, and what else `tls` says.
fn listen(pairs: &[&Pair], more: &str) -> String {
    let pairs: Vec<_> = pairs.iter().map(|pair| pair.yaml()).collect();
    let certificates = pairs.join(", ");
    format!("- address: 127.0.0.1:0\n  tls:\n    certificates: [{certificates}]\n    {more}")
}

fn ok() -> Origin {
    Origin::answer(200, &[], "fine")
}

/// A proxy for one name.
fn proxy(app: &Origin, ca: &Ca) -> Proxy {
    Setup::before(app)
        .listen(&listen(&[&ca.issue(&["a.example"])], ""))
        .start()
}

#[test]
fn the_client_chooses_the_protocol() {
    let (app, ca) = (ok(), Ca::new());
    let proxy = proxy(&app, &ca);
    assert!(proxy.addresses()[0].starts_with("https://"));
    let addr = proxy.addr(0);
    for (offered, agreed) in [
        (&["h2", "http/1.1"][..], Some("h2")),
        (&["http/1.1", "h2"], Some("h2")),
        (&["http/1.1"], Some("http/1.1")),
        (&[], None),
    ] {
        let mut stream = Stream::client(addr, "a.example", ca.client(offered));
        stream.handshake().unwrap();
        assert_eq!(stream.alpn(), agreed.map(str::as_bytes), "{offered:?}");
        if agreed != Some("h2") {
            let mut conn = Conn::over(stream, "a.example".to_owned());
            assert_eq!(conn.get("/", &[]).expect(200).version, "HTTP/1.1");
        }
    }
    assert_eq!(
        H2::tls(addr, "a.example", &ca)
            .get("/", &[])
            .expect(200)
            .version,
        "HTTP/2"
    );
    let mut strange = Stream::client(addr, "a.example", ca.client(&["spdy/3"]));
    assert!(strange.handshake().is_err(), "no protocol in common");
}

#[test]
fn the_app_is_told_that_the_client_came_over_tls() {
    let (app, ca) = (ok(), Ca::new());
    let proxy = proxy(&app, &ca);
    for h2 in [false, true] {
        let reply = if h2 {
            H2::tls(proxy.addr(0), "a.example", &ca).get("/", &[])
        } else {
            Conn::tls(proxy.addr(0), "a.example", &ca).get("/", &[])
        };
        reply.expect(200);
        let head = app.last().head;
        assert_eq!(head.field("x-forwarded-proto"), Some("https"), "h2: {h2}");
        let forwarded = head.field("forwarded").expect("Forwarded");
        assert!(forwarded.contains(";proto=https;"), "{forwarded}");
    }
}

/// The name on the certificate that `openssl s_client` is shown.
fn shown_to_openssl(proxy: &Proxy, arguments: &[&str]) -> String {
    let addr = proxy.addr(0).to_string();
    let mut command = Command::new("openssl");
    command
        .args(["s_client", "-connect", &addr])
        .args(arguments)
        .stdin(Stdio::null());
    let output = command
        .output()
        .expect("openssl: run ./tests/run, which installs or names it");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let subject = text.lines().find_map(|line| line.strip_prefix("subject="));
    let subject = subject.unwrap_or_else(|| panic!("no certificate: {text}"));
    subject
        .replace(' ', "")
        .trim_start_matches("CN=")
        .to_owned()
}

#[test]
fn sni_picks_among_several_certificates_and_the_first_is_for_all_others() {
    let (app, ca) = (ok(), Ca::new());
    let first = ca.issue(&["first.example", "www.first.example"]);
    let second = ca.issue(&["second.example"]);
    let wild = ca.issue(&["*.wild.example"]);
    let proxy = Setup::before(&app)
        .listen(&listen(&[&first, &second, &wild], ""))
        .start();
    for name in [
        "first.example",
        "www.first.example",
        "second.example",
        "a.wild.example",
    ] {
        // The client verifies the name.
        Conn::tls(proxy.addr(0), name, &ca)
            .get("/", &[])
            .expect(200);
    }
    for (arguments, name) in [
        (&["-servername", "second.example"][..], "second.example"),
        (&["-servername", "SECOND.example"], "second.example"),
        (&["-servername", "b.wild.example"], "*.wild.example"),
        (&["-servername", "a.b.wild.example"], "first.example"),
        (&["-servername", "wild.example"], "first.example"),
        (&["-servername", "other.example"], "first.example"),
        (&["-noservername"], "first.example"),
        (&["-noservername", "-tls1_2"], "first.example"),
    ] {
        assert_eq!(shown_to_openssl(&proxy, arguments), name, "{arguments:?}");
    }
}

#[test]
fn curl_is_served_over_both_protocols() {
    let (app, ca) = (Origin::json(crate::support::big()), Ca::new());
    let proxy = proxy(&app, &ca);
    let port = proxy.addr(0).port();
    let (resolve, url) = (
        format!("a.example:{port}:127.0.0.1"),
        format!("https://a.example:{port}/"),
    );
    let file = ca.file();
    let trust = ["--cacert", file.to_str().unwrap(), "--resolve", &resolve];
    for (option, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let more = [
            option,
            "--compressed",
            "--write-out",
            "%{stderr}%{http_version}",
            &url,
        ];
        let curled = curl(&[&trust[..], &more].concat());
        assert_eq!((curled.status, curled.errors.as_str()), (0, version));
        assert_eq!(curled.body, crate::support::big());
    }
}

#[test]
fn where_clients_have_to_show_a_certificate_no_other_gets_in() {
    let (app, ca, clients, strangers) = (ok(), Ca::new(), Ca::new(), Ca::new());
    let required = format!("client_ca: \"{}\"", clients.file().display());
    let yaml = listen(&[&ca.issue(&["a.example"])], &required);
    let proxy = Setup::before(&app).listen(&yaml).start();
    let ask = |config| {
        let stream = Stream::client(proxy.addr(0), "a.example", config);
        let mut conn = Conn::over(stream, "a.example".to_owned());
        let sent = conn.try_send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
        sent.ok()
            .and_then(|()| conn.try_reply().ok())
            .map(|reply| reply.status)
    };
    let alpn = ["http/1.1"];
    let known = clients.issue_client("me");
    assert_eq!(ask(ca.client_showing(&known, &alpn)), Some(200));
    assert_eq!(ask(ca.client(&alpn)), None, "without a certificate");
    let stranger = strangers.issue_client("me");
    assert_eq!(
        ask(ca.client_showing(&stranger, &alpn)),
        None,
        "one of another authority"
    );
    let server = clients.issue(&["me"]);
    assert_eq!(
        ask(ca.client_showing(&server, &alpn)),
        None,
        "one that is for servers"
    );
    assert_eq!(app.requests().len(), 1);
}

#[test]
fn a_client_that_does_not_get_through_its_handshake_is_cut_off() {
    let (app, ca) = (ok(), Ca::new());
    let pair = ca.issue(&["a.example"]);
    let setup = Setup::before(&app).listen(&listen(&[&pair], ""));
    let proxy = setup.top("network: { tls_handshake: 3s }").start();
    let mut silent = Conn::open(proxy.addr(0));
    let mut plain = Conn::open(proxy.addr(0));
    plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let said = plain.closed();
    assert!(
        !said.starts_with(b"HTTP/"),
        "{}",
        String::from_utf8_lossy(&said)
    );
    assert!(silent.closed().is_empty());
    Conn::tls(proxy.addr(0), "a.example", &ca)
        .get("/", &[])
        .expect(200);
}

/// An app behind TLS for this name.
fn tls_app(ca: &Ca, name: &str) -> Origin {
    Origin::tls(&ca.issue(&[name]), |call| {
        call.body()?;
        call.answer(200, &[], b"fine")
    })
}

#[test]
fn an_app_behind_tls_is_verified_by_its_own_authority_and_name() {
    let ca = Ca::new();
    let trust = format!("ca: \"{}\"", ca.file().display());
    let named = tls_app(&ca, "app.internal");
    let setup = |app, tls: &str| {
        Setup::before(app)
            .upstream(&format!("tls: {{ {tls} }}"))
            .start()
    };
    let proxy = setup(&named, &format!("{trust}, name: app.internal"));
    proxy.get("/", &[]).expect(200);
    assert_eq!(
        named.last().head.field("x-forwarded-proto"),
        Some("http"),
        "the client's, not the app's"
    );
    // Without a name the server's own address is verified.
    let addressed = tls_app(&ca, "127.0.0.1");
    setup(&addressed, &trust).get("/", &[]).expect(200);
    for (app, tls) in [
        (&named, format!("{trust}, name: other.internal")),
        (&named, trust),
        (&named, "name: app.internal".to_owned()),
        (
            &named,
            format!("ca: \"{}\", name: app.internal", Ca::new().file().display()),
        ),
    ] {
        let before = app.requests().len();
        let proxy = setup(app, &tls);
        let reply = proxy.get("/", &[]);
        assert_eq!(reply.status, 502, "{tls}");
        assert_eq!(app.requests().len(), before, "{tls}");
        let error = proxy.access("/")["error"].to_string();
        assert!(error.contains("TLS handshake"), "{tls}: {error}");
    }
}

#[test]
fn connections_to_an_app_behind_tls_are_kept() {
    let ca = Ca::new();
    let app = tls_app(&ca, "127.0.0.1");
    let tls = format!("tls: {{ ca: \"{}\" }}", ca.file().display());
    let proxy = Setup::before(&app)
        .upstream(&tls)
        .top("network: { threads: 1 }")
        .start();
    for _ in 0..5 {
        proxy.get("/", &[]).expect(200);
    }
    assert_eq!(app.accepted(), 1);
}

#[test]
fn a_certificate_or_key_that_cannot_be_used_is_a_fault_of_the_configuration() {
    let (app, ca) = (ok(), Ca::new());
    let (good, other) = (ca.issue(&["a.example"]), ca.issue(&["b.example"]));
    let folder = folder("unreadable");
    let (empty, text) = (folder.join("empty.pem"), folder.join("text.pem"));
    std::fs::write(&empty, "").unwrap();
    std::fs::write(&text, "not PEM").unwrap();
    let missing = folder.join("missing.pem");
    for (what, chain, key) in [
        ("a missing key", &good.chain, &missing),
        ("a missing chain", &missing, &good.key),
        ("an empty key", &good.chain, &empty),
        ("an empty chain", &empty, &good.key),
        ("a key that is text", &good.chain, &text),
        ("the chain as key", &good.chain, &good.chain),
        ("another's key", &good.chain, &other.key),
    ] {
        let pair = format!(
            "{{ chain: \"{}\", key: \"{}\" }}",
            chain.display(),
            key.display()
        );
        let listen = format!("- address: 127.0.0.1:0\n  tls:\n    certificates:\n      - {pair}");
        let file = folder.join("config.yaml");
        std::fs::write(&file, Setup::before(&app).listen(&listen).yaml()).unwrap();
        let file = file.to_str().unwrap();
        for command in ["check", "serve"] {
            let output = thinwire(&[command, "--config", file]);
            assert_eq!(output.status.code(), Some(78), "{command} with {what}");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            // The line of the pair.
            assert!(
                said.starts_with(&format!("{file}:5:")),
                "{command} with {what}: {said}"
            );
            assert!(said.contains("listen[0].tls.certificates[0]"), "{said}");
        }
    }
}

#[test]
fn certificates_are_read_again_when_their_files_change() {
    let (app, ca) = (ok(), Ca::new());
    let (old, new) = (ca.issue(&["old.example"]), ca.issue(&["new.example"]));
    let proxy = Setup::before(&app).listen(&listen(&[&old], "")).start();
    let mut before = Conn::tls(proxy.addr(0), "old.example", &ca);
    before.get("/", &[]).expect(200);
    std::fs::copy(&new.key, &old.key).unwrap();
    std::fs::copy(&new.chain, &old.chain).unwrap();
    // Nobody sends a signal.
    proxy.wait_for_log("the reload", |line| line.contains("configuration reloaded"));
    Conn::tls(proxy.addr(0), "new.example", &ca)
        .get("/", &[])
        .expect(200);
    before.get("/", &[]).expect(200);
}
