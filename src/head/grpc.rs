//! What gRPC and its relatives say in heads and trailers: who speaks what, which codings are
//! taken, how long a call may last, how it went.

use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};

use super::list;
use super::media::MediaType;
use crate::codec::Coding;

/// A protocol of framed messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// gRPC over HTTP/2.
    Grpc,
    /// gRPC-Web; `text`: in base64.
    Web {
        /// `application/grpc-web-text`.
        text: bool,
    },
    /// A stream of the Connect protocol.
    Connect,
}

/// `grpc-encoding`: what the messages with the compressed flag are in.
pub const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
/// What the sender of this head takes.
pub const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
/// The same two of Connect streams.
pub const CONNECT_ENCODING: HeaderName = HeaderName::from_static("connect-content-encoding");
/// See [`CONNECT_ENCODING`].
pub const CONNECT_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("connect-accept-encoding");
/// How long the client waits.
pub const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// How a call went.
pub const STATUS: HeaderName = HeaderName::from_static("grpc-status");
/// The same in words, percent-encoded.
pub const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// The codings of messages that are known here, as a list of what we take.
pub const WE_TAKE: HeaderValue = HeaderValue::from_static("identity,gzip,deflate,zstd");
/// Only plain messages.
pub const IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// How a call went: the codes that a proxy has reason to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// 1
    Cancelled,
    /// 4
    DeadlineExceeded,
    /// 7
    PermissionDenied,
    /// 8
    ResourceExhausted,
    /// 12
    Unimplemented,
    /// 13
    Internal,
    /// 14
    Unavailable,
    /// 16
    Unauthenticated,
}

/// A set of message codings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Codings(u8);

/// What a head says its compressed messages are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announced {
    /// Nothing, or identity.
    Identity,
    /// A coding that is known here.
    Known(Coding),
    /// Another one.
    Unknown,
}

impl Dialect {
    /// What a head of this type begins.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let media = MediaType::of(headers)?;
        if media.is_grpc() {
            return Some(Self::Grpc);
        }
        if media.is_connect_stream() {
            return Some(Self::Connect);
        }
        media.grpc_web().map(|text| Self::Web { text })
    }

    /// The field that names the coding of compressed messages.
    #[must_use]
    pub fn encoding(self) -> HeaderName {
        match self {
            Self::Grpc | Self::Web { .. } => ENCODING,
            Self::Connect => CONNECT_ENCODING,
        }
    }

    /// The field that lists what is taken.
    #[must_use]
    pub fn accept_encoding(self) -> HeaderName {
        match self {
            Self::Grpc | Self::Web { .. } => ACCEPT_ENCODING,
            Self::Connect => CONNECT_ACCEPT_ENCODING,
        }
    }
}

impl Codings {
    /// Of all lines of a field; what is not known here does not count.
    #[must_use]
    pub fn of(headers: &HeaderMap, field: HeaderName) -> Self {
        let named = list::tokens(headers, field).filter_map(known);
        Self(named.fold(0, |set, coding| set | bit(coding)))
    }

    /// Whether it is in.
    #[must_use]
    pub fn has(self, coding: Coding) -> bool {
        self.0 & bit(coding) != 0
    }
}

impl Announced {
    /// Of a head.
    #[must_use]
    pub fn of(headers: &HeaderMap, field: HeaderName) -> Self {
        let Some(value) = headers.get(field) else {
            return Self::Identity;
        };
        let name = value.as_bytes().trim_ascii();
        if name.is_empty() || name.eq_ignore_ascii_case(b"identity") {
            return Self::Identity;
        }
        known(name).map_or(Self::Unknown, Self::Known)
    }
}

fn known(name: &[u8]) -> Option<Coding> {
    let coding = Coding::from_token(std::str::from_utf8(name).ok()?)?;
    (coding != Coding::Brotli).then_some(coding)
}

const fn bit(coding: Coding) -> u8 {
    1 << coding as u8
}

/// `grpc-timeout`: digits and a unit. The protocol allows eight digits, servers take more, and so
/// does this; what it cannot read is the app's to judge.
#[must_use]
pub fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(TIMEOUT)?.to_str().ok()?;
    let (digits, unit) = value.split_at_checked(value.len().checked_sub(1)?)?;
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let count = digits.parse::<u64>().ok()?;
    let seconds = |each| Some(Duration::from_secs(count.checked_mul(each)?));
    match unit {
        "H" => seconds(3600),
        "M" => seconds(60),
        "S" => seconds(1),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

/// What is not itself in `grpc-message`: all but printable ASCII without the percent sign.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

impl Status {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Cancelled => 1,
            Self::DeadlineExceeded => 4,
            Self::PermissionDenied => 7,
            Self::ResourceExhausted => 8,
            Self::Unimplemented => 12,
            Self::Internal => 13,
            Self::Unavailable => 14,
            Self::Unauthenticated => 16,
        }
    }

    /// Writes it, and a sentence, into a head or trailers.
    pub fn write(self, sentence: &str, fields: &mut HeaderMap) {
        fields.insert(STATUS, HeaderValue::from(u16::from(self.code())));
        let sentence = percent_encode(sentence.as_bytes(), ENCODED).to_string();
        if let Ok(value) = HeaderValue::try_from(sentence) {
            fields.insert(MESSAGE, value);
        }
    }
}

#[cfg(test)]
mod tests;
