//! Requests, byte for byte.

use super::*;

fn refused(bytes: &[u8]) -> Option<Refusal> {
    match cut_everywhere(bytes, requests).pop() {
        Some(Seen::Refused(refusal)) => Some(refusal),
        _ => None,
    }
}

/// A request with these lines between its request line and the empty one.
pub(super) fn with(lines: &str) -> Vec<u8> {
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
