//! Squeezes: bytes in, bytes out.
//!
//! Pure: no I/O, no clock, no log. What runs where, and for how long, is decided by [`crate::work`].

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

/// A coding and how hard to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    coding: Coding,
    level: u8,
}

impl Recipe {
    /// Level in the engine's own scale.
    #[must_use]
    pub const fn new(coding: Coding, level: u8) -> Self {
        Self { coding, level }
    }

    /// What costs clearly less; `None` for the cheapest.
    #[must_use]
    pub fn cheaper(self) -> Option<Self> {
        (self.level > 1).then_some(Self { level: 1, ..self })
    }
}
