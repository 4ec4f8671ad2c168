//! What clients send: passed as it is, or inflated where the route says so, within its limits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write as _;

use serde_json::json;

use crate::support::{
    App, Conn, Fields, H2Call, H2Origin, Origin, Proxy, Reply, Signal, Uvicorn, big, eventually,
    json_of, noise,
};

/// Every name that a coding of a request goes by.
const CODINGS: [&str; 6] = ["gzip", "x-gzip", "deflate", "br", "zstd", "GZIP"];

fn coded(coding: &str, plain: &[u8]) -> Vec<u8> {
    let level = flate2::Compression::default();
    match coding.to_ascii_lowercase().as_str() {
        "gzip" | "x-gzip" => {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), level);
            gzip.write_all(plain).unwrap();
            gzip.finish().unwrap()
        }
        "deflate" => {
            let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), level);
            zlib.write_all(plain).unwrap();
            zlib.finish().unwrap()
        }
        "br" => {
            let mut br = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
            br.write_all(plain).unwrap();
            br.into_inner()
        }
        _ => zstd(plain, 3, 0),
    }
}

/// With a window of 2 to the power of `window`; 0 is the level's own.
fn zstd(plain: &[u8], level: i32, window: u32) -> Vec<u8> {
    use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};
    let mut context = CCtx::create();
    context
        .set_parameter(CParameter::CompressionLevel(level))
        .unwrap();
    if window > 0 {
        context
            .set_parameter(CParameter::WindowLog(window))
            .unwrap();
    }
    let mut coded = vec![0_u8; zstd_safe::compress_bound(plain.len()) + 1024];
    let mut out = OutBuffer::around(coded.as_mut_slice());
    // Streamed, so that the frame says its window and not its size.
    for piece in plain.chunks(100_000) {
        let mut input = InBuffer::around(piece);
        while input.pos() < piece.len() {
            context.compress_stream(&mut out, &mut input).unwrap();
        }
    }
    while context.end_stream(&mut out).unwrap() > 0 {}
    let length = out.pos();
    coded.truncate(length);
    coded
}

/// An app that takes everything, and a proxy that inflates for it.
fn taking() -> Origin {
    Origin::start(|call| {
        let size = call.body()?.len();
        call.answer(200, &[], size.to_string().as_bytes())
    })
}

fn inflating(app: &impl App) -> Proxy {
    Proxy::with(
        app,
        "compress: { requests: decompress, max_inflated: 10MiB }",
    )
}

fn chunked(conn: &mut Conn, coding: &str, body: &[u8], step: usize) {
    let fields = [
        ("Content-Encoding", coding),
        ("Transfer-Encoding", "chunked"),
    ];
    conn.request("POST", "/chunked", &fields, b"");
    for piece in body.chunks(step) {
        conn.chunk(piece);
    }
    conn.send("0\r\n\r\n");
}

#[test]
fn an_app_gets_plain_what_its_clients_compressed() {
    let app = taking();
    let proxy = inflating(&app);
    for plain in [Vec::new(), b"{}".to_vec(), big(), json_of(3_000_000)] {
        for coding in CODINGS {
            let body = coded(coding, &plain);
            let md5 = ("Content-MD5", "Q2hlY2sgSW50ZWdyaXR5IQ==");
            let fields = [("Content-Encoding", coding), ("X-Kept", "1"), md5];
            proxy.ask("POST", "/length", &fields, &body).expect(200);
            let seen = app.last();
            assert!(seen.whole && seen.body == plain, "{coding}");
            // What was said of the coded bytes is said of none.
            assert_eq!(seen.head.field("content-encoding"), None);
            assert_eq!(seen.head.field("content-md5"), None);
            let length = seen.head.field("content-length");
            assert!(length.is_none_or(|length| length == plain.len().to_string()));
            assert_eq!(seen.head.field("x-kept"), Some("1"));

            for step in [7.max(body.len() / 50), body.len()] {
                let mut conn = proxy.conn();
                chunked(&mut conn, coding, &body, step);
                conn.reply().expect(200);
                assert!(app.last().whole && app.last().body == plain, "{coding}");
            }
            let fields = [("content-encoding", coding)];
            proxy.h2().ask("PUT", "/h2", &fields, &body).expect(200);
            assert!(app.last().whole && app.last().body == plain, "{coding}");
        }
    }
}

#[test]
fn an_h2_app_gets_plain_what_its_clients_compressed() {
    let app = H2Origin::start(async |mut call: H2Call| {
        let (body, _) = call.body().await?;
        let headers = call.request.headers();
        let stale = ["content-encoding", "content-length"].map(|name| headers.contains_key(name));
        let report = format!("{} {stale:?}", body == big());
        call.head(200, &[], false)?;
        call.data(report, true).await
    });
    let proxy = inflating(&app);
    for coding in CODINGS {
        let body = coded(coding, &big());
        let reply = proxy.ask("POST", "/", &[("Content-Encoding", coding)], &body);
        assert_eq!(reply.text(), "true [false, false]", "{coding}");
    }
}

#[test]
fn a_real_application_reads_what_was_inflated() {
    let app = Uvicorn::start("app");
    let proxy = inflating(&app);
    let plain = Conn::open(app.addr())
        .ask("POST", "/upload", &[], &big())
        .json();
    for coding in CODINGS {
        let body = coded(coding, &big());
        let reply = proxy.ask("POST", "/upload", &[("Content-Encoding", coding)], &body);
        let report = reply.expect(200).json();
        assert_eq!(report["bytes"], json!(big().len()), "{coding}");
        assert_eq!(report["sha256"], plain["sha256"], "{coding}");
    }
}

#[test]
fn request_bodies_pass_as_they_are_unless_the_route_says_otherwise() {
    let app = taking();
    let proxy = Proxy::before(&app);
    let body = coded("gzip", &big());
    let fields = [("Content-Encoding", "gzip"), ("Content-MD5", "x")];
    proxy.ask("POST", "/", &fields, &body).expect(200);
    let seen = app.last();
    assert!(seen.body == body);
    assert_eq!(seen.head.field("content-encoding"), Some("gzip"));
    assert_eq!(seen.head.field("content-md5"), Some("x"));
    assert_eq!(
        seen.head.field("content-length"),
        Some(body.len().to_string().as_str())
    );
}

#[test]
fn codings_that_are_not_undone_pass_as_they_are() {
    let app = taking();
    let proxy = inflating(&app);
    let body = coded("gzip", &coded("gzip", &big()));
    for codings in ["gzip, gzip", "identity", "br;q=1", "aes128gcm", "compress"] {
        let fields = [("Content-Encoding", codings)];
        proxy.ask("POST", "/", &fields, &body).expect(200);
        let seen = app.last();
        assert!(seen.body == body, "{codings}");
        assert_eq!(seen.head.field("content-encoding"), Some(codings));
    }
    let fields = [("Content-Encoding", "gzip"), ("Content-Encoding", "gzip")];
    proxy.ask("POST", "/", &fields, &body).expect(200);
    assert!(app.last().body == body);
    assert_eq!(app.last().head.all("content-encoding"), ["gzip", "gzip"]);
}

/// The proxy answers with this status, its record blames the client, and it still works.
#[track_caller]
fn refused(proxy: &Proxy, target: &str, fields: Fields<'_>, body: &[u8], status: u16) -> Reply {
    let mut conn = proxy.conn();
    conn.request("POST", target, fields, b"");
    // The proxy may have had enough before all is there.
    let _ = conn.try_send(body);
    let reply = conn.reply().expect(status);
    assert!(reply.text().starts_with(&status.to_string()));
    let line = proxy.access(target);
    assert_eq!(
        (&line["status"], &line["ended_by"]),
        (&json!(status), &json!("client"))
    );
    reply
}

#[test]
fn a_body_that_does_not_decompress_is_a_400() {
    let app = Origin::start(|call| {
        let size = call.body()?.len();
        call.answer(200, &[], size.to_string().as_bytes())
    });
    let proxy = inflating(&app);
    for plain in [big(), json_of(1_500_000)] {
        for coding in CODINGS {
            let good = coded(coding, &plain);
            let cut = good[..good.len() - 1].to_vec();
            let half = good[..good.len() / 2].to_vec();
            let mut corrupt = good.clone();
            let middle = corrupt.len() / 2;
            corrupt[middle..middle + 64].fill(0xa5);
            let followed = [&good, b"garbage".as_slice()].concat();
            let plain = plain[..1000].to_vec();
            let damaged = [
                ("cut", cut),
                ("half", half),
                ("corrupt", corrupt),
                ("followed", followed),
                ("plain", plain),
                ("empty", Vec::new()),
            ];
            for (damage, body) in damaged {
                // br has no checksum: what is wrong within may decode to something else.
                if damage == "corrupt" && coding == "br" || body.is_empty() {
                    continue;
                }
                let target = format!("/{coding}/{damage}/{}", good.len());
                let length = body.len().to_string();
                let fields = [("Content-Encoding", coding), ("Content-Length", &length)];
                refused(&proxy, &target, &fields, &body, 400);
            }
        }
    }
    let whole = app.requests().into_iter().filter(|seen| seen.whole);
    assert_eq!(whole.count(), 0, "no app may take one of them for complete");
    let client = [("status", "400")];
    proxy.until("thinwire_responses_total", &client, |sum| sum == 58.0);
    proxy.until("thinwire_pool_jobs", &[], |jobs| jobs == 0.0);
}

#[test]
fn a_bomb_is_a_413_while_it_inflates() {
    let app = taking();
    let proxy = inflating(&app);
    let zeros = vec![0; 128 << 20];
    let bombs = ["gzip", "deflate", "br", "zstd"].map(|coding| (coding, coded(coding, &zeros)));
    drop(zeros);
    for (coding, bomb) in &bombs {
        assert!(bomb.len() < 200_000, "{coding}: {}", bomb.len());
    }
    proxy.ask(
        "POST",
        "/warm",
        &[("Content-Encoding", "gzip")],
        &coded("gzip", &big()),
    );
    let before = proxy.memory_kib();
    for (coding, bomb) in &bombs {
        let length = bomb.len().to_string();
        let fields = [("Content-Encoding", *coding), ("Content-Length", &length)];
        refused(&proxy, &format!("/{coding}"), &fields, bomb, 413);
    }
    // A decoder's window and what waits for the app; a bomb would be eight times that.
    let grown = proxy.memory_kib().saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KiB more");
    for seen in app
        .requests()
        .iter()
        .filter(|seen| !seen.head.line.contains("/warm"))
    {
        assert!(!seen.whole && seen.body.len() <= 10 << 20);
    }
    let client = proxy.h2();
    for (coding, bomb) in &bombs {
        let mut stream = client.start("POST", "/h2", &[("content-encoding", coding)], false);
        let _ = stream.try_send(bomb, true);
        stream.reply().expect(413);
    }
}

#[test]
fn just_the_limit_is_within_it() {
    let app = taking();
    let proxy = inflating(&app);
    let most = vec![7; 10 << 20];
    for coding in ["gzip", "deflate", "br", "zstd"] {
        let fields = [("Content-Encoding", coding)];
        let reply = proxy.ask("POST", "/", &fields, &coded(coding, &most));
        assert_eq!(reply.expect(200).text(), most.len().to_string(), "{coding}");
        let more = [&most[..], b"x"].concat();
        proxy
            .ask("POST", "/", &fields, &coded(coding, &more))
            .expect(413);
    }
}

#[test]
fn a_frame_that_wants_a_huge_window_is_refused_and_costs_no_memory() {
    let app = taking();
    let proxy = inflating(&app);
    let good = zstd(&json_of(3_000_000), 3, 23);
    proxy
        .ask("POST", "/warm", &[("Content-Encoding", "zstd")], &good)
        .expect(200);
    let before = proxy.memory_kib();
    for window in [24, 27] {
        let greedy = zstd(&json_of(3_000_000), 3, window);
        let length = greedy.len().to_string();
        let fields = [("Content-Encoding", "zstd"), ("Content-Length", &length)];
        refused(&proxy, &format!("/{window}"), &fields, &greedy, 400);
    }
    let grown = proxy.memory_kib().saturating_sub(before);
    assert!(grown < 8 * 1024, "{grown} KiB more");
}

#[test]
fn a_body_beyond_the_limit_is_a_413() {
    let app = taking();
    let proxy = Proxy::with(&app, "limits: { request_body: 100KiB }");
    let most = noise(100 << 10);
    proxy.ask("POST", "/most", &[], &most).expect(200);
    let more = [&most[..], b"x"].concat();
    let length = more.len().to_string();
    refused(
        &proxy,
        "/stated",
        &[("Content-Length", &length)],
        &more,
        413,
    );
    assert!(
        !app.last().head.line.contains("/stated"),
        "its head says enough"
    );

    let mut conn = proxy.conn();
    conn.request("POST", "/chunked", &[("Transfer-Encoding", "chunked")], b"");
    conn.chunk(&more);
    conn.reply().expect(413);
    eventually("the app's connection to end", || {
        (app.open() <= 1).then_some(())
    });
    assert!(
        app.requests()
            .iter()
            .all(|seen| seen.whole == seen.head.line.contains("/most"))
    );

    let client = proxy.h2();
    client.ask("POST", "/h2", &[], &most).expect(200);
    let mut stream = client.start("POST", "/h2", &[], false);
    let _ = stream.try_send(&more, true);
    stream.reply().expect(413);
}

#[test]
fn an_upload_that_stalls_is_a_408() {
    let app = taking();
    let proxy = Proxy::with(&app, "timeouts: { request_body: 300ms }");
    let mut conn = proxy.conn();
    conn.request("POST", "/stalls", &[("Content-Length", "100")], b"");
    conn.send("some");
    conn.reply().expect(408);
    assert_eq!(proxy.access("/stalls")["ended_by"], "client");
    let mut stream = proxy.h2().start("POST", "/h2", &[], false);
    stream.send(b"some", false);
    stream.reply().expect(408);
}

#[test]
fn an_upload_streams_to_the_app_as_it_comes() {
    let turns = [Signal::new(), Signal::new()];
    let heard = turns.clone();
    let app = Origin::start(move |call| {
        let turn: usize = call.path()[1..].parse().unwrap();
        let first = call.piece()?.unwrap();
        heard[turn].fire();
        let rest = call.body()?;
        call.answer(
            200,
            &[],
            format!("{} {}", first.len(), rest.len()).as_bytes(),
        )
    });
    let proxy = inflating(&app);
    for (turn, coding) in ["identity", "gzip"].iter().enumerate() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(b"the first").unwrap();
        gzip.flush().unwrap();
        let flushed = gzip.get_ref().len();
        let whole = gzip.finish().unwrap();
        let (first, second) = match *coding {
            "gzip" => whole.split_at(flushed),
            _ => (&b"the first"[..], &b""[..]),
        };
        let fields = [
            ("Transfer-Encoding", "chunked"),
            ("Content-Encoding", coding),
        ];
        let mut conn = proxy.conn();
        conn.request("POST", &format!("/{turn}"), &fields, b"");
        conn.chunk(first);
        turns[turn].wait();
        if !second.is_empty() {
            conn.chunk(second);
        }
        conn.send("0\r\n\r\n");
        assert_eq!(conn.reply().expect(200).text(), "9 9");
    }
}

#[test]
fn a_client_that_leaves_within_its_upload_ends_it_for_the_app() {
    let app = taking();
    let proxy = inflating(&app);
    let body = coded("gzip", &big());
    for coding in ["identity", "gzip"] {
        let target = format!("/{coding}");
        let length = body.len().to_string();
        let fields = [("Content-Encoding", coding), ("Content-Length", &length)];
        let mut conn = proxy.conn();
        conn.request("POST", &target, &fields, b"");
        conn.send(&body[..body.len() / 2]);
        eventually("the request at the app", || {
            let seen = app.requests().pop()?;
            (seen.head.line.contains(&target) && !seen.body.is_empty()).then_some(())
        });
        conn.reset();
        eventually("the app to see it", || (app.open() == 0).then_some(()));
        assert!(!app.last().whole, "{coding}");
        assert_eq!(proxy.access(&target)["ended_by"], "client");
    }
}
