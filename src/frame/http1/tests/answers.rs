//! Answers, byte for byte.

use super::*;

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
