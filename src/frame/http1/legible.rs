//! What can be read of a head that was refused, for its record. Never used to decide anything.

use super::chars::{is_token, trim};

/// Longer parts are cut: a record is one line.
const LONGEST: usize = 1024;

/// The parts of a refused head that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Legible<'a> {
    /// A token.
    pub method: Option<&'a str>,
    /// Visible ASCII, at most 1,024 bytes.
    pub target: Option<&'a str>,
    /// Visible ASCII, at most 1,024 bytes; of the first Host line.
    pub host: Option<&'a str>,
}

impl<'a> Legible<'a> {
    /// Reads what can be read.
    #[must_use]
    pub fn of(head: &'a [u8]) -> Self {
        let head = head.strip_prefix(b"\r\n").unwrap_or(head);
        let mut lines = head.split(|&byte| byte == b'\n');
        let mut words = lines.next().unwrap_or_default().split(|&byte| byte == b' ');
        let method = words
            .next()
            .filter(|word| word.iter().all(|&byte| is_token(byte)));
        let target = method.and_then(|_| words.next());
        let host = lines.find_map(|line| {
            let (name, value) = line.split_at_checked(5)?;
            name.eq_ignore_ascii_case(b"host:")
                .then_some(trim(value.trim_ascii_end()))
        });
        Self {
            method: method.and_then(visible),
            target: target.map(<[u8]>::trim_ascii_end).and_then(visible),
            host: host.and_then(visible),
        }
    }
}

fn visible(bytes: &[u8]) -> Option<&str> {
    let bytes = &bytes[..bytes.len().min(LONGEST)];
    let good = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_graphic);
    std::str::from_utf8(bytes).ok().filter(|_| good)
}
