//! Squeezes: bytes in, bytes out.
//!
//! Pure: no I/O, no clock, no log. What runs where, and for how long, is decided by [`crate::work`].
//! What one call may cost is said by [`cost`]; what one call may bring forth is bounded by its caller
//! (encoders by their input, [`Decoder`] by a limit and a room).

pub mod cost;
pub mod message;
pub mod sample;

mod brotli;
mod decoder;
mod deflate;
mod encoder;
mod output;
mod recipe;
mod shelf;
mod whole;
mod zstd;

pub use decoder::{DecodeError, Decoder, Progress};
pub use encoder::{Encoder, Step};
pub use recipe::Recipe;
pub use whole::whole;

/// A content coding (RFC 9110 section 8.4.1, RFC 7932, RFC 8878).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Coding {
    /// RFC 1952.
    Gzip,
    /// The zlib format, RFC 1950. Only gRPC messages and request bodies use it.
    Deflate,
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
}

impl Coding {
    /// The registered content-coding name.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Brotli => "br",
            Self::Zstd => "zstd",
        }
    }

    /// The coding of this name, in any letter case; `x-gzip` is gzip (RFC 9110 section 8.4.1.3).
    #[must_use]
    pub fn from_token(token: &str) -> Option<Self> {
        if token.eq_ignore_ascii_case("x-gzip") {
            return Some(Self::Gzip);
        }
        [Self::Gzip, Self::Deflate, Self::Brotli, Self::Zstd]
            .into_iter()
            .find(|coding| token.eq_ignore_ascii_case(coding.token()))
    }
}

impl std::fmt::Display for Coding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.token())
    }
}

/// Why an encoder did not encode. None of it is the input's fault: any bytes can be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The engine could not be made or set up; memory, as a rule.
    #[error("no {0} encoder could be set up")]
    Setup(Coding),
    /// The engine refused to go on.
    #[error("the {0} encoder failed")]
    Engine(Coding),
    /// [`Step::Finish`] was asked for before.
    #[error("the {0} encoder has finished already")]
    Finished(Coding),
}

#[cfg(test)]
mod tests {
    use super::Coding;

    #[test]
    fn a_coding_is_known_by_its_registered_names_in_any_case() {
        for coding in [Coding::Gzip, Coding::Deflate, Coding::Brotli, Coding::Zstd] {
            assert_eq!(Coding::from_token(coding.token()), Some(coding));
            assert_eq!(
                Coding::from_token(&coding.token().to_uppercase()),
                Some(coding)
            );
        }
        assert_eq!(Coding::from_token("X-GZip"), Some(Coding::Gzip));
        assert_eq!(Coding::from_token("compress"), None);
        assert_eq!(Coding::from_token("gzip "), None);
        assert_eq!(Coding::from_token(""), None);
    }
}
