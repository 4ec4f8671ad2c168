//! What comes piece by piece leaves piece by piece, in every coding; nothing is held for long, and
//! no more than its bound.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::{
    Conn, Fields, H2, H2Call, H2Origin, Origin, PATIENCE, Pieces, Proxy, Signal, Uvicorn, big,
    eventually, json_of,
};

const CODINGS: [&str; 3] = ["gzip", "br", "zstd"];

/// Types whose messages are to arrive as they are sent.
const STREAMS: [&str; 3] = [
    "text/event-stream",
    "text/event-stream; charset=utf-8",
    "application/x-ndjson",
];

/// An app that sends `first` under the media type that the request names in `x-type`, and `second`
/// when the test says so, on the signal that `x-turn` names.
fn paced(turns: &[Signal], first: &[u8], second: &[u8]) -> Origin {
    let (turns, first, second) = (turns.to_vec(), first.to_vec(), second.to_vec());
    Origin::start(move |call| {
        let turn: usize = call.head.field("x-turn").unwrap().parse().unwrap();
        let media = call.head.field("x-type").unwrap().to_owned();
        call.chunked(200, &[("Content-Type", &media)])?;
        call.chunk(&first)?;
        call.wait(&turns[turn]);
        call.chunk(&second)?;
        call.end()
    })
}

/// Reads until `mark` is decodable, lets the app go on, and reads the rest: all that was plain.
fn read_in_turns(body: &mut impl Pieces, mark: &str, go: &Signal) -> Vec<u8> {
    let mut plain = body.plain_until(mark);
    go.fire();
    while let Some(piece) = body.piece() {
        plain.extend(body.decoder().push(&piece).expect("decodable"));
    }
    plain
}

fn asking<'a>(coding: &'a str, media: &'a str, turn: &'a str) -> [(&'a str, &'a str); 3] {
    [
        ("accept-encoding", coding),
        ("x-type", media),
        ("x-turn", turn),
    ]
}

/// The same story over HTTP/1.1 and HTTP/2, for each coding and type: what the app sent before its
/// pause can be decoded before it goes on.
fn told_before_the_pause_ends(route: &str, types: &[&str], first: &[u8], mark: &str) {
    let second = b"data: the second\n\n".repeat(3);
    let turns: Vec<Signal> = (0..CODINGS.len() * types.len() * 2)
        .map(|_| Signal::new())
        .collect();
    let app = paced(&turns, first, &second);
    let proxy = Proxy::with(&app, route);
    let whole = [first, &second].concat();
    for (number, go) in turns.iter().enumerate() {
        let (coding, media) = (CODINGS[number % 3], types[number / 3 % types.len()]);
        let turn = number.to_string();
        let fields = asking(coding, media, &turn);
        let plain = if number < turns.len() / 2 {
            let mut conn = proxy.conn();
            conn.request("GET", "/", &fields, b"");
            assert_eq!(conn.head().expect(200).coding(), coding, "{media}");
            read_in_turns(&mut conn, mark, go)
        } else {
            let mut stream = proxy.h2().start("GET", "/", &fields, true);
            assert_eq!(stream.head().expect(200).coding(), coding, "{media}");
            read_in_turns(&mut stream, mark, go)
        };
        assert!(plain == whole, "{coding} {media}: {} bytes", plain.len());
    }
}

#[test]
fn an_event_is_decodable_before_the_next_one_is_sent() {
    let first = b"data: the first\n\n";
    told_before_the_pause_ends("", &STREAMS, first, "the first\n\n");
}

#[test]
fn an_app_that_pauses_within_any_body_is_read_up_to_its_pause() {
    let mut first = json_of(30_000);
    first.extend_from_slice(b"\"the pause\"");
    told_before_the_pause_ends("", &["application/json"], &first, "\"the pause\"");
}

#[test]
fn what_was_away_on_workers_is_flushed_at_the_pause_too() {
    let mut first = json_of(400_000);
    first.extend_from_slice(b"\"the pause\"");
    told_before_the_pause_ends("", &["text/plain"], &first, "\"the pause\"");
}

#[test]
fn every_chunk_leaves_at_once_where_the_route_says_so() {
    let route = "compress: { flush: every_chunk }";
    told_before_the_pause_ends(route, &["text/html"], b"<p>the first</p>", "the first</p>");
}

#[test]
fn a_real_application_s_events_arrive_one_by_one() {
    let app = Uvicorn::start("app");
    let proxy = Proxy::before(&app);
    for coding in CODINGS {
        let mut conn = proxy.conn();
        // It would take over an hour to send both.
        let target = "/events?count=2&interval_ms=4000000";
        conn.request("GET", target, &[("Accept-Encoding", coding)], b"");
        assert_eq!(conn.head().expect(200).coding(), coding);
        let plain = conn.plain_until("\n\n");
        assert_eq!(plain, b"id: 1\ndata: {\"number\": 1}\n\n");
    }
}

#[test]
fn an_event_stream_says_its_head_before_it_has_anything_to_say() {
    let go = Signal::new();
    let heard = go.clone();
    let app = Origin::start(move |call| {
        call.chunked(200, &[("Content-Type", "text/event-stream")])?;
        call.wait(&heard);
        call.chunk("data: x\n\n")?;
        call.end()
    });
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.request("GET", "/", &[("Accept-Encoding", "br")], b"");
    let head = conn.head();
    go.fire();
    assert_eq!(conn.rest(head).text(), "data: x\n\n");
}

#[test]
fn a_body_that_begins_small_and_tells_no_length_is_compressed() {
    let begin = b"[\"small\",".repeat(11);
    let rest = json_of(200 * 1024);
    let whole = [&begin[..], &rest].concat();
    let go = Signal::new();
    let (heard, first) = (go.clone(), begin);
    let app = Origin::start(move |call| {
        call.chunked(200, &[("Content-Type", "application/json")])?;
        call.chunk(&first)?;
        if call.path() == "/pause" {
            call.wait(&heard);
        }
        call.chunk(&rest)?;
        call.end()
    });
    let proxy = Proxy::before(&app);
    for coding in CODINGS {
        let reply = proxy.get("/", &[("Accept-Encoding", coding)]);
        assert_eq!(reply.coding(), coding);
        assert!(reply.body.len() < whole.len() / 2);
        assert!(reply.decoded() == whole, "{coding}");
    }
    // Nor does the head wait for the rest, in case more comes.
    let mut conn = proxy.conn();
    conn.request("GET", "/pause", &[("Accept-Encoding", "gzip")], b"");
    let head = conn.head();
    assert_eq!(head.coding(), "gzip");
    go.fire();
    assert!(conn.rest(head).decoded() == whole);
}

#[test]
fn chunks_of_every_size_join_to_the_same_body() {
    let whole = json_of(300_000);
    let body = whole.clone();
    let app = Origin::start(move |call| {
        let step: usize = call.path()[1..].parse().unwrap();
        call.chunked(200, &[("Content-Type", "application/json")])?;
        for piece in body.chunks(step) {
            call.chunk(piece)?;
        }
        call.end()
    });
    let proxy = Proxy::before(&app);
    let h2 = proxy.h2();
    for coding in CODINGS {
        let one_shot = proxy.get("/300000", &[("Accept-Encoding", coding)]);
        for path in ["/97", "/4096", "/65536", "/300000"] {
            let replies = [
                proxy.get(path, &[("Accept-Encoding", coding)]),
                h2.get(path, &[("accept-encoding", coding)]),
            ];
            for reply in replies {
                assert_eq!(reply.coding(), coding);
                assert!(reply.decoded() == whole, "{coding} {path}");
                // Chunks that follow each other closely cost next to nothing.
                assert!(
                    reply.body.len() < one_shot.body.len() * 5 / 4,
                    "{coding} {path}: {} to {}",
                    reply.body.len(),
                    one_shot.body.len()
                );
            }
        }
    }
}

/// How many bytes one piece of the slow clients' body has.
const PIECE: usize = 64 * 1024;

/// How many pieces make 32 MiB.
const PIECES: usize = 32 * 1024 * 1024 / PIECE;

/// 32 MiB in pieces; `sent` counts them.
fn long_body(sent: &Arc<AtomicUsize>, noise: &[u8]) -> Origin {
    let (sent, noise) = (Arc::clone(sent), noise.to_vec());
    Origin::start(move |call| {
        if call.path() == "/short" {
            return call.answer(200, &[], b"short");
        }
        call.chunked(200, &[("Content-Type", "text/plain")])?;
        for piece in noise.chunks(PIECE).cycle().take(PIECES) {
            call.chunk(piece)?;
            sent.fetch_add(1, Ordering::SeqCst);
        }
        call.end()
    })
}

/// Hexadecimal noise, more than any window holds: half of it remains, whatever the coding.
fn hex_noise() -> Vec<u8> {
    let mut dice = fastrand::Rng::with_seed(29);
    let digits = b"0123456789abcdef";
    let bytes = 32 * PIECE;
    (0..bytes).map(|_| digits[dice.usize(..16)]).collect()
}

/// What an answer may hold, with what the allocator keeps: half of its body would be more.
const MOST_KIB: u64 = 14 * 1024;

/// Waits until the app cannot send any more, and says how many pieces it got rid of.
fn held_back(sent: &AtomicUsize) -> usize {
    let mut last = (usize::MAX, 0);
    eventually("the app to be held back", || {
        let now = sent.load(Ordering::SeqCst);
        last = if now == last.0 {
            (now, last.1 + 1)
        } else {
            (now, 0)
        };
        (last.1 >= 60).then_some(now)
    })
}

#[test]
fn a_client_that_reads_slowly_gets_all_and_costs_no_memory() {
    let noise = hex_noise();
    let sent = Arc::new(AtomicUsize::new(0));
    let app = long_body(&sent, &noise);
    let proxy = Proxy::before(&app);
    let codings = ["identity", "gzip", "br", "zstd"];
    for coding in codings {
        proxy.get("/warm", &[("Accept-Encoding", coding)]);
    }
    for coding in codings {
        sent.store(0, Ordering::SeqCst);
        let before = proxy.memory_kib();
        let mut conn = slow(&proxy);
        conn.request("GET", "/", &[("Accept-Encoding", coding)], b"");
        assert_eq!(conn.head().coding(), coding);
        let given = held_back(&sent);
        assert!(given < PIECES, "{coding}: the proxy took all 32 MiB");
        let grown = proxy.memory_kib().saturating_sub(before);
        assert!(grown < MOST_KIB, "{coding}: {grown} KiB more");
        let mut seen = 0;
        while let Some(coded) = conn.piece() {
            let plain = conn.decoder().push(&coded).expect("decodable");
            for byte in plain {
                assert_eq!(byte, noise[seen % noise.len()]);
                seen += 1;
            }
        }
        assert_eq!(seen, PIECES * PIECE, "{coding}");
        let grown = proxy.memory_kib().saturating_sub(before);
        assert!(grown < MOST_KIB, "{coding}: {grown} KiB more at the end");
    }
}

/// A connection whose socket holds little, so that the proxy feels it early.
fn slow(proxy: &Proxy) -> Conn {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    socket.connect(&proxy.addr(0).into()).unwrap();
    let stream = std::net::TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    Conn::over(crate::support::stream::Stream::Tcp(stream), "slow".into())
}

#[test]
fn an_h2_stream_that_is_not_read_holds_back_its_app_and_no_other_stream() {
    let sent = Arc::new(AtomicUsize::new(0));
    let app = long_body(&sent, &hex_noise());
    let proxy = Proxy::before(&app);
    let mut builder = ::h2::client::Builder::new();
    builder
        .initial_window_size(64 * 1024)
        .initial_connection_window_size(8 << 20);
    for coding in CODINGS {
        sent.store(0, Ordering::SeqCst);
        let client = H2::with(proxy.addr(0), &builder);
        let mut stalled = client.start("GET", "/", &[("accept-encoding", coding)], true);
        let head = stalled.head();
        assert!(held_back(&sent) < PIECES, "{coding}");
        client.get("/short", &[]).expect(200);
        assert_eq!(stalled.rest(head).decoded().len(), PIECES * PIECE);
    }
}

/// An app that hints, and answers when it is told to.
fn hinting(go: &Signal) -> Origin {
    let heard = go.clone();
    Origin::start(move |call| {
        call.send(
            "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\nConnection: x-hop\r\nX-Hop: 1\r\n\r\n",
        )?;
        call.wait(&heard);
        call.answer(200, &[("Content-Type", "application/json")], &big())
    })
}

#[test]
fn early_hints_go_ahead_at_once_over_http1() {
    let go = Signal::new();
    let app = hinting(&go);
    let proxy = Proxy::before(&app);
    let mut conn = proxy.conn();
    conn.request("GET", "/", &[("Accept-Encoding", "gzip")], b"");
    let hint = conn.any_head().unwrap();
    assert_eq!(hint.line, "HTTP/1.1 103 Early Hints");
    assert_eq!(hint.field("link"), Some("</a.css>"));
    assert_eq!(
        (hint.field("x-hop"), hint.field("connection")),
        (None, None)
    );
    go.fire();
    let reply = conn.reply().expect(200);
    assert_eq!(reply.coding(), "gzip");
    assert!(reply.decoded() == big());
    // And the connection is good for the next.
    let again = conn.get("/", &[("Accept-Encoding", "br")]);
    assert_eq!((again.informational.len(), again.coding()), (1, "br"));
    let dropped = proxy.metrics();
    assert_eq!(
        dropped.sum("thinwire_informational_dropped_total", &[]),
        0.0
    );
}

#[test]
fn hints_that_cannot_be_relayed_are_dropped_and_counted() {
    let go = Signal::new();
    go.fire();
    let app = hinting(&go);
    let proxy = Proxy::before(&app);
    let reply = proxy
        .h2()
        .get("/", &[("accept-encoding", "gzip")])
        .expect(200);
    assert!(reply.informational.is_empty());
    assert!(reply.coding() == "gzip" && reply.decoded() == big());
    proxy.until("thinwire_informational_dropped_total", &[], |sum| {
        sum == 1.0
    });

    // HTTP/1.0 has no 1xx at all: it would take one for the answer.
    let mut old = proxy.conn();
    old.send("GET / HTTP/1.0\r\nAccept-Encoding: gzip\r\n\r\n");
    let answer = old.closed();
    assert!(!answer.windows(4).any(|bytes| bytes == b" 103"));
    assert!(answer.starts_with(b"HTTP/1.0 200") || answer.starts_with(b"HTTP/1.1 200"));
    proxy.until("thinwire_informational_dropped_total", &[], |sum| {
        sum == 2.0
    });
}

#[test]
fn hints_of_an_h2_app_are_relayed_to_http1_clients() {
    let app = H2Origin::start(async |mut call: H2Call| {
        call.informational(103, &[("link", "</a.css>")])?;
        call.head(200, &[("content-type", "application/json")], false)?;
        call.data(big(), true).await
    });
    let proxy = Proxy::before(&app);
    let reply = proxy.get("/", &[("Accept-Encoding", "zstd")]);
    assert!(reply.coding() == "zstd" && reply.decoded() == big());
    // hyper's HTTP/2 client shows no informational answers.
    assert!(reply.informational.is_empty());
}

#[test]
fn trailers_follow_a_body_that_was_coded_here() {
    let fields: Fields<'_> = &[("Content-Type", "application/json"), ("Trailer", "X-Sum")];
    let app = Origin::start(move |call| {
        call.chunked(200, fields)?;
        call.chunk(big())?;
        call.end_with(&[("X-Sum", "9")])
    });
    let proxy = Proxy::before(&app);
    for coding in ["gzip", "br", "zstd", "identity"] {
        let asked = [("Accept-Encoding", coding), ("TE", "trailers")];
        for reply in [proxy.get("/", &asked), proxy.h2().get("/", &lower(&asked))] {
            assert_eq!(reply.coding(), coding);
            assert!(reply.decoded() == big());
            assert_eq!(reply.trailer("x-sum"), Some("9"), "{}", reply.version);
        }
    }
}

fn lower<'a>(fields: &[(&'a str, &'a str); 2]) -> [(&'a str, &'a str); 2] {
    [("accept-encoding", fields[0].1), ("te", fields[1].1)]
}
