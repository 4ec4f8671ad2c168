//! Values as they stand in a line, so that no value can end a line, a string or a column.
//!
//! Clients choose paths, hosts and parts of error texts: what they send may be read by a terminal,
//! a script or a log collector, and must never be more to it than a value.

use std::fmt::{self, Write};
use std::net::IpAddr;
use std::time::Duration;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// A JSON string (RFC 8259 section 7), quotes included. Control characters, the C1 ones too, are
/// escaped; everything else is passed as UTF-8.
pub(super) fn json_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    json_part(text, out);
    out.push(b'"');
}

fn json_part(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    // Without a branch a byte, so that it is done for many at a time: most values are harmless.
    let harmless = bytes.iter().fold(true, |so_far, &byte| {
        so_far & (byte >= 0x20) & !matches!(byte, b'"' | b'\\' | 0x7f | 0xc2)
    });
    if harmless {
        return out.extend_from_slice(bytes);
    }
    for c in text.chars() {
        match c {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            // All of them are below 256.
            c if c.is_control() => json_code(c as u8, out),
            c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

fn json_code(code: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\\u00");
    out.extend_from_slice(&hex(code));
}

fn hex(byte: u8) -> [u8; 2] {
    [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]
}

/// A value in a line for people: one column, `-` where it is empty. White space, control
/// characters and those that reorder or hide text are escaped as `\n`, `\x20` or `\u{202e}`.
pub(super) fn column(text: &str, out: &mut Vec<u8>) {
    if text.is_empty() {
        return out.push(b'-');
    }
    escaped(text, |c| c.is_whitespace(), out);
}

/// Free text in a line for people: the same, but spaces stay.
pub(super) fn words(text: &str, out: &mut Vec<u8>) {
    escaped(text, |c| c != ' ' && c.is_whitespace(), out);
}

fn escaped(text: &str, also: fn(char) -> bool, out: &mut Vec<u8>) {
    let harmless = text.bytes().fold(true, |so_far, byte| {
        so_far & byte.is_ascii_graphic() & (byte != b'\\')
    });
    if harmless {
        return out.extend_from_slice(text.as_bytes());
    }
    for c in text.chars() {
        match c {
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            c if !(also(c) || deceives(c)) => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            c if c.is_ascii() => {
                out.extend_from_slice(b"\\x");
                out.extend_from_slice(&hex(c as u8));
            }
            c => display(c.escape_unicode(), out),
        }
    }
}

/// Characters that a terminal acts on, reorders by or does not show.
fn deceives(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// An address of a client.
pub(super) fn address(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        // By hand: `Display` is the slowest part of a line.
        IpAddr::V4(address) => {
            for (at, octet) in address.octets().into_iter().enumerate() {
                if at > 0 {
                    out.push(b'.');
                }
                number(u64::from(octet), out);
            }
        }
        IpAddr::V6(address) => display(address, out),
    }
}

pub(super) fn number(value: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Milliseconds with three decimals.
pub(super) fn millis(duration: Duration, out: &mut Vec<u8>) {
    let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    number(micros / 1000, out);
    let rest = (micros % 1000) as u32;
    let digit = |value: u32| b'0' + (value % 10) as u8;
    out.extend_from_slice(&[b'.', digit(rest / 100), digit(rest / 10), digit(rest)]);
}

/// What its `Display` gives, as it is.
pub(super) fn display(value: impl fmt::Display, out: &mut Vec<u8>) {
    let _ = write!(
        Through {
            out,
            print: |text, out| out.extend_from_slice(text.as_bytes())
        },
        "{value}"
    );
}

/// What its `Display` gives, as [`words`].
pub(super) fn display_words(value: fmt::Arguments<'_>, out: &mut Vec<u8>) {
    let _ = Through { out, print: words }.write_fmt(value);
}

/// What its `Display` gives, as a JSON string.
pub(super) fn display_json(value: fmt::Arguments<'_>, out: &mut Vec<u8>) {
    out.push(b'"');
    let _ = Through {
        out,
        print: json_part,
    }
    .write_fmt(value);
    out.push(b'"');
}

struct Through<'a> {
    out: &'a mut Vec<u8>,
    print: fn(&str, &mut Vec<u8>),
}

impl Write for Through<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        (self.print)(text, self.out);
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    use super::*;

    /// Text with everything in it; `any::<String>` has no control characters.
    pub(in crate::telemetry) fn nasty() -> impl Strategy<Value = String> {
        let c = prop_oneof![any::<char>(), (0..0xa0_u8).prop_map(char::from)];
        proptest::collection::vec(c, 0..40).prop_map(String::from_iter)
    }

    fn printed(print: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        print(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_value_stays_one_column() {
        for (value, shown) in [
            ("", "-"),
            ("/users?a=b", "/users?a=b"),
            ("/a 200 HTTP/1.1", r"/a\x20200\x20HTTP/1.1"),
            ("a\r\n2026 forged", r"a\r\n2026\x20forged"),
            ("\u{1b}[2J", r"\x1b[2J"),
            (r"back\slash", r"back\\slash"),
            ("größe", "größe"),
            ("\u{202e}txt", r"\u{202e}txt"),
            ("\u{9b}31m", r"\u{9b}31m"),
            ("a\u{2028}b\u{a0}c", r"a\u{2028}b\u{a0}c"),
        ] {
            assert_eq!(printed(|out| column(value, out)), shown);
        }
        assert_eq!(printed(|out| words("two words\n", out)), r"two words\n");
    }

    #[test]
    fn addresses_are_as_everybody_writes_them() {
        for text in ["0.0.0.0", "127.0.0.1", "255.10.9.100", "::1", "2001:db8::7"] {
            assert_eq!(printed(|out| address(text.parse().unwrap(), out)), text);
        }
    }

    #[test]
    fn times_are_milliseconds_to_the_microsecond() {
        for (micros, shown) in [(0, "0.000"), (7, "0.007"), (1_234_567, "1234.567")] {
            assert_eq!(
                printed(|out| millis(Duration::from_micros(micros), out)),
                shown
            );
        }
    }

    proptest! {
        #[test]
        fn json_reads_back_as_it_was(text in nasty()) {
            let json = printed(|out| json_string(&text, out));
            prop_assert_eq!(serde_json::from_str::<String>(&json)?, text);
            prop_assert!(!json.chars().any(char::is_control));
        }

        #[test]
        fn json_of_what_displays_in_pieces_reads_back(parts in proptest::collection::vec(nasty(), 0..4)) {
            let json = printed(|out| display_json(format_args!("{parts:?}"), out));
            prop_assert_eq!(serde_json::from_str::<String>(&json)?, format!("{parts:?}"));
        }

        #[test]
        fn a_column_holds_nothing_that_ends_it(text in nasty()) {
            let shown = printed(|out| column(&text, out));
            prop_assert!(!shown.chars().any(|c| c.is_whitespace() || deceives(c)), "{shown:?}");
        }
    }
}
