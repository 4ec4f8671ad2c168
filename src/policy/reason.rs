//! Why an answer went out as it did: a metric label and a log field.

/// One word for each cause; the words are INTERFACES.md's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// It was compressed here.
    Compressed,
    /// Smaller than `compress.min_size`.
    MinSize,
    /// Its media type is not one of `compress.types`.
    Type,
    /// Its bytes look random, or coding them did not shrink them.
    Incompressible,
    /// no-transform, in the answer or the request.
    NoTransform,
    /// It came with a Content-Encoding.
    AlreadyCoded,
    /// The client takes none of the policy's codings, or likes plain better.
    NotAccepted,
    /// The route is off, or the app said so.
    Disabled,
    /// The pool is too busy.
    Pressure,
    /// A status without a body, or one that is never coded.
    Status,
    /// A range of something.
    Range,
    /// HEAD with nothing to code, or CONNECT.
    Method,
    /// The connection changed its protocol.
    Upgrade,
    /// `breach.cross_site: plain`.
    CrossSite,
    /// HTTP/1.0, where only a body that is complete can be coded.
    Version,
    /// A message larger than `grpc.max_message`, which is not held.
    MaxMessage,
}

impl Reason {
    /// The word in logs and metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Compressed => "compressed",
            Self::MinSize => "min_size",
            Self::Type => "type",
            Self::Incompressible => "incompressible",
            Self::NoTransform => "no_transform",
            Self::AlreadyCoded => "already_coded",
            Self::NotAccepted => "not_accepted",
            Self::Disabled => "disabled",
            Self::Pressure => "pressure",
            Self::Status => "status",
            Self::Range => "range",
            Self::Method => "method",
            Self::Upgrade => "upgrade",
            Self::CrossSite => "cross_site",
            Self::Version => "version",
            Self::MaxMessage => "max_message",
        }
    }
}
