use std::process::Command;

use serde_json::json;

use super::super::process::Process;
use super::super::proxy::{after, listeners, socket};
use super::super::*;

#[test]
fn the_demo_application_can_be_asked_without_a_proxy() {
    let addr = thinwire::demo::start().unwrap();
    assert_eq!(get(addr, "/ping", &[]).text(), "pong\n");
    assert_eq!(
        H2::open(addr).get("/report", &[]).body,
        get(addr, "/report", &[]).body
    );
    let mut upload = Conn::open(addr);
    upload.request(
        "POST",
        "/upload",
        &[("Transfer-Encoding", "chunked"), ("TE", "trailers")],
        b"",
    );
    upload.chunk(b"12345");
    upload.chunk(b"6789");
    upload.send("0\r\nSum: 9\r\n\r\n");
    let report = upload.reply().expect(200).json();
    assert_eq!(
        (&report["bytes"], &report["crc32"]),
        (&json!(9), &json!("cbf43926"))
    );
    assert_eq!(report["transfer_encoding"], "chunked");
    assert_eq!(report["trailers"], json!([["sum", "9"]]));
}

#[test]
fn a_real_application_answers() {
    let app = Uvicorn::start("app");
    let report = get(app.addr(), "/report", &[("Accept-Encoding", "gzip")]);
    assert_eq!(report.coding(), "identity");
    assert!(report.body.len() >= 117 * 1024);
    assert_eq!(get(app.addr(), "/stream?pieces=5", &[]).body, report.body);
    assert_eq!(get(app.addr(), "/cookies", &[]).all("set-cookie").len(), 2);
    assert_eq!(
        get(app.addr(), "/events?count=2&interval_ms=1", &[])
            .chunks
            .len(),
        2
    );
    let tag = get(app.addr(), "/tagged", &[])
        .header("etag")
        .unwrap()
        .to_owned();
    get(app.addr(), "/tagged", &[("If-None-Match", &tag)]).expect(304);
    let upload = Conn::open(app.addr())
        .ask("PUT", "/upload", &[], b"abc")
        .json();
    // The example of FIPS 180.
    let sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(
        (&upload["bytes"], &upload["sha256"]),
        (&json!(3), &json!(sha))
    );
    assert!(app.process().memory_kib() > 1000);
}

#[test]
fn a_real_application_can_compress_by_itself() {
    let app = Uvicorn::start("squeezed");
    let squeezed = get(app.addr(), "/report", &[("Accept-Encoding", "gzip")]);
    assert_eq!(squeezed.coding(), "gzip");
    assert_eq!(squeezed.decoded(), get(app.addr(), "/report", &[]).body);
    assert!(app.process().cpu_ticks() > 0);
}

#[test]
fn what_a_process_says_is_heard_and_its_silence_is_told() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "echo one; echo two on 127.0.0.1:7 >&2; exit 3"]);
    let mut process = Process::spawn("the shell", &mut shell).unwrap();
    let address = process.wait_for("two", PATIENCE, |line| after(line, "two on "));
    assert_eq!(address.unwrap(), "127.0.0.1:7");
    assert_eq!(process.exit().code(), Some(3));
    let silence = process
        .wait_for("three", PATIENCE, |line| after(line, "three"))
        .unwrap_err();
    assert!(
        silence.starts_with("the shell: ended without three; it said:\n"),
        "{silence}"
    );
    assert!(
        silence.contains("\none") && silence.contains("\ntwo on"),
        "{silence}"
    );
    let missing = Process::spawn("nothing", &mut Command::new("no-such-command"));
    assert!(
        missing
            .err()
            .unwrap()
            .starts_with("nothing cannot be started")
    );
}

#[test]
fn a_proxy_that_does_not_start_is_an_error_and_not_a_hang() {
    let sentence = Proxy::try_start("listen: [\n").unwrap_err();
    assert!(
        sentence.starts_with("thinwire: ended without"),
        "{sentence}"
    );
}

#[test]
fn addresses_are_found_in_text_and_in_json_lines() {
    let text = "INFO listening on http://127.0.0.1:81";
    let json = r#"{"level":"INFO","message":"listening on unix:/run/x","n":1}"#;
    assert_eq!(after(text, "listening on ").unwrap(), "http://127.0.0.1:81");
    assert_eq!(after(json, "listening on ").unwrap(), "unix:/run/x");
    assert_eq!(after(json, "admin on "), None);
    assert_eq!(
        socket("https://[::1]:443").unwrap(),
        "[::1]:443".parse().unwrap()
    );
    assert_eq!(socket("unix:/run/x"), None);
}

#[test]
fn a_setup_is_the_file_that_it_says() {
    let app = Origin::json("{}");
    let setup = Setup::before(&app)
        .and(&Demo)
        .listen("- address: 127.0.0.1:0\n  proxy_protocol: true\n- { address: \"unix:/tmp/x\" }")
        .top("pool: { threads: 1 }")
        .upstream("retries: 0")
        .defaults("compress:\n  min_size: 1B")
        .routes_before("- name: first\n  match: { path: /a }\n  upstream: app")
        .route("cache: { enabled: true }");
    let yaml = setup.yaml();
    assert_eq!(listeners(&yaml), 2);
    let expected = format!(
        "listen:\n  - address: 127.0.0.1:0\n    proxy_protocol: true\n  - {{ address: \"unix:/tmp/x\" }}\n\
         admin:\n  address: 127.0.0.1:0\nlog:\n  format: json\npool: {{ threads: 1 }}\n\
         upstreams:\n  app:\n    servers: [\"{}\", \"demo\"]\n    protocol: http1\n    retries: 0\n\
         defaults:\n  compress:\n    min_size: 1B\nroutes:\n  - name: first\n    match: {{ path: /a }}\n    \
         upstream: app\n  - name: everything\n    match: {{ path: / }}\n    upstream: app\n    \
         cache: {{ enabled: true }}\n",
        app.server()
    );
    assert_eq!(yaml, expected);
}

#[test]
fn metrics_are_summed_over_the_labels_that_are_not_asked_for() {
    let metrics = Metrics::parse(
        "# HELP a b\na_total{route=\"x\",coding=\"gzip\"} 2\na_total{route=\"x\",coding=\"br\"} 3\n\
         a_total{route=\"say \\\"y\\\", z\",coding=\"br\"} 4\nb 1.5e3\n",
    );
    assert_eq!(metrics.sum("a_total", &[]), 9.0);
    assert_eq!(metrics.sum("a_total", &[("route", "x")]), 5.0);
    assert_eq!(
        metrics.sum("a_total", &[("coding", "br"), ("route", "say \"y\", z")]),
        4.0
    );
    assert_eq!(metrics.sum("b", &[]), 1500.0);
    assert!(!metrics.knows("a") && metrics.knows("b"));
}
