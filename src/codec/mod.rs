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
}
