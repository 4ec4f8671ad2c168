//! What the configuration makes of answers, and how the log and the metrics account for it.

use serde_json::Value;

use super::support::*;

const JSON: (&str, &str) = ("Content-Type", "application/json");
const GZIP: (&str, &str) = ("accept-encoding", "gzip");

/// An answer for each reason that a head or a body can give, at the path of its name.
fn for_every_reason() -> Origin {
    Origin::start(|call| match call.path() {
        "/min_size" => call.answer(200, &[JSON], &json_of(200)),
        "/type" => call.answer(200, &[("Content-Type", "image/png")], &big()),
        "/incompressible" => call.answer(200, &[JSON], &noise(100 << 10)),
        "/no_transform" => call.answer(200, &[JSON, ("Cache-Control", "no-transform")], &big()),
        "/already_coded" => call.answer(200, &[JSON, ("Content-Encoding", "br")], &big()),
        "/disabled" => call.answer(200, &[JSON, ("Thinwire-Compress", "off")], &big()),
        "/status" => call.answer(204, &[], b""),
        "/range" => call.answer(
            206,
            &[JSON, ("Content-Range", "bytes 0-9/10")],
            b"0123456789",
        ),
        _ => call.answer(200, &[JSON], &big()),
    })
}

#[test]
fn the_log_and_a_metric_say_why() {
    let app = for_every_reason();
    let setup = Setup::before(&app);
    let proxy = setup
        .route("compress: { breach: { cross_site: plain } }")
        .start();
    let other = ("sec-fetch-site", "cross-site");
    let asked: [(&str, Fields<'_>, u16); 11] = [
        ("compressed", &[GZIP], 200),
        ("min_size", &[GZIP], 200),
        ("type", &[GZIP], 200),
        ("incompressible", &[GZIP], 200),
        ("no_transform", &[GZIP], 200),
        ("already_coded", &[GZIP], 200),
        ("not_accepted", &[], 200),
        ("disabled", &[GZIP], 200),
        ("status", &[GZIP], 204),
        ("range", &[GZIP], 206),
        ("cross_site", &[GZIP, other], 200),
    ];
    for (reason, fields, status) in asked {
        let path = format!("/{reason}");
        let reply = proxy.get(&path, fields).expect(status);
        let line = proxy.access(&path);
        let coding = if reason == "compressed" {
            "gzip"
        } else {
            "identity"
        };
        assert_eq!(
            (&line["reason"], &line["coding"]),
            (&reason.into(), &coding.into())
        );
        assert_eq!(line["bytes_after"], reply.body.len(), "{reason}");
        let labels = [
            ("route", "everything"),
            ("status", &status.to_string()),
            ("coding", coding),
            ("reason", reason),
        ];
        proxy.until("thinwire_responses_total", &labels, |sum| sum == 1.0);
    }
}

#[test]
fn an_access_line_says_what_happened() {
    let app = Origin::json(big());
    let proxy = Proxy::before(&app);
    let reply = proxy.get("/a?b=c", &[GZIP]);
    let line = proxy.access("/a?b=c");
    let known = [
        ("route", Value::from("everything")),
        ("client", "127.0.0.1".into()),
        ("method", "GET".into()),
        ("host", proxy.addr(0).to_string().into()),
        ("status", 200.into()),
        ("protocol", "HTTP/1.1".into()),
        ("coding", "gzip".into()),
        ("reason", "compressed".into()),
        ("bytes_before", big().len().into()),
        ("bytes_after", reply.body.len().into()),
        ("upstream", app.server().into()),
        ("ended_by", Value::Null),
    ];
    for (key, value) in known {
        assert_eq!(line[key], value, "{key}: {line}");
    }
    for key in ["upstream_ms", "pool_wait_ms", "duration_ms"] {
        assert!(line[key].is_number(), "{key}: {line}");
    }
    assert!(line["ts"].is_string() && line["cache"].is_null());
    assert_eq!(line["trace_id"].as_str().map(str::len), Some(32));
    assert_eq!(proxy.h2().get("/over-h2", &[]).status, 200);
    assert_eq!(proxy.access("/over-h2")["protocol"], "HTTP/2.0");
}

#[test]
fn a_text_line_holds_path_status_and_coding() {
    let app = Origin::json(big());
    let yaml = Setup::before(&app)
        .yaml()
        .replace("format: json", "format: text");
    let proxy = Proxy::start(&yaml);
    proxy.get("/some/path", &[GZIP]);
    let line = proxy.wait_for_log("an access line", |line| line.contains(" /some/path "));
    assert!(line.contains(" 200 HTTP/1.1 gzip compressed "), "{line}");
}

#[test]
fn the_smallest_body_that_is_coded_is_the_routes() {
    let app = Origin::start(|call| {
        let size: usize = call.target().split('=').nth(1).unwrap().parse().unwrap();
        // Announced, and found out.
        if call.path().ends_with("length") {
            return call.answer(200, &[JSON], &vec![b'a'; size]);
        }
        call.chunked(200, &[JSON])?;
        call.chunk(vec![b'a'; size])?;
        call.end()
    });
    let proxy = Setup::before(&app)
        .defaults(PATIENT)
        .routes_before(
            "- { name: a, match: { path: /none }, upstream: app, compress: { min_size: 0B } }\n\
             - { name: b, match: { path: /large }, upstream: app, compress: { min_size: 4KiB } }",
        )
        .start();
    for (path, border) in [("", 512), ("/none", 60), ("/large", 4096)] {
        for kind in ["length", "chunks"] {
            let at = |size: usize| format!("{path}/{kind}?size={size}");
            for reply in proxy.both("GET", &at(border), &[GZIP]) {
                assert_eq!(
                    (reply.coding(), reply.decoded().len()),
                    ("gzip", border),
                    "{path} {kind}"
                );
            }
            if path != "/none" {
                for reply in proxy.both("GET", &at(border - 1), &[GZIP]) {
                    assert_eq!(
                        (reply.coding(), reply.varies()),
                        ("identity", 1),
                        "{path} {kind}"
                    );
                }
            }
        }
    }
    // Where coding only adds, plain is what is sent.
    let reply = proxy.get("/none/length?size=3", &[GZIP]);
    assert_eq!(
        (reply.coding(), reply.body.as_slice()),
        ("identity", &b"aaa"[..])
    );
}

#[test]
fn types_match_in_any_letter_case_and_with_parameters() {
    let table = [
        ("Image/SVG+XML; charset=utf-8", "gzip"),
        ("image/svg+xml", "gzip"),
        ("APPLICATION/JSON;charset=UTF-8", "gzip"),
        ("application/problem+json ; a=\"b;c\"", "gzip"),
        ("application/vnd.api+JSON", "gzip"),
        ("text/anything", "gzip"),
        ("application/wasm", "gzip"),
        ("application/grpc-web+proto", "gzip"),
        ("font/otf", "gzip"),
        ("image/png", "identity"),
        ("image/svg", "identity"),
        ("font/woff2", "identity"),
        ("application/jsonp", "identity"),
        ("application/octet-stream", "identity"),
        ("multipart/mixed; boundary=text/plain", "identity"),
        ("application/grpc", "identity"),
        ("application/GRPC+proto", "identity"),
        ("application/connect+json", "identity"),
        ("", "identity"),
    ];
    for (media, coding) in table {
        let app = Origin::answer(200, &[("Content-Type", media)], big());
        for reply in Proxy::before(&app).both("GET", "/", &[GZIP]) {
            assert_eq!(
                (reply.coding(), reply.header("content-type")),
                (coding, Some(media))
            );
            assert!(reply.decoded() == big(), "{media}");
        }
    }
}

#[test]
fn a_route_has_types_of_its_own_and_exceptions() {
    let app = Origin::start(|call| {
        let media = call.path()[1..].to_owned();
        call.answer(200, &[("Content-Type", &media)], &big())
    });
    let proxy = Proxy::with(
        &app,
        "compress: { types: [Application/X-Own, text/*, application/*], except_types: [TEXT/csv] }",
    );
    let table = [
        ("application/x-own", "gzip"),
        ("text/plain", "gzip"),
        ("text/csv", "identity"),
        ("Text/CSV", "identity"),
        ("image/svg+xml", "identity"),
        // Never, whatever the list says.
        ("application/grpc", "identity"),
        ("application/grpc+json", "identity"),
        ("application/connect+proto", "identity"),
    ];
    for (media, coding) in table {
        assert_eq!(
            proxy.get(&format!("/{media}"), &[GZIP]).coding(),
            coding,
            "{media}"
        );
    }
}

#[test]
fn no_transform_is_honoured_from_both_sides_unless_the_route_says_not_to() {
    let app = Origin::start(|call| {
        let line = |value| ("Cache-Control", value);
        let own: &[(&str, &str)] = match call.path().rsplit('/').next().unwrap() {
            "plain" => &[line("no-transform")],
            "case" => &[line("Public, NO-Transform")],
            "lines" => &[line("public"), line("max-age=5, no-transform")],
            "quoted" => &[line("private=\"no-transform\"")],
            "other" => &[line("no-transformation, x-no-transform")],
            _ => &[],
        };
        call.answer(200, &[&[JSON][..], own].concat(), &big())
    });
    let proxy = Setup::before(&app)
        .routes_before("- { name: a, match: { path: /not }, upstream: app, compress: { honor_no_transform: false } }")
        .start();
    let asked = ("cache-control", "max-age=0, No-Transform");
    let table: [(&str, Fields<'_>, &str); 8] = [
        ("plain", &[GZIP], "identity"),
        ("case", &[GZIP], "identity"),
        ("lines", &[GZIP], "identity"),
        ("quoted", &[GZIP], "gzip"),
        ("other", &[GZIP], "gzip"),
        ("unsaid", &[GZIP], "gzip"),
        ("unsaid", &[GZIP, asked], "identity"),
        (
            "unsaid",
            &[GZIP, ("cache-control", "max-age=0"), asked],
            "identity",
        ),
    ];
    for (path, fields, coding) in table {
        for reply in proxy.both("GET", &format!("/{path}"), fields) {
            assert_eq!(reply.coding(), coding, "{path} {fields:?}");
            assert!(reply.decoded() == big());
        }
        let fields = [fields, &[("x-even", "so")]].concat();
        for reply in proxy.both("GET", &format!("/not/{path}"), &fields) {
            assert_eq!(reply.coding(), "gzip", "/not/{path} {fields:?}");
            // What the app said is still said.
            assert_eq!(reply.all("cache-control").is_empty(), path == "unsaid");
        }
    }
}

#[test]
fn what_came_through_a_proxy_is_plain_where_a_route_says_so() {
    let app = Origin::json(big());
    let proxy = Setup::before(&app)
        .routes_before(
            "- name: proxied\n  match: { headers: { via: \"*\" } }\n  upstream: app\n  compress: { enabled: false }",
        )
        .start();
    for via in ["1.1 other", "1.0 fred, 1.1 p.example.net", ""] {
        for reply in proxy.both("GET", "/", &[GZIP, ("via", via)]) {
            assert_eq!(reply.coding(), "identity", "{via:?}");
            assert!(reply.body == big());
            assert!(app.last().head.all("via").join(", ").ends_with(" thinwire"));
        }
    }
    // Our own Via, which the app and the client see, is none of the client's.
    for reply in proxy.both("GET", "/", &[GZIP]) {
        assert_eq!(
            (reply.coding(), reply.header("via")),
            ("gzip", Some("1.1 thinwire"))
        );
    }
}

#[test]
fn levels_are_the_routes() {
    // Text, on which all engines gain by effort.
    let app = Origin::json(include_bytes!("configuration.rs"));
    let proxy = Setup::before(&app)
        .defaults("compress: { levels: { gzip: 1, br: 0, zstd: 1 } }")
        .routes_before(
            "- { name: dense, match: { path: /dense }, upstream: app, compress: { levels: { gzip: 12, br: 9, zstd: 15 } } }",
        )
        .start();
    for coding in CODINGS {
        let fields = &[("accept-encoding", coding)][..];
        let (fast, dense) = (proxy.get("/fast", fields), proxy.get("/dense", fields));
        assert!(fast.decoded() == dense.decoded());
        assert!(dense.body.len() < fast.body.len(), "{coding}");
    }
}

#[test]
fn edits_of_the_route_have_the_last_word_and_the_plan_the_apps() {
    let app = Origin::answer(
        200,
        &[JSON, ("Server", "app"), ("Cache-Control", "no-transform")],
        big(),
    );
    let proxy = Proxy::with(
        &app,
        "headers:\n  request: { set: { x-from: edge }, remove: [cookie] }\n  \
         response: { set: { cache-control: private }, remove: [server] }",
    );
    for reply in proxy.both("GET", "/", &[GZIP, ("cookie", "a=b")]) {
        assert_eq!(
            (reply.header("server"), reply.header("cache-control")),
            (None, Some("private"))
        );
        // What the app forbade is not undone by what the client is told.
        assert_eq!(reply.coding(), "identity");
        let seen = app.last().head;
        assert_eq!(
            (seen.field("cookie"), seen.field("x-from")),
            (None, Some("edge"))
        );
    }
}

/// The exit status of `check` or `serve` on this file, what it says on standard error, and the
/// file's path.
fn said(command: &str, yaml: &str) -> (Option<i32>, String, String) {
    let file = folder("check").join("config.yaml");
    std::fs::write(&file, yaml).unwrap();
    let path = file.to_str().unwrap();
    let output = thinwire(&[command, "--config", path]);
    let errors = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), errors, path.to_owned())
}

#[test]
fn levels_out_of_range_are_faults_with_line_and_column() {
    let yaml = "upstreams: { app: { servers: [demo] } }\n\
                defaults:\n  compress:\n    levels: { gzip: 13, br: 12, zstd: 23 }\n\
                routes:\n  - name: all\n    upstream: app\n    compress: { levels: { br: -1 } }\n\
                listen: [{ address: 127.0.0.1:0 }]\n";
    let faults = [
        ("4:21: defaults.compress.levels.gzip", "\"13\"", "1 to 12"),
        ("4:29: defaults.compress.levels.br", "\"12\"", "0 to 11"),
        ("4:39: defaults.compress.levels.zstd", "\"23\"", "1 to 22"),
        ("8:31: routes[0].compress.levels.br", "\"-1\"", "0 to 11"),
    ];
    for command in ["check", "serve"] {
        let (status, errors, path) = said(command, yaml);
        assert_eq!(status, Some(78), "{errors}");
        let lines: Vec<_> = errors.lines().collect();
        for (place, wrong, right) in faults {
            let start = format!("{path}:{place}: {wrong}");
            let at = lines.iter().position(|line| line.starts_with(&start));
            let at = at.unwrap_or_else(|| panic!("{start} is not in\n{errors}"));
            assert!(lines[at].contains(right), "{}", lines[at]);
            // The offending line follows.
            let number: usize = place[..1].parse().unwrap();
            let offending = yaml.lines().nth(number - 1).unwrap();
            assert_eq!(lines[at + 1].trim(), offending.trim(), "{errors}");
        }
    }
}

#[test]
fn a_good_file_is_ok_and_says_what_streams_do_not_reach() {
    let yaml = Setup::before(&Demo)
        .defaults("compress: { levels: { br: 6, gzip: 10 } }")
        .yaml();
    let (status, errors, _) = said("check", &yaml);
    assert_eq!(status, Some(0), "{errors}");
    for place in [
        "defaults.compress.levels.br: warning",
        "defaults.compress.levels.gzip: warning",
    ] {
        assert!(errors.contains(place), "{errors}");
    }
    let (status, errors, _) = said("check", &Setup::before(&Demo).yaml());
    assert_eq!((status, errors.as_str()), (Some(0), ""));
}

#[test]
fn an_address_in_use_is_no_fault_of_the_file_but_nothing_to_start_with() {
    let taken = Proxy::before(&Demo);
    let yaml = Setup::before(&Demo)
        .listen(&format!("- address: {}", taken.addr(0)))
        .yaml();
    let (status, errors, _) = said("serve", &yaml);
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains(&taken.addr(0).to_string()), "{errors}");
    assert_eq!(said("check", &yaml).0, Some(0));
}

#[test]
fn a_running_proxy_drains_and_says_that_it_is_well() {
    let mut proxy = Proxy::before(&Demo);
    assert!(proxy.process().is_running());
    assert_eq!(proxy.get("/ping", &[]).status, 200);
    assert_eq!(proxy.stop().code(), Some(0));
}
