//! What a second tier holds, as bytes that other instances read too: an object with its key, one
//! coded form, or by which fields a URL's answers vary.
//!
//! What comes from there is judged like what comes from the network: a version and a checksum over
//! all of it, bounds on each part, heads that keep only what we would have kept. Whoever may write
//! there may still lie; a checksum is no signature.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::freshness::Freshness;
use super::kept;
use super::key::{Selector, Url};
use super::object::Object;
use super::store::Entry;
use crate::codec::Coding;

/// One record of the second tier.
#[derive(Debug, Clone)]
pub enum Record {
    /// A stored response.
    Entry {
        /// With its key.
        entry: Entry,
        /// What the tier's clock showed before the app was asked.
        asked: u64,
    },
    /// A URL's answers vary: where they lie depends on these fields.
    Fork(Fork),
    /// A coded form.
    Coded(Coded),
}

/// By what a URL's answers vary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// The fields, sorted.
    pub names: Vec<HeaderName>,
    /// Part of where its answers lie: another fork leads to none of them.
    pub generation: u64,
}

/// One coded form of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coded {
    /// Names the key and the plain bytes.
    pub of: [u8; 32],
    /// Its coding.
    pub coding: Coding,
    /// It is as dense as it gets.
    pub dense: bool,
    /// The coded bytes; none: plain ones are as good.
    pub bytes: Bytes,
}

/// What is no record of ours, in this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// It does not start as a record of this version does.
    #[error("not a record of this version")]
    Foreign,
    /// The checksum is another one.
    #[error("corrupt")]
    Corrupt,
    /// Larger than the reader allows.
    #[error("too large")]
    TooLarge,
    /// The checksum is right, and what it covers is not.
    #[error("malformed")]
    Malformed,
}

/// Changes with every change of the format.
const MAGIC: &[u8; 8] = b"thinwir1";
const CHECKSUM: usize = 32;
/// Bytes of one text: a URL, a route's name, a field's name.
const LONGEST_TEXT: usize = 64 * 1024;
/// Field lines of a head.
const MOST_FIELDS: usize = 1024;

const VALIDATE: u8 = 1;
const STRICT: u8 = 2;
const AUTHORIZED: u8 = 4;

const ENTRY: u8 = 1;
const FORK: u8 = 2;
const CODED: u8 = 3;

/// Writes a record; the length of the result is what it weighs there.
#[must_use]
pub fn encode(record: &Record) -> Bytes {
    let bulk = match record {
        Record::Entry { entry, .. } => entry.object.body().len(),
        Record::Fork(_) => 0,
        Record::Coded(coded) => coded.bytes.len(),
    };
    let mut out = Vec::with_capacity(4096 + bulk);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[0; CHECKSUM]);
    match record {
        Record::Entry { entry, asked } => write_entry(&mut out, entry, *asked),
        Record::Fork(fork) => {
            out.push(FORK);
            write_names(&mut out, &fork.names);
            out.extend_from_slice(&fork.generation.to_be_bytes());
        }
        Record::Coded(coded) => {
            out.push(CODED);
            out.extend_from_slice(&coded.of);
            out.extend_from_slice(&[code(coded.coding), u8::from(coded.dense)]);
            text(&mut out, &coded.bytes);
        }
    }
    let checksum = blake3::hash(&out[MAGIC.len() + CHECKSUM..]);
    out[MAGIC.len()..MAGIC.len() + CHECKSUM].copy_from_slice(checksum.as_bytes());
    Bytes::from(out)
}

fn write_entry(out: &mut Vec<u8>, entry: &Entry, asked: u64) {
    let object = &entry.object;
    out.push(ENTRY);
    out.extend_from_slice(&asked.to_be_bytes());
    text(out, entry.url.as_str().as_bytes());
    text(out, entry.route.as_bytes());
    let (names, values) = entry.selector.parts();
    write_names(out, names);
    text(out, values);
    out.extend_from_slice(&object.status().as_u16().to_be_bytes());
    freshness(out, object.freshness());
    number(out, object.head().len());
    for (name, value) in object.head() {
        text(out, name.as_str().as_bytes());
        text(out, value.as_bytes());
    }
    text(out, object.body());
}

fn write_names(out: &mut Vec<u8>, names: &[HeaderName]) {
    number(out, names.len());
    for name in names {
        text(out, name.as_str().as_bytes());
    }
}

/// Reads a record of at most `most` bytes. What it is of has to be compared with what was asked
/// for.
///
/// # Errors
/// For all that [`encode`] did not write.
pub fn decode(bytes: &[u8], most: usize) -> Result<Record, WireError> {
    if bytes.len() > most {
        return Err(WireError::TooLarge);
    }
    let rest = bytes.strip_prefix(MAGIC).ok_or(WireError::Foreign)?;
    let (checksum, rest) = rest.split_at_checked(CHECKSUM).ok_or(WireError::Corrupt)?;
    if blake3::hash(rest) != *checksum {
        return Err(WireError::Corrupt);
    }
    Reader(rest).record().ok_or(WireError::Malformed)
}

fn number(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&(number as u64).to_be_bytes());
}

fn text(out: &mut Vec<u8>, text: &[u8]) {
    number(out, text.len());
    out.extend_from_slice(text);
}

fn time(out: &mut Vec<u8>, time: Duration) {
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    out.extend_from_slice(&millis.to_be_bytes());
}

fn freshness(out: &mut Vec<u8>, freshness: &Freshness) {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    out.push(
        flag(freshness.validate, VALIDATE)
            | flag(freshness.strict, STRICT)
            | flag(freshness.authorized, AUTHORIZED),
    );
    let born = freshness.born.duration_since(SystemTime::UNIX_EPOCH);
    time(out, born.unwrap_or_default());
    time(out, freshness.lifetime);
    time(out, freshness.while_revalidate);
    time(out, freshness.if_error);
}

const fn code(coding: Coding) -> u8 {
    match coding {
        Coding::Gzip => 1,
        Coding::Deflate => 2,
        Coding::Brotli => 3,
        Coding::Zstd => 4,
    }
}

/// What is left to read; each reader gives `None` for what is not there.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn record(mut self) -> Option<Record> {
        let record = match self.array()? {
            [ENTRY] => Record::Entry {
                asked: u64::from_be_bytes(self.array()?),
                entry: self.entry()?,
            },
            [FORK] => Record::Fork(Fork {
                names: self.names()?,
                generation: u64::from_be_bytes(self.array()?),
            }),
            [CODED] => Record::Coded(self.coded()?),
            _ => return None,
        };
        self.0.is_empty().then_some(record)
    }

    fn entry(&mut self) -> Option<Entry> {
        Some(Entry {
            url: Url::from_key(self.string()?),
            route: self.string()?.into(),
            selector: Selector::from_parts(self.names()?, self.text(Selector::MOST_BYTES)?)?,
            object: Arc::new(self.object()?),
        })
    }

    fn names(&mut self) -> Option<Vec<HeaderName>> {
        let count = self.number(Selector::MOST_FIELDS)?;
        (0..count).map(|_| self.name()).collect()
    }

    fn object(&mut self) -> Option<Object> {
        let status = u16::from_be_bytes(self.array()?);
        let status = StatusCode::from_u16(status).ok()?;
        let freshness = self.freshness()?;
        let mut head = HeaderMap::new();
        for _ in 0..self.number(MOST_FIELDS)? {
            let name = self.name()?;
            let value = HeaderValue::from_bytes(self.text(LONGEST_TEXT)?).ok()?;
            head.try_append(name, value).ok()?;
        }
        let body = self.text(usize::MAX)?;
        let body = Bytes::copy_from_slice(body);
        Object::foreign(status, kept::head(&head, freshness.born), body, freshness)
    }

    fn freshness(&mut self) -> Option<Freshness> {
        let [flags] = self.array()?;
        let born = SystemTime::UNIX_EPOCH.checked_add(self.time()?)?;
        Some(Freshness {
            born,
            lifetime: self.time()?,
            validate: flags & VALIDATE != 0,
            strict: flags & STRICT != 0,
            authorized: flags & AUTHORIZED != 0,
            while_revalidate: self.time()?,
            if_error: self.time()?,
        })
    }

    fn coded(&mut self) -> Option<Coded> {
        let of = self.array()?;
        let [coding, dense] = self.array()?;
        let known = [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd];
        let coding = known.into_iter().find(|&known| code(known) == coding)?;
        let bytes = self.text(usize::MAX)?;
        (dense <= 1).then(|| Coded {
            of,
            coding,
            dense: dense == 1,
            bytes: Bytes::copy_from_slice(bytes),
        })
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn time(&mut self) -> Option<Duration> {
        self.array()
            .map(u64::from_be_bytes)
            .map(Duration::from_millis)
    }

    fn number(&mut self, most: usize) -> Option<usize> {
        let number = u64::from_be_bytes(self.array()?);
        usize::try_from(number)
            .ok()
            .filter(|&number| number <= most)
    }

    fn text(&mut self, most: usize) -> Option<&'a [u8]> {
        let length = self.number(most)?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }

    fn string(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.text(LONGEST_TEXT)?).ok()
    }

    fn name(&mut self) -> Option<HeaderName> {
        HeaderName::from_bytes(self.text(LONGEST_TEXT)?).ok()
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
