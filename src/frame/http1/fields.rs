//! Field lines, and what they say about the length of the body (RFC 9112 section 6).

use super::chars::{is_clean, is_token, trim};
use super::refusal::Refusal;

/// Longest name that the `http` crate holds, and hence hyper.
const LONGEST_NAME: usize = u16::MAX as usize - 1;
/// Digits of a Content-Length: nobody sends an exabyte, and nothing below 2^63 overflows anywhere.
const LONGEST_LENGTH: usize = 18;

/// What the field lines of a head said so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fields {
    count: usize,
    length: Option<u64>,
    codings: Codings,
}

/// A field that somebody else has to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field<'a> {
    Host(&'a [u8]),
    Connection(&'a [u8]),
    Upgrade,
    Other,
}

/// How long a body is, if the head says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Unstated,
    Length(u64),
    Chunked,
}

impl Fields {
    /// Takes one line, without its CRLF; of `most` at most.
    pub(super) fn line<'a>(&mut self, line: &'a [u8], most: usize) -> Result<Field<'a>, Refusal> {
        let (name, value) = split(line)?;
        self.count += 1;
        if self.count > most {
            return Err(Refusal::TooManyFields);
        }
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => return Ok(Field::Host(value)),
            7 if name.eq_ignore_ascii_case(b"upgrade") => return Ok(Field::Upgrade),
            10 if name.eq_ignore_ascii_case(b"connection") => return Ok(Field::Connection(value)),
            14 if name.eq_ignore_ascii_case(b"content-length") => self.length(value)?,
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.codings.line(value),
            _ => {}
        }
        Ok(Field::Other)
    }

    fn length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        if self.length.is_some() || value.contains(&b',') {
            return Err(Refusal::RepeatedLength);
        }
        if value.is_empty() || value.len() > LONGEST_LENGTH {
            return Err(Refusal::Length);
        }
        let mut length = 0;
        for digit in value {
            if !digit.is_ascii_digit() {
                return Err(Refusal::Length);
            }
            length = length * 10 + u64::from(digit - b'0');
        }
        self.length = Some(length);
        Ok(())
    }

    /// What the whole head says.
    pub(super) fn extent(&self, http10: bool) -> Result<Extent, Refusal> {
        if !self.codings.present {
            return Ok(self.length.map_or(Extent::Unstated, Extent::Length));
        }
        if http10 {
            return Err(Refusal::CodingInHttp10);
        }
        if self.length.is_some() {
            return Err(Refusal::LengthAndCoding);
        }
        self.codings.verdict().map(|()| Extent::Chunked)
    }
}

/// Name and trimmed value of a line.
fn split(line: &[u8]) -> Result<(&[u8], &[u8]), Refusal> {
    let end = line.iter().position(|&byte| !is_token(byte));
    match end.map(|end| (end, line[end])) {
        Some((0, b' ' | b'\t')) => Err(Refusal::Folded),
        Some((_, b' ' | b'\t')) => Err(Refusal::SpaceBeforeColon),
        Some((end, b':')) if end > 0 => {
            let (name, value) = (&line[..end], &line[end + 1..]);
            if name.len() > LONGEST_NAME {
                return Err(Refusal::HeadTooLarge);
            }
            if !is_clean(value) {
                let cr = value.contains(&b'\r');
                return Err(if cr {
                    Refusal::BareCr
                } else {
                    Refusal::ControlByte
                });
            }
            Ok((name, trim(value)))
        }
        _ => Err(Refusal::FieldName),
    }
}

/// The list of all Transfer-Encoding lines together.
#[derive(Debug, Clone, Copy, Default)]
struct Codings {
    present: bool,
    malformed: bool,
    unknown: bool,
    /// A registered coding that is not done here.
    foreign: bool,
    chunked: u8,
    last_is_chunked: bool,
}

impl Codings {
    fn line(&mut self, value: &[u8]) {
        self.present = true;
        for coding in value.split(|&byte| byte == b',').map(trim) {
            self.last_is_chunked = false;
            if coding.eq_ignore_ascii_case(b"chunked") {
                self.chunked = self.chunked.saturating_add(1);
                self.last_is_chunked = true;
            } else if coding.is_empty()
                || !coding.iter().all(|&byte| is_token(byte))
                || coding.eq_ignore_ascii_case(b"identity")
            {
                self.malformed = true;
            } else if is_registered(coding) {
                self.foreign = true;
            } else {
                self.unknown = true;
            }
        }
    }

    /// One `chunked`, alone. What nobody registered is 501; what is registered but leaves the
    /// length open is 400 (RFC 9112 section 6.3); a registered one under a final `chunked` is 501.
    fn verdict(self) -> Result<(), Refusal> {
        if self.malformed {
            Err(Refusal::Coding)
        } else if self.unknown {
            Err(Refusal::UnknownCoding)
        } else if !self.last_is_chunked || self.chunked > 1 {
            Err(Refusal::Coding)
        } else if self.foreign {
            Err(Refusal::UnknownCoding)
        } else {
            Ok(())
        }
    }
}

fn is_registered(coding: &[u8]) -> bool {
    const NAMES: [&[u8]; 5] = [b"gzip", b"x-gzip", b"deflate", b"compress", b"x-compress"];
    NAMES.iter().any(|name| coding.eq_ignore_ascii_case(name))
}
