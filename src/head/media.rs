//! Media types and the patterns that match them (RFC 9110 section 8.3.1).

/// A pattern of `compress.types`: `type/subtype` with `*` as a wildcard anywhere, lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaPattern(String);
