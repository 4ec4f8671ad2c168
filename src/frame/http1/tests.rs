#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod answers;
mod requests;

use proptest::prelude::*;

use super::*;
use requests::with;

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
    fn control_characters_are_found_wherever_they_stand(value in "[ -~\t\u{e4}\0\u{1f}\u{7f}]{0,40}") {
        let bytes = value.as_bytes();
        prop_assert_eq!(chars::is_clean(bytes), !bytes.iter().any(|&byte| chars::is_control(byte)));
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
