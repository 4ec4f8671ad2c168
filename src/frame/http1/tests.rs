#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits {
    head: 512,
    fields: 100,
};

/// What became of a stream of bytes, without regard to how it was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    /// A head that ends at this offset.
    Head {
        end: usize,
        upgrade: bool,
    },
    Answer {
        end: usize,
        status: u16,
    },
    Body(usize),
    Refused(Refusal),
}

/// Shows a framer the bytes as reads would: what is partial is shown again, with more.
fn show<H>(
    bytes: &[u8],
    cuts: &[usize],
    mut step: impl FnMut(&[u8]) -> Step<H>,
    seen_head: impl Fn(usize, H) -> (usize, Seen),
) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut at = 0;
    for &end in cuts.iter().chain([&bytes.len()]) {
        while at < end {
            match step(&bytes[at..end]) {
                Step::Head(head) => {
                    let (len, head) = seen_head(at, head);
                    at += len;
                    seen.push(head);
                }
                Step::Body(taken) => {
                    at += taken;
                    match seen.last_mut() {
                        Some(Seen::Body(length)) => *length += taken,
                        _ => seen.push(Seen::Body(taken)),
                    }
                }
                Step::Blank => at += 2,
                Step::Partial => break,
                Step::Refused(refusal) => {
                    seen.push(Seen::Refused(refusal));
                    return seen;
                }
            }
        }
    }
    seen
}

fn requests(bytes: &[u8], cuts: &[usize]) -> Vec<Seen> {
    let mut framer = RequestFramer::new(LIMITS);
    show(
        bytes,
        cuts,
        |bytes| framer.step(bytes),
        |at, head: RequestHead| {
            (
                head.len,
                Seen::Head {
                    end: at + head.len,
                    upgrade: head.upgrade,
                },
            )
        },
    )
}

fn answers(asked: MethodKind, bytes: &[u8], cuts: &[usize]) -> Vec<Seen> {
    let mut framer = ResponseFramer::new(LIMITS);
    framer.expect(asked);
    show(
        bytes,
        cuts,
        |bytes| framer.step(bytes),
        |at, head: ResponseHead| {
            (
                head.len,
                Seen::Answer {
                    end: at + head.len,
                    status: head.status,
                },
            )
        },
    )
}

/// The verdict on the whole, after it was found to be the same however the bytes are cut.
fn cut_everywhere(bytes: &[u8], verdict: impl Fn(&[u8], &[usize]) -> Vec<Seen>) -> Vec<Seen> {
    let whole = verdict(bytes, &[]);
    for cut in 1..bytes.len() {
        assert_eq!(
            verdict(bytes, &[cut]),
            whole,
            "cut at {cut}: {:?}",
            bytes.escape_ascii()
        );
    }
    let each: Vec<usize> = (1..bytes.len()).collect();
    assert_eq!(
        verdict(bytes, &each),
        whole,
        "byte by byte: {:?}",
        bytes.escape_ascii()
    );
    whole
}

fn refused(bytes: &[u8]) -> Option<Refusal> {
    match cut_everywhere(bytes, requests).pop() {
        Some(Seen::Refused(refusal)) => Some(refusal),
        _ => None,
    }
}

/// A request with these lines between its request line and the empty one.
fn with(lines: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n").into_bytes()
}

#[test]
fn request_lines_that_parsers_read_differently_are_refused() {
    use Refusal::*;
    for (line, refusal) in [
        (&b"GET / HTTP/1.1\nHost: a\n\n"[..], BareLf),
        (b"\nGET / HTTP/1.1\r\n", BareLf),
        (b"\r\n\r\nGET / HTTP/1.1\r\n", RequestLine),
        (b" GET / HTTP/1.1\r\n", RequestLine),
        (b"GET  / HTTP/1.1\r\n", RequestLine),
        (b"GET /  HTTP/1.1\r\n", RequestLine),
        (b"GET / HTTP/1.1 \r\n", RequestLine),
        (b"GET /a b HTTP/1.1\r\n", RequestLine),
        (b"GET /\r\n", RequestLine),
        (b"GET\r\n", RequestLine),
        (b"GET\t/\tHTTP/1.1\r\n", RequestLine),
        (b"G(T / HTTP/1.1\r\n", Method),
        (b"G\0T / HTTP/1.1\r\n", Method),
        (b"\x16\x03\x01\x02\x00\x01", Method),
        (b"GET a HTTP/1.1\r\n", Target),
        (b"GET /\x01 HTTP/1.1\r\n", Target),
        (b"GET /\xc3\xa4 HTTP/1.1\r\n", Target),
        (b"GET /#f HTTP/1.1\r\n", Target),
        (b"GET /?\x7f HTTP/1.1\r\n", Target),
        (b"GET /\rX HTTP/1.1\r\n", Target),
        (b"GET * HTTP/1.1\r\n", Target),
        (b"GET a:80 HTTP/1.1\r\n", Target),
        (b"GET ftp://a/ HTTP/1.1\r\n", Target),
        (b"GET http:///a HTTP/1.1\r\n", Target),
        (b"GET http://u@a/ HTTP/1.1\r\n", Target),
        (b"GET http://a/#f HTTP/1.1\r\n", Target),
        (b"CONNECT / HTTP/1.1\r\n", Target),
        (b"CONNECT a HTTP/1.1\r\n", Target),
        (b"GET / HTTP/1.2\r\n", UnsupportedVersion),
        (b"GET / HTTP/2.0\r\n", UnsupportedVersion),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", UnsupportedVersion),
        (b"GET / http/1.1\r\n", Version),
        (b"GET / HTTP/1.1x\r\n", Version),
        (b"GET / HTTP/11\r\n", Version),
        (b"GET / HTTP/1.1\r\r\n", Version),
    ] {
        assert_eq!(refused(line), Some(refusal), "{:?}", line.escape_ascii());
    }
}

#[test]
fn fields_that_parsers_read_differently_are_refused() {
    use Refusal::*;
    for (lines, refusal) in [
        ("X: a\n", BareLf),
        ("X: a\rb\r\n", BareCr),
        ("X: a\0b\r\n", ControlByte),
        ("X: a\x0bb\r\n", ControlByte),
        ("X: a\x7f\r\n", ControlByte),
        ("X : a\r\n", SpaceBeforeColon),
        ("X\t: a\r\n", SpaceBeforeColon),
        ("X: a\r\n b\r\n", Folded),
        ("X: a\r\n\tb\r\n", Folded),
        (": a\r\n", FieldName),
        ("X\r\n", FieldName),
        ("X(: a\r\n", FieldName),
        ("X\u{e4}: a\r\n", FieldName),
        ("\0: a\r\n", FieldName),
        ("Host: a\r\n", RepeatedHost),
        ("host: b\r\n", RepeatedHost),
    ] {
        assert_eq!(refused(&with(lines)), Some(refusal), "{lines:?}");
    }
}

#[test]
fn lengths_that_parsers_read_differently_are_refused() {
    use Refusal::*;
    for (lines, refusal) in [
        (
            "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            LengthAndCoding,
        ),
        (
            "Transfer-Encoding: chunked\r\ncontent-length: 0\r\n",
            LengthAndCoding,
        ),
        ("Content-Length: 1\r\nContent-Length: 1\r\n", RepeatedLength),
        ("Content-Length: 1\r\nContent-Length: 2\r\n", RepeatedLength),
        ("Content-Length: 1, 1\r\n", RepeatedLength),
        ("Content-Length:\r\n", Length),
        ("Content-Length: +1\r\n", Length),
        ("Content-Length: -1\r\n", Length),
        ("Content-Length: 0x1\r\n", Length),
        ("Content-Length: 1 1\r\n", Length),
        ("Content-Length: 1.0\r\n", Length),
        ("Content-Length: 99999999999999999999\r\n", Length),
        ("Content-Length: 18446744073709551617\r\n", Length),
        ("Transfer-Encoding:\r\n", Coding),
        ("Transfer-Encoding: identity\r\n", Coding),
        ("Transfer-Encoding: identity, chunked\r\n", Coding),
        ("Transfer-Encoding: gzip\r\n", Coding),
        ("Transfer-Encoding: chunked, gzip\r\n", Coding),
        ("Transfer-Encoding: chunked, chunked\r\n", Coding),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            Coding,
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            Coding,
        ),
        ("Transfer-Encoding: chunked,\r\n", Coding),
        ("Transfer-Encoding: ,chunked\r\n", Coding),
        ("Transfer-Encoding: chunked;q=1\r\n", Coding),
        ("Transfer-Encoding: \"chunked\"\r\n", Coding),
        ("Transfer-Encoding: chun ked\r\n", Coding),
        ("Transfer-Encoding: gzip, chunked\r\n", UnknownCoding),
        (
            "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
            UnknownCoding,
        ),
        ("Transfer-Encoding: xchunked\r\n", UnknownCoding),
        ("Transfer-Encoding: foo, chunked\r\n", UnknownCoding),
        ("Transfer-Encoding: \x0bchunked\r\n", ControlByte),
    ] {
        assert_eq!(refused(&with(lines)), Some(refusal), "{lines:?}");
    }
    let old = b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(refused(old), Some(CodingInHttp10));
}

#[test]
fn hosts_are_demanded_and_checked() {
    assert_eq!(refused(b"GET / HTTP/1.1\r\n\r\n"), Some(Refusal::NoHost));
    assert_eq!(
        refused(b"GET http://a/ HTTP/1.1\r\n\r\n"),
        Some(Refusal::NoHost)
    );
    assert_eq!(refused(b"GET / HTTP/1.0\r\n\r\n"), None);
    for (host, good) in [
        ("a", true),
        ("a.example:8080", true),
        ("a_b-c~d", true),
        ("127.0.0.1", true),
        ("[::1]:80", true),
        ("a:", true),
        ("", false),
        (":80", false),
        ("a b", false),
        ("a/b", false),
        ("a@b", false),
        ("a?b", false),
        ("a:80:80", false),
        ("a:8x", false),
        ("a:123456", false),
        ("a%41", false),
        ("a\\b", false),
        ("[::1", false),
        ("[]", false),
        ("[::1]x", false),
        ("\u{e4}", false),
    ] {
        let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let refusal = (!good).then_some(Refusal::Host);
        assert_eq!(refused(head.as_bytes()), refusal, "{host:?}");
    }
}

#[test]
fn valid_requests_pass_whole() {
    for (line, upgrade) in [
        ("GET / HTTP/1.1", false),
        ("get /a%20b?c=\"d[]|\\^`{}' HTTP/1.1", false),
        ("OPTIONS * HTTP/1.1", false),
        ("GET http://a.example:80/b?c HTTP/1.1", false),
        ("GET http://[::1] HTTP/1.1", false),
        ("CONNECT a.example:443 HTTP/1.1", true),
        ("PURGE //a/../b HTTP/1.0", false),
    ] {
        let line = line.replace('"', "%22");
        let head = format!("{line}\r\nHOST:\ta \r\nX:\r\nY: \u{e4} \t z\r\n\r\n");
        let whole = vec![Seen::Head {
            end: head.len(),
            upgrade,
        }];
        assert_eq!(cut_everywhere(head.as_bytes(), requests), whole, "{line}");
    }
}

#[test]
fn pipelined_requests_are_found_behind_their_bodies() {
    let first = with("Content-Length: 5\r\n");
    let second = with("Transfer-Encoding: Chunked\r\n");
    let chunks = b"5;a=\"b\"\r\nGET /\r\n00A\r\n0123456789\r\n0\r\nX-Sum: 1\r\n\r\n";
    let third = b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let stream = [&first[..], b"GET /", &second, chunks, third, b"\n"].concat();
    let mut end = first.len();
    let mut expected = vec![
        Seen::Head {
            end,
            upgrade: false,
        },
        Seen::Body(5),
    ];
    end += 5 + second.len();
    expected.extend([
        Seen::Head {
            end,
            upgrade: false,
        },
        Seen::Body(chunks.len()),
    ]);
    end += chunks.len() + third.len();
    expected.extend([
        Seen::Head {
            end,
            upgrade: false,
        },
        Seen::Refused(Refusal::BareLf),
    ]);
    assert_eq!(cut_everywhere(&stream, requests), expected);
}

#[test]
fn bad_chunks_are_refused_where_they_begin() {
    use Refusal::*;
    let head = with("Transfer-Encoding: chunked\r\n");
    for (chunks, good, refusal) in [
        ("\r\n", 0, ChunkSize),
        ("g\r\n", 0, ChunkSize),
        ("0x5\r\n", 1, ChunkSize),
        ("+5\r\n", 0, ChunkSize),
        (" 5\r\n", 0, ChunkSize),
        ("5 \r\n", 1, ChunkSize),
        ("5 ;a\r\n", 1, ChunkSize),
        (";a\r\n", 0, ChunkSize),
        ("00000000000000001\r\n", 16, ChunkSize),
        ("1\na\r\n", 1, BareLf),
        ("1\ra\r\n", 2, BareCr),
        ("1;a\nb\r\n", 3, BareLf),
        ("1;a\0b\r\n", 3, ChunkExtension),
        ("1;a\rb\r\n", 4, BareCr),
        ("1\r\nab\r\n", 4, ChunkEnd),
        ("1\r\na\n", 4, ChunkEnd),
        ("1\r\na0\r\n\r\n", 4, ChunkEnd),
        ("0\r\nX : a\r\n\r\n", 4, SpaceBeforeColon),
        ("0\r\n a\r\n\r\n", 3, Folded),
        ("0\r\nX: a\r\n b\r\n\r\n", 9, Folded),
        ("0\r\n: a\r\n\r\n", 3, FieldName),
        ("0\r\nXy\r\n\r\n", 5, FieldName),
        ("0\r\nX: a\n\r\n", 7, BareLf),
        ("0\r\nX: \0\r\n\r\n", 6, ControlByte),
        ("0\r\n\n", 3, BareLf),
        ("0\r\n\rX", 4, BareCr),
    ] {
        let mut expected = vec![Seen::Head {
            end: head.len(),
            upgrade: false,
        }];
        expected.extend((good > 0).then_some(Seen::Body(good)));
        expected.push(Seen::Refused(refusal));
        let stream = [&head, chunks.as_bytes()].concat();
        assert_eq!(cut_everywhere(&stream, requests), expected, "{chunks:?}");
    }
}

#[test]
fn chunk_extensions_and_trailers_are_bounded() {
    let head = with("Transfer-Encoding: chunked\r\n");
    let last = |chunks: String| requests(&[&head, chunks.as_bytes()].concat(), &[]).pop();
    let body = |chunks: &str| Some(Seen::Body(chunks.len()));
    let bound = 16 * 1024;

    let extensions = format!("1;{}\r\na\r\n", "e".repeat(100)).repeat(160);
    assert_eq!(last(extensions.clone()), body(&extensions));
    assert_eq!(
        last(extensions.repeat(2)),
        Some(Seen::Refused(Refusal::ChunkExtension))
    );

    let trailer = format!("0\r\nX: {}\r\n\r\n", "v".repeat(bound - 100));
    assert_eq!(last(trailer.clone()), body(&trailer));
    let trailer = format!("0\r\nX: {}\r\n\r\n", "v".repeat(bound));
    assert_eq!(last(trailer), Some(Seen::Refused(Refusal::Trailers)));
    let trailers = format!("0\r\n{}\r\n", "X: a\r\n".repeat(101));
    assert_eq!(last(trailers), Some(Seen::Refused(Refusal::Trailers)));
}

#[test]
fn heads_are_bounded_and_long_targets_have_their_own_status() {
    let fits = |length: usize| {
        let head = with(&format!("X: {}\r\n", "v".repeat(length)));
        (head.len(), refused(&head))
    };
    let (length, verdict) = fits(LIMITS.head - with("X: \r\n").len());
    assert_eq!((length, verdict), (LIMITS.head, None));
    let (length, verdict) = fits(LIMITS.head - with("X: \r\n").len() + 1);
    assert_eq!(
        (length, verdict),
        (LIMITS.head + 1, Some(Refusal::HeadTooLarge))
    );

    let long = "a".repeat(LIMITS.head);
    let target = format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(refused(target.as_bytes()), Some(Refusal::TargetTooLong));
    assert_eq!(
        refused(format!("{long}{long}").as_bytes()),
        Some(Refusal::Method)
    );
    let version = format!("GET / {long}\r\n");
    assert_eq!(refused(version.as_bytes()), Some(Refusal::HeadTooLarge));

    let wide = Limits {
        head: 1 << 20,
        fields: 100,
    };
    let target = format!("GET /{} HTTP/1.1\r\n", "a".repeat(65_534));
    let verdict = RequestFramer::new(wide).step(target.as_bytes());
    assert_eq!(verdict, Step::Refused(Refusal::TargetTooLong));

    let fields = |count: usize| {
        let head = with(&"X: a\r\n".repeat(count - 1));
        match RequestFramer::new(wide).step(&head) {
            Step::Refused(refusal) => Some(refusal),
            _ => None,
        }
    };
    assert_eq!(fields(100), None);
    assert_eq!(fields(101), Some(Refusal::TooManyFields));
}

#[test]
fn an_upgrade_is_one_only_if_connection_names_it() {
    for (lines, upgrade) in [
        (
            "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n",
            true,
        ),
        (
            "Connection: close\r\nConnection:upgrade\r\nUpgrade: h2c\r\n",
            true,
        ),
        ("Upgrade: websocket\r\n", false),
        ("Connection: upgrade\r\n", false),
        ("Upgrade: websocket\r\nConnection: upgraded\r\n", false),
    ] {
        let head = with(lines);
        assert_eq!(
            requests(&head, &[]),
            [Seen::Head {
                end: head.len(),
                upgrade
            }],
            "{lines:?}"
        );
    }
}

#[test]
fn the_statuses_are_those_that_clients_know() {
    for (refusal, status) in [
        (Refusal::BareLf, 400),
        (Refusal::Late, 408),
        (Refusal::TargetTooLong, 414),
        (Refusal::HeadTooLarge, 431),
        (Refusal::TooManyFields, 431),
        (Refusal::UnknownCoding, 501),
        (Refusal::UnsupportedVersion, 505),
    ] {
        assert_eq!(refusal.status().as_u16(), status);
    }
}

fn answer_to(asked: MethodKind, bytes: &str) -> Vec<Seen> {
    cut_everywhere(bytes.as_bytes(), |bytes, cuts| answers(asked, bytes, cuts))
}

#[test]
fn answers_that_parsers_read_differently_are_refused() {
    use Refusal::*;
    for (answer, refusal) in [
        ("HTTP/1.1 200 OK\nX: a\n\n", BareLf),
        ("http/1.1 200 OK\r\n", StatusLine),
        ("HTTP/2.0 200 OK\r\n", StatusLine),
        ("HTTP/1.2 200 OK\r\n", StatusLine),
        ("HTTP/1.1  200 OK\r\n", StatusLine),
        ("HTTP/1.1 20 OK\r\n", StatusLine),
        ("HTTP/1.1 2000 OK\r\n", StatusLine),
        ("HTTP/1.1 099 OK\r\n", StatusLine),
        ("HTTP/1.1 +20 OK\r\n", StatusLine),
        ("HTTP/1.1 200 O\0K\r\n", StatusLine),
        ("\r\nHTTP/1.1 200 OK\r\n", StatusLine),
        ("garbage without an end", StatusLine),
        ("HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", Folded),
        ("HTTP/1.1 200 OK\r\nX : a\r\n\r\n", SpaceBeforeColon),
        ("HTTP/1.1 200 OK\r\nX: \0\r\n\r\n", ControlByte),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
            RepeatedLength,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n",
            RepeatedLength,
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            LengthAndCoding,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
            Coding,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: foo\r\n\r\n",
            UnknownCoding,
        ),
        (
            "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            CodingInHttp10,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\n",
            ChunkSize,
        ),
    ] {
        let verdict = answer_to(MethodKind::Other, answer).pop();
        assert_eq!(verdict, Some(Seen::Refused(refusal)), "{answer:?}");
    }
}

#[test]
fn the_length_of_an_answer_depends_on_what_was_asked() {
    use MethodKind::*;
    let length = "Content-Length: 3\r\n";
    let chunked = "Transfer-Encoding: chunked\r\n";
    for (asked, status, fields, body, rests, opaque) in [
        (Other, 200, length, "abc", true, false),
        (Other, 200, length, "ab", false, false),
        (Other, 200, "Content-Length: 0\r\n", "", true, false),
        (Other, 200, chunked, "1\r\na\r\n0\r\n\r\n", true, false),
        (Other, 200, chunked, "1\r\na\r\n0\r\n", false, false),
        (Other, 200, "", "abc", false, true),
        (Other, 204, "", "", true, false),
        (Other, 304, length, "", true, false),
        (Other, 100, "", "", false, false),
        (Other, 103, "Link: a\r\n", "", false, false),
        (Other, 101, "Upgrade: x\r\n", "\0\n", false, true),
        (Head, 200, length, "", true, false),
        (Head, 200, chunked, "", true, false),
        (Connect, 200, "", "\0\n", false, true),
        (Connect, 405, length, "abc", true, false),
    ] {
        let head = format!("HTTP/1.1 {status}\r\n{fields}\r\n");
        let stream = format!("{head}{body}");
        let mut expected = vec![Seen::Answer {
            end: head.len(),
            status,
        }];
        expected.extend((!body.is_empty()).then_some(Seen::Body(body.len())));
        assert_eq!(answer_to(asked, &stream), expected, "{asked:?} {stream:?}");

        let mut framer = ResponseFramer::new(LIMITS);
        framer.expect(asked);
        framer.step(stream.as_bytes());
        if !body.is_empty() {
            framer.step(body.as_bytes());
        }
        assert_eq!(
            (framer.is_at_rest(), framer.is_opaque()),
            (rests, opaque),
            "{stream:?}"
        );
    }
}

#[test]
fn informational_answers_precede_the_final_one() {
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let last = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
    let seen = answer_to(MethodKind::Other, &format!("{hints}{last}a"));
    let end = hints.len() + last.len();
    let expected = [
        Seen::Answer {
            end: hints.len(),
            status: 103,
        },
        Seen::Answer { end, status: 200 },
        Seen::Body(1),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_refused_head_is_read_for_its_record() {
    let head = b"\r\nHEAD /a?b HTTP/1.1\r\nX : y\r\nhost:  a.example \r\n";
    let legible = Legible::of(head);
    assert_eq!(legible.method, Some("HEAD"));
    assert_eq!(legible.target, Some("/a?b"));
    assert_eq!(legible.host, Some("a.example"));
    assert_eq!(Legible::of(b"\x16\x03\x01 / "), Legible::default());
    let long = [b"GET /", &[b'a'; 5000][..]].concat();
    assert_eq!(Legible::of(&long).target.map(str::len), Some(1024));
}

#[test]
fn a_refusal_is_found_among_the_causes_of_an_error() {
    let outer = Unreadable(Unreadable(Refusal::ChunkSize));
    assert_eq!(refusal_in(&outer), Some(&Refusal::ChunkSize));
    assert_eq!(refusal_in(&Unreadable(std::fmt::Error)), None);
}

/// Requests made of pieces that meet in odd ways.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\nGET / \r",
        "PUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: a\r\n\r\n",
        "3\r\na\r\n\r\n",
        "0\r\n\r\n",
        "0\r\nX: y\r\n\r\n",
        "1;e\r\n\n\r\n",
        "\r\n",
        "\r",
        "\n",
        ":",
        " ",
        "\0",
        "GET",
    ]);
    prop::collection::vec(piece, 1..12).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    #[test]
    fn the_verdict_does_not_depend_on_the_reads(
        stream in streams(),
        cuts in prop::collection::btree_set(0..400_usize, 0..20),
    ) {
        let cuts: Vec<_> = cuts.into_iter().filter(|&cut| cut < stream.len()).collect();
        prop_assert_eq!(requests(&stream, &cuts), requests(&stream, &[]));
    }

    #[test]
    fn no_bytes_break_a_framer(bytes in prop::collection::vec(any::<u8>(), 1..300)) {
        requests(&bytes, &[]);
        answers(MethodKind::Other, &bytes, &[]);
        let chunked = [&with("Transfer-Encoding: chunked\r\n"), &bytes[..]].concat();
        requests(&chunked, &[]);
    }

    /// hyper's own parser takes every head that passes, whatever is in its target and fields.
    #[test]
    fn what_passes_is_a_uri(target in "[!-~]{0,40}") {
        let head = format!("GET /{target} HTTP/1.1\r\nHost: a\r\n\r\n");
        if let Step::Head(_) = RequestFramer::new(LIMITS).step(head.as_bytes()) {
            prop_assert_eq!(format!("/{target}").parse::<http::Uri>().unwrap().to_string(), format!("/{target}"));
        }
        let head = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        if let Step::Head(_) = RequestFramer::new(LIMITS).step(head.as_bytes()) {
            prop_assert!(target.parse::<http::Uri>().is_ok());
        }
    }
}
