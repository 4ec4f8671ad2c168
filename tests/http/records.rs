//! What an exchange leaves behind: its line in the log, its numbers in the metrics.

use serde_json::Value;

use crate::support::{Demo, Origin, Proxy, Setup, Signal, big, eventually, json_of};

/// With this instead of `format: json` under `log`.
fn logging(app: &Origin, log: &str) -> Proxy {
    Proxy::start(&Setup::before(app).yaml().replace("format: json", log))
}

fn sorted(line: &Value) -> Vec<&str> {
    let mut keys: Vec<_> = line
        .as_object()
        .expect("an object")
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}

const FIELDS: [&str; 19] = [
    "bytes_after",
    "bytes_before",
    "cache",
    "client",
    "coding",
    "duration_ms",
    "ended_by",
    "host",
    "method",
    "path",
    "pool_wait_ms",
    "protocol",
    "reason",
    "route",
    "status",
    "trace_id",
    "ts",
    "upstream",
    "upstream_ms",
];

#[test]
fn a_json_line_says_everything_about_an_exchange() {
    let app = Origin::json(big());
    let proxy = Proxy::before(&app);
    let reply = proxy.get(
        "/x?q=1",
        &[("Accept-Encoding", "gzip"), ("Host", "shop.example:81")],
    );
    let line = proxy.access("/x?q=1");
    assert_eq!(sorted(&line), FIELDS);
    for (field, value) in [
        ("route", "everything"),
        ("client", "127.0.0.1"),
        ("method", "GET"),
        ("host", "shop.example:81"),
        ("protocol", "HTTP/1.1"),
        ("coding", "gzip"),
        ("reason", "compressed"),
        ("upstream", &app.server()),
    ] {
        assert_eq!(line[field], value, "{field}");
    }
    assert_eq!(line["status"], 200);
    assert_eq!(line["bytes_before"], big().len());
    assert_eq!(line["bytes_after"], reply.body.len());
    assert!(line["cache"].is_null() && line["ended_by"].is_null());
    assert_eq!(line["trace_id"].as_str().map(str::len), Some(32));
    let number = |field: &str| {
        line[field]
            .as_f64()
            .unwrap_or_else(|| panic!("{field}: {line}"))
    };
    assert!(number("duration_ms") >= number("upstream_ms") && number("upstream_ms") > 0.0);
    assert!(number("pool_wait_ms") >= 0.0);
    let ts = line["ts"].as_str().expect("a time");
    assert!(
        ts.starts_with("20") && ts.ends_with('Z') && ts.contains('T'),
        "{ts}"
    );
    let plain = proxy.h2().get("/small", &[]).expect(200);
    let line = proxy.access("/small");
    assert_eq!(sorted(&line), FIELDS);
    assert_eq!(
        (&line["coding"], &line["reason"]),
        (&"identity".into(), &"not_accepted".into())
    );
    assert_eq!(line["protocol"], "HTTP/2.0");
    assert_eq!(
        (&line["bytes_before"], &line["bytes_after"]),
        (&plain.body.len().into(), &plain.body.len().into())
    );
}

#[test]
fn a_failure_adds_what_went_wrong() {
    let app = Origin::start(|call| call.close());
    let proxy = Proxy::before(&app);
    proxy.get("/x", &[]).expect(502);
    let line = proxy.access("/x");
    assert_eq!(line["ended_by"], "upstream");
    assert!(
        line["error"]
            .as_str()
            .is_some_and(|error| !error.is_empty()),
        "{line}"
    );
    assert_eq!(line["status"], 502);
}

#[test]
fn a_text_line_holds_path_status_and_coding() {
    let app = Origin::json(big());
    let proxy = logging(&app, "format: text");
    proxy
        .get(
            "/x?q=1",
            &[("Accept-Encoding", "br"), ("Host", "shop.example")],
        )
        .expect(200);
    let line = proxy.wait_for_log("the access line", |line| line.contains("/x?q=1"));
    let words: Vec<_> = line.split(' ').collect();
    let expected = [
        "127.0.0.1",
        "GET",
        "shop.example",
        "/x?q=1",
        "200",
        "HTTP/1.1",
        "br",
        "compressed",
    ];
    assert_eq!(words[1..9], expected, "{line}");
    for detail in [
        "route=everything",
        "trace_id=",
        &format!("upstream={}", app.server()),
    ] {
        assert!(line.contains(detail), "{detail}: {line}");
    }
}

#[test]
fn what_a_client_sends_cannot_forge_a_line() {
    let app = Origin::answer(200, &[], "fine");
    let target = "/%0a%22}\"{'\u{7f}";
    let proxy = logging(&app, "format: json");
    // DEL is refused, quotes are not.
    assert_eq!(proxy.get(target, &[]).status, 400);
    let target = "/%0a%22}\"{'";
    proxy.get(target, &[]).expect(200);
    assert_eq!(proxy.access(target)["status"], 200);
    let proxy = logging(&app, "format: text");
    proxy.get("/a%20b\"d\"", &[]).expect(200);
    let line = proxy.wait_for_log("the access line", |line| line.contains("/a%20b"));
    assert_eq!(line.split(' ').nth(5), Some("200"), "{line}");
}

#[test]
fn access_lines_can_be_left_out() {
    let app = Origin::answer(200, &[], "fine");
    let proxy = logging(&app, "format: json\n  access: false");
    proxy.get("/x", &[]).expect(200);
    proxy.until("thinwire_responses_total", &[("status", "200")], |count| {
        count == 1.0
    });
    proxy.reload(&Setup::before(&app).yaml());
    proxy.wait_for_log("the reload", |line| line.contains("configuration reloaded"));
    proxy.get("/y", &[]).expect(200);
    proxy.access("/y");
    assert!(proxy.access_lines().iter().all(|line| line["path"] != "/x"));
}

#[test]
fn answers_are_counted_by_route_status_coding_and_reason() {
    let app = Origin::start(|call| match call.path() {
        "/none" => call.raw_head(204, &[]),
        "/small" => call.answer(200, &[("Content-Type", "application/json")], b"{}"),
        "/image" => call.answer(200, &[("Content-Type", "image/png")], &big()),
        "/coded" => {
            let fields = [
                ("Content-Type", "application/json"),
                ("Content-Encoding", "br"),
            ];
            call.answer(200, &fields, &big())
        }
        _ => call.answer(200, &[("Content-Type", "application/json")], &big()),
    });
    let off = "- { name: off, match: { path: /off }, upstream: app, compress: { enabled: false } }";
    let proxy = Setup::before(&app).routes_before(off).start();
    for (target, accepted, status, coding, reason) in [
        ("/", "gzip", "200", "gzip", "compressed"),
        ("/", "br", "200", "br", "compressed"),
        ("/", "zstd", "200", "zstd", "compressed"),
        ("/", "", "200", "identity", "not_accepted"),
        ("/small", "gzip", "200", "identity", "min_size"),
        ("/image", "gzip", "200", "identity", "type"),
        ("/coded", "gzip", "200", "identity", "already_coded"),
        ("/none", "gzip", "204", "identity", "status"),
        ("/off", "gzip", "200", "identity", "disabled"),
    ] {
        let labels = [
            (
                "route",
                if target == "/off" {
                    "off"
                } else {
                    "everything"
                },
            ),
            ("status", status),
            ("coding", coding),
            ("reason", reason),
        ];
        let name = "thinwire_responses_total";
        assert_eq!(proxy.metrics().sum(name, &labels), 0.0, "{labels:?}");
        for _ in 0..2 {
            proxy.get(target, &[("Accept-Encoding", accepted)]);
        }
        proxy.until(name, &labels, |count| count == 2.0);
    }
    let metrics = proxy.metrics();
    assert_eq!(metrics.sum("thinwire_response_seconds_count", &[]), 18.0);
    assert_eq!(
        metrics.sum("thinwire_app_compressed_total", &[("kind", "http")]),
        2.0
    );
}

#[test]
fn codec_work_is_counted_in_runs_bytes_and_seconds() {
    let plain = json_of(300 * 1024);
    let app = Origin::json(plain.clone());
    let proxy = Setup::before(&app)
        .defaults("cache: { reuse: false }")
        .start();
    for coding in ["gzip", "br", "zstd"] {
        let mut coded = 0;
        for _ in 0..3 {
            coded += proxy.get("/", &[("Accept-Encoding", coding)]).body.len();
        }
        let labels = [
            ("route", "everything"),
            ("kind", "http"),
            ("coding", coding),
        ];
        proxy.until("thinwire_coded_bytes_total", &labels, |bytes| {
            bytes == coded as f64
        });
        let metrics = proxy.metrics();
        assert_eq!(metrics.sum("thinwire_encodes_total", &labels), 3.0);
        assert_eq!(
            metrics.sum("thinwire_plain_bytes_total", &labels),
            3.0 * plain.len() as f64
        );
        assert!(metrics.sum("thinwire_codec_seconds_total", &labels) > 0.0);
    }
    let metrics = proxy.metrics();
    assert_eq!(metrics.sum("thinwire_pool_jobs", &[]), 0.0);
    assert!(metrics.sum("thinwire_pool_wait_seconds_count", &[]) >= 9.0);
    // Plain answers cost none.
    proxy.get("/", &[]).expect(200);
    assert_eq!(proxy.metrics().sum("thinwire_encodes_total", &[]), 9.0);
}

#[test]
fn what_is_under_way_is_a_gauge() {
    let go = Signal::new();
    let held = go.clone();
    let app = Origin::start(move |call| {
        call.wait(&held);
        call.answer(200, &[], b"fine")
    });
    let proxy = Proxy::before(&app);
    let (requests, connections) = ("thinwire_requests_in_flight", "thinwire_connections");
    assert_eq!(proxy.metrics().sum(connections, &[]), 0.0);
    let mut conn = proxy.conn();
    conn.request("GET", "/", &[], b"");
    let client = proxy.h2();
    let mut streams = [
        client.start("GET", "/", &[], true),
        client.start("GET", "/", &[], true),
    ];
    eventually("all to be held", || {
        (app.requests().len() == 3).then_some(())
    });
    proxy.until(requests, &[("route", "everything")], |count| count == 3.0);
    proxy.until(connections, &[], |count| count == 2.0);
    go.fire();
    conn.reply().expect(200);
    for stream in &mut streams {
        stream.reply().expect(200);
    }
    proxy.until(requests, &[], |count| count == 0.0);
    assert_eq!(
        proxy.metrics().sum(connections, &[]),
        2.0,
        "idle ones are open"
    );
    drop((conn, client, streams));
    proxy.until(connections, &[], |count| count == 0.0);
}

#[test]
fn servers_are_counted_by_outcome_and_start_healthy() {
    let app = Origin::answer(200, &[], "fine");
    let proxy = Proxy::before(&app);
    let server = app.server();
    let labels = [("upstream", "app"), ("server", server.as_str())];
    assert_eq!(
        proxy.metrics().sum("thinwire_upstream_healthy", &labels),
        1.0
    );
    proxy.get("/", &[]).expect(200);
    proxy.ask("POST", "/", &[], b"x").expect(200);
    let answered = [&labels[..], &[("outcome", "answered")]].concat();
    assert_eq!(
        proxy
            .metrics()
            .sum("thinwire_upstream_requests_total", &answered),
        2.0
    );
}

#[test]
fn refused_heads_are_counted_by_what_was_wrong() {
    let app = Origin::answer(200, &[], "fine");
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.send("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n");
    conn.reply().expect(400);
    let metrics = proxy.metrics();
    assert_eq!(metrics.sum("thinwire_refused_total", &[]), 1.0);
    assert_eq!(
        metrics.sum(
            "thinwire_responses_total",
            &[("route", "-"), ("status", "400")]
        ),
        1.0
    );
}

#[test]
fn the_operator_s_address_answers() {
    let proxy = Proxy::before(&Demo);
    assert_eq!(proxy.admin("/live").status, 200);
    assert_eq!(proxy.admin("/ready").status, 200);
    proxy.get("/ping", &[]).expect(200);
    let metrics = proxy.admin("/metrics").expect(200);
    let media = metrics.header("content-type").expect("a type");
    assert!(
        media.starts_with("text/plain") || media.starts_with("application/openmetrics-text"),
        "{media}"
    );
    assert!(
        metrics
            .text()
            .contains("# TYPE thinwire_responses_total counter")
    );
    assert_eq!(proxy.admin("/nothing").status, 404);
    let posted = crate::support::Conn::open(proxy.admin_addr()).ask("POST", "/live", &[], b"");
    assert_eq!(posted.status, 405);
    let config = proxy.admin("/config").expect(200).json();
    assert_eq!(config["routes"][0]["name"], "everything");
    assert_eq!(
        config["routes"][0]["compress"]["levels"]["gzip"], 4,
        "defaults are there"
    );
}

#[test]
fn the_configuration_is_shown_to_those_who_bear_the_token_and_its_secrets_to_nobody() {
    let yaml = Setup::before(&Demo).yaml().replace(
        "  address: 127.0.0.1:0\nlog",
        "  address: 127.0.0.1:0\n  token: hush-hush\nlog",
    );
    let proxy = Proxy::start(&yaml);
    let ask = |fields| crate::support::get(proxy.admin_addr(), "/config", fields);
    assert_eq!(ask(&[]).status, 401);
    assert_eq!(ask(&[("Authorization", "Bearer other")]).status, 401);
    let shown = ask(&[("Authorization", "Bearer hush-hush")])
        .expect(200)
        .text();
    assert!(!shown.contains("hush-hush") && shown.contains("everything"));
    assert_eq!(proxy.admin("/metrics").status, 200);
    assert!(!proxy.log().join("\n").contains("hush-hush"));
}
