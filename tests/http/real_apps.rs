//! uvicorn and Starlette behind the proxy, curl and others before it: nothing here was made for us.

use super::support::*;

/// curl's arguments for a quiet, decoded download that shows its headers on demand.
fn fetched(proxy: &Proxy, target: &str, more: &[&str]) -> Vec<u8> {
    let url = proxy.url(target);
    let curled = curl(&[&["--fail", "--compressed"], more, &[url.as_str()]].concat());
    assert_eq!(curled.status, 0, "{target} {more:?}: {}", curled.errors);
    curled.body
}

#[test]
fn json_is_compressed_at_the_edge_and_plain_from_the_app() {
    let app = Uvicorn::start("app");
    let proxy = Proxy::with(&app, PATIENT);
    let plain = get(app.addr(), "/report", &[]).body;
    for coding in CODINGS {
        for reply in proxy.both("GET", "/report", &[("accept-encoding", coding)]) {
            let reply = reply.expect(200);
            assert_eq!((reply.coding(), reply.varies()), (coding, 1));
            assert!(reply.decoded() == plain);
            assert!(
                reply.body.len() < plain.len() / 3,
                "{coding}: {}",
                reply.body.len()
            );
            assert_eq!(
                reply.header("content-length"),
                Some(reply.body.len().to_string().as_str())
            );
        }
    }
    for reply in proxy.both("GET", "/report", &[]) {
        assert!(reply.expect(200).body == plain);
    }
    for reply in proxy.both("GET", "/ping", &[("accept-encoding", "gzip")]) {
        assert_eq!(
            (reply.coding(), reply.body.as_slice()),
            ("identity", &b"pong\n"[..])
        );
    }
}

#[test]
fn an_app_that_compresses_by_itself_is_asked_not_to() {
    let app = Uvicorn::start("squeezed");
    let proxy = Setup::before(&app)
        .routes_before("- { name: off, match: { path: /report }, upstream: app, compress: { enabled: false } }")
        .start();
    // It would, for who asks it.
    let both = [("accept-encoding", "gzip")];
    assert_eq!(get(app.addr(), "/of/50000", &both).coding(), "gzip");
    for reply in proxy.both("GET", "/of/50000", &[("accept-encoding", "br, gzip;q=0.5")]) {
        // Its middleware's Vary is not said twice.
        assert_eq!((reply.coding(), reply.varies()), ("br", 1));
    }
    assert_eq!(
        proxy.metrics().sum("thinwire_app_compressed_total", &[]),
        0.0
    );
    // Where the route is off it is left to it.
    for reply in proxy.both("GET", "/report", &both) {
        assert_eq!((reply.coding(), reply.varies()), ("gzip", 1));
        assert!(reply.decoded() == get(app.addr(), "/report", &[]).body);
    }
}

#[test]
fn streams_of_all_rhythms_arrive_whole() {
    let app = Uvicorn::start("app");
    let proxy = Proxy::before(&app);
    let plain = get(app.addr(), "/report", &[]).body;
    for target in [
        "/stream?pieces=1",
        "/stream?pieces=300",
        "/stream?pieces=6&pause_ms=20",
    ] {
        for coding in ["zstd", "br", "gzip", "identity"] {
            for reply in proxy.both("GET", target, &[("accept-encoding", coding)]) {
                let reply = reply.expect(200);
                assert_eq!(reply.coding(), coding, "{target}");
                assert!(
                    reply.decoded() == plain,
                    "{target} in {coding} over {}",
                    reply.version
                );
            }
        }
    }
}

#[test]
fn events_are_decodable_as_they_come() {
    let app = Uvicorn::start("app");
    let proxy = Proxy::before(&app);
    let target = "/events?count=3&interval_ms=50";
    let event = |number| format!("id: {number}\ndata: {{\"number\": {number}}}\n\n");
    let three = [event(1), event(2), event(3)].concat();
    let all = |body: &mut dyn Pieces| {
        let mut plain = Vec::new();
        while plain.len() < three.len() {
            let piece = body.piece().expect("more events");
            plain.extend(body.decoder().push(&piece).expect("decodable so far"));
        }
        assert_eq!(plain, three.as_bytes());
    };
    for coding in CODINGS {
        let fields = &[("accept-encoding", coding)][..];
        let mut conn = proxy.conn();
        conn.request("GET", target, fields, b"");
        let head = conn.head().expect(200);
        assert_eq!(
            (head.coding(), head.header("cache-control")),
            (coding, Some("no-cache"))
        );
        all(&mut conn);
        let mut stream = proxy.h2().start("GET", target, fields, true);
        assert_eq!(stream.head().coding(), coding);
        all(&mut stream);
    }
}

#[test]
fn uploads_arrive_as_they_were_sent() {
    let app = Uvicorn::start("app");
    let proxy = Proxy::before(&app);
    let body = noise(3 << 20);
    let expected = get(app.addr(), "/ping", &[]).status;
    assert_eq!(expected, 200);
    let direct = Conn::open(app.addr())
        .ask("PUT", "/upload", &[], &body)
        .json();
    for method in ["POST", "PUT", "PATCH"] {
        let fields = &[
            ("accept-encoding", "gzip"),
            ("content-type", "application/octet-stream"),
        ][..];
        let replies = [
            proxy.ask(method, "/upload?x=%20y", fields, &body),
            proxy.h2().ask(method, "/upload?x=%20y", fields, &body),
        ];
        for reply in replies {
            let seen = reply.expect(200).json();
            assert_eq!(
                (&seen["method"], &seen["query"]),
                (&method.into(), &"x=%20y".into())
            );
            assert_eq!(
                (&seen["bytes"], &seen["sha256"]),
                (&body.len().into(), &direct["sha256"])
            );
            let headers = seen["headers"].to_string();
            assert!(
                headers.contains(r#"["accept-encoding","identity"]"#),
                "{headers}"
            );
            assert!(
                headers.contains(r#"["content-type","application/octet-stream"]"#),
                "{headers}"
            );
        }
    }
    // In chunks, whose sizes say nothing.
    let mut conn = proxy.conn();
    conn.request("POST", "/upload", &[("transfer-encoding", "chunked")], b"");
    for piece in body.chunks(100_001) {
        conn.chunk(piece);
    }
    conn.send("0\r\n\r\n");
    assert_eq!(conn.reply().expect(200).json()["sha256"], direct["sha256"]);
}

#[test]
fn a_tag_of_starlettes_survives_the_coding() {
    let app = Uvicorn::start("app");
    let proxy = Proxy::before(&app);
    let own = get(app.addr(), "/tagged", &[]);
    let own = own.header("etag").expect("a tag").trim_matches('"');
    for coding in CODINGS {
        let tag = format!("\"{own}-{coding}\"");
        let mut fields = vec![("accept-encoding", coding)];
        for reply in proxy.both("GET", "/tagged", &fields) {
            assert_eq!(
                (reply.coding(), reply.header("etag")),
                (coding, Some(tag.as_str()))
            );
        }
        fields.push(("if-none-match", &tag));
        for reply in proxy.both("GET", "/tagged", &fields) {
            let reply = reply.expect(304);
            assert_eq!(
                (reply.header("etag"), reply.varies()),
                (Some(tag.as_str()), 1)
            );
        }
    }
    for reply in proxy.both(
        "GET",
        "/tagged",
        &[("if-none-match", &format!("\"{own}\""))],
    ) {
        assert_eq!(
            reply.expect(304).header("etag"),
            Some(format!("\"{own}\"").as_str())
        );
    }
}

#[test]
fn cookies_redirects_and_emptiness_pass() {
    let app = Uvicorn::start("app");
    let proxy = Proxy::before(&app);
    let gzip = ("accept-encoding", "gzip");
    let crumbs = [gzip, ("cookie", "a=1"), ("cookie", "b=2")];
    let [first, second] = [
        proxy.get("/cookies", &[gzip, ("cookie", "a=1; b=2")]),
        proxy.h2().get("/cookies", &crumbs),
    ];
    for reply in [first, second] {
        assert_eq!(reply.all("set-cookie").len(), 2);
        assert_eq!(reply.json(), serde_json::json!({ "a": "1", "b": "2" }));
    }
    for reply in proxy.both("GET", "/redirect", &[gzip]) {
        assert_eq!(reply.expect(307).header("location"), Some("/ping"));
    }
    for reply in proxy.both("GET", "/nothing", &[gzip]) {
        let reply = reply.expect(204);
        assert_eq!(
            (reply.header("content-encoding"), reply.body.len()),
            (None, 0)
        );
    }
}

#[test]
fn an_app_that_fails_in_the_middle_never_looks_complete() {
    let app = Uvicorn::start("app");
    let proxy = Proxy::before(&app);
    for coding in ["zstd", "br", "gzip", "identity"] {
        let fields = &[("accept-encoding", coding)][..];
        let mut conn = proxy.conn();
        conn.request("GET", "/fails", fields, b"");
        // Told as a 502 where nothing was sent yet, else cut.
        match conn.try_reply() {
            Ok(reply) => assert_eq!(reply.status, 502, "{coding}"),
            Err(broken) => assert!(broken.was_cut(), "{coding}: {broken}"),
        }
        match proxy.h2().start("GET", "/fails", fields, true).try_reply() {
            Ok(reply) => assert_eq!(reply.status, 502, "{coding}"),
            Err(broken) => assert!(broken.was_cut(), "{coding}: {broken}"),
        }
    }
    assert_eq!(proxy.get("/ping", &[]).status, 200);
}

#[test]
fn curl_decodes_what_it_asked_for() {
    let app = Uvicorn::start("app");
    let proxy = Proxy::with(&app, PATIENT);
    let plain = get(app.addr(), "/report", &[]).body;
    for version in ["--http1.0", "--http1.1", "--http2-prior-knowledge"] {
        for target in ["/report", "/stream?pieces=40", "/tagged"] {
            assert!(
                fetched(&proxy, target, &[version]) == plain,
                "{target} {version}"
            );
            for coding in CODINGS {
                let accept = format!("accept-encoding: {coding}");
                let body = fetched(&proxy, target, &[version, "--header", &accept]);
                assert!(body == plain, "{target} {version} {coding}");
            }
        }
        let events = fetched(&proxy, "/events?count=2&interval_ms=1", &[version]);
        assert!(events.ends_with(b"data: {\"number\": 2}\n\n"));
    }
    let codings: Vec<_> = proxy
        .access_lines()
        .into_iter()
        .filter(|line| line["path"] == "/report")
        .collect();
    assert!(
        codings.iter().all(|line| line["reason"] == "compressed"),
        "{codings:?}"
    );
}

#[test]
fn curl_keeps_a_connection_over_bodies_heads_and_uploads() {
    let app = Uvicorn::start("app");
    let ca = Ca::new();
    // TLS, since curl 7.88 cannot reuse an h2 connection of prior knowledge (its issue 10634).
    let listen = format!(
        "- address: 127.0.0.1:0\n  tls:\n    certificates: [{}]",
        ca.issue(&["localhost"]).yaml()
    );
    let proxy = Setup::before(&app).listen(&listen).start();
    let (file, port) = (ca.file(), proxy.addr(0).port());
    for version in ["--http1.1", "--http2"] {
        let shared = [
            "--compressed",
            version,
            "--cacert",
            file.to_str().unwrap(),
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_code} %{num_connects}\n",
        ];
        let transfers: [&[&str]; 6] = [
            &["/report"],
            &["--head", "/report"],
            &["/nothing"],
            &["--data-binary", "hello", "/upload"],
            &["/stream?pieces=9"],
            &["/ping"],
        ];
        let mut arguments = Vec::new();
        for transfer in transfers {
            let (target, more) = transfer.split_last().unwrap();
            arguments.extend(shared.iter().chain(more).map(|&word| word.to_owned()));
            arguments.extend([
                format!("https://localhost:{port}{target}"),
                "--next".to_owned(),
            ]);
        }
        arguments.pop();
        let curled = curl(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(curled.status, 0, "{}", curled.errors);
        let said = String::from_utf8(curled.body).unwrap();
        let told: Vec<_> = said.lines().collect();
        assert_eq!(
            told,
            ["200 1", "200 0", "204 0", "200 0", "200 0", "200 0"],
            "{version}"
        );
    }
}

#[test]
fn curl_revalidates_what_it_saved() {
    // The tag goes into a file, and from there into the next request.
    let app = Uvicorn::start("app");
    let proxy = Proxy::before(&app);
    let tag = folder("curl").join("tag");
    let tag = tag.to_str().unwrap();
    let first = fetched(&proxy, "/tagged", &["--etag-save", tag]);
    assert!(first == get(app.addr(), "/report", &[]).body);
    let held = std::fs::read_to_string(tag).unwrap();
    assert!(
        CODINGS
            .iter()
            .any(|coding| held.trim().ends_with(&format!("-{coding}\""))),
        "{held}"
    );
    let again = fetched(
        &proxy,
        "/tagged",
        &["--etag-compare", tag, "--write-out", "%{http_code}"],
    );
    assert_eq!(String::from_utf8(again).unwrap(), "304");
}
