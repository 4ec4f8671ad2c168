//! Why a message is refused: a status, a word for metrics, a sentence for people.

use std::error::Error;

use http::StatusCode;

/// Why a message is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// A line of the head, or of the chunk framing, ends without CR.
    #[error("a line ends in a bare LF")]
    BareLf,
    /// A CR that no LF follows.
    #[error("a bare CR in a line")]
    BareCr,
    /// NUL or another control character.
    #[error("a control character in a field value")]
    ControlByte,
    /// Not three parts with single spaces between them.
    #[error("malformed request line")]
    RequestLine,
    /// Not a token.
    #[error("invalid method")]
    Method,
    /// A byte or a form that does not belong there.
    #[error("invalid request target")]
    Target,
    /// Longer than the whole head may be, or than any URI.
    #[error("request target too long")]
    TargetTooLong,
    /// Not `HTTP/` and two digits.
    #[error("malformed HTTP version")]
    Version,
    /// Neither 1.0 nor 1.1.
    #[error("HTTP version not supported")]
    UnsupportedVersion,
    /// Of an answer.
    #[error("malformed status line")]
    StatusLine,
    /// More bytes than allowed.
    #[error("head too large")]
    HeadTooLarge,
    /// More field lines than allowed.
    #[error("too many header fields")]
    TooManyFields,
    /// A line that begins with white space.
    #[error("folded header field")]
    Folded,
    /// Empty, or not a token.
    #[error("invalid field name")]
    FieldName,
    /// `Name : value`.
    #[error("white space before the colon of a field")]
    SpaceBeforeColon,
    /// Not a decimal number of a sane size.
    #[error("invalid Content-Length")]
    Length,
    /// Twice, or a list; also when all are equal.
    #[error("repeated Content-Length")]
    RepeatedLength,
    /// Both at once.
    #[error("Content-Length together with Transfer-Encoding")]
    LengthAndCoding,
    /// Anything but one final `chunked`.
    #[error("Transfer-Encoding is not one final chunked")]
    Coding,
    /// HTTP/1.0 knows none.
    #[error("Transfer-Encoding in HTTP/1.0")]
    CodingInHttp10,
    /// Well formed, but not implemented here.
    #[error("unknown transfer coding")]
    UnknownCoding,
    /// HTTP/1.1 demands one.
    #[error("no Host")]
    NoHost,
    /// Two of them, also when they are equal.
    #[error("repeated Host")]
    RepeatedHost,
    /// Empty, or with bytes that no host has.
    #[error("invalid Host")]
    Host,
    /// Not 1 to 16 hexadecimal digits.
    #[error("invalid chunk size")]
    ChunkSize,
    /// A control character in it, or too much of them in one body.
    #[error("invalid chunk extension")]
    ChunkExtension,
    /// The data of a chunk is not followed by CRLF.
    #[error("chunk longer than its size")]
    ChunkEnd,
    /// More bytes or lines than allowed.
    #[error("trailers too large")]
    Trailers,
    /// The head did not arrive in time.
    #[error("the request head took too long")]
    Late,
    /// The connection ended within a head.
    #[error("the connection ended within a head")]
    Cut,
}

impl Refusal {
    /// The status that a client is answered with.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Late => StatusCode::REQUEST_TIMEOUT,
            Self::TargetTooLong => StatusCode::URI_TOO_LONG,
            Self::HeadTooLarge | Self::TooManyFields | Self::Trailers => {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE
            }
            Self::UnknownCoding => StatusCode::NOT_IMPLEMENTED,
            Self::UnsupportedVersion => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            _ => StatusCode::BAD_REQUEST,
        }
    }

    /// A word for metrics and logs.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::BareLf => "bare_lf",
            Self::BareCr => "bare_cr",
            Self::ControlByte => "control_byte",
            Self::RequestLine => "request_line",
            Self::Method => "bad_method",
            Self::Target => "bad_target",
            Self::TargetTooLong => "target_too_long",
            Self::Version => "bad_version",
            Self::UnsupportedVersion => "unsupported_version",
            Self::StatusLine => "status_line",
            Self::HeadTooLarge => "head_too_large",
            Self::TooManyFields => "too_many_fields",
            Self::Folded => "folded_field",
            Self::FieldName => "bad_field_name",
            Self::SpaceBeforeColon => "space_before_colon",
            Self::Length => "bad_length",
            Self::RepeatedLength => "repeated_length",
            Self::LengthAndCoding => "length_and_coding",
            Self::Coding => "bad_transfer_coding",
            Self::CodingInHttp10 => "transfer_coding_in_http10",
            Self::UnknownCoding => "unknown_transfer_coding",
            Self::NoHost => "no_host",
            Self::RepeatedHost => "repeated_host",
            Self::Host => "bad_host",
            Self::ChunkSize => "bad_chunk_size",
            Self::ChunkExtension => "bad_chunk_extension",
            Self::ChunkEnd => "bad_chunk_end",
            Self::Trailers => "trailers_too_large",
            Self::Late => "head_timeout",
            Self::Cut => "cut_head",
        }
    }
}

/// Carries a typed cause through an I/O error.
///
/// An I/O error names the *source* of its payload as its own, not the payload: the cause has to
/// stand one level deeper for [`Error::source`] to reach it.
#[derive(Debug, thiserror::Error)]
#[error("broken HTTP/1 framing")]
pub struct Unreadable<E: Error + 'static>(#[source] pub E);

/// The refusal among the causes of an error: a request body that turned out malformed.
#[must_use]
pub fn refusal_in<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Refusal> {
    std::iter::successors(Some(error), |&error: &&'a (dyn Error + 'static)| {
        error.source()
    })
    .find_map(|error| error.downcast_ref())
}
