//! What a peer did wrong, and the code that it is closed with.

use super::CloseCode;

/// A breach of RFC 6455 or RFC 7692, or of a limit; the connection is failed with [`Fault::code`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Fault {
    /// Section 5.1: a client masks.
    #[error("a client's frame without a mask")]
    Unmasked,
    /// Section 5.1: a server does not.
    #[error("a server's frame with a mask")]
    Masked,
    /// Section 5.2: RSV2 or RSV3, or RSV1 where no extension gives it a meaning.
    #[error("a reserved bit is set")]
    ReservedBit,
    /// RFC 7692 section 6.1: RSV1 stands on the first frame of a message only.
    #[error("a continuation marked as compressed")]
    CompressedContinuation,
    /// RFC 7692 section 6: control frames are never compressed.
    #[error("a control frame marked as compressed")]
    CompressedControl,
    /// Section 5.2: 3 to 7, 11 to 15.
    #[error("a reserved opcode")]
    Opcode,
    /// Section 5.5.
    #[error("a control frame in fragments")]
    FragmentedControl,
    /// Section 5.5: 125 bytes at most.
    #[error("a control frame of more than 125 bytes")]
    LongControl,
    /// Section 5.2: the shortest form of a length is the only one.
    #[error("a length in more bytes than it needs")]
    PaddedLength,
    /// Section 5.2: 63 bits.
    #[error("a length with its highest bit set")]
    HugeLength,
    /// Section 5.4.
    #[error("a continuation of nothing")]
    NothingToContinue,
    /// Section 5.4.
    #[error("a message inside another")]
    InsideMessage,
    /// Section 5.5.1: none or two bytes of code.
    #[error("a close frame of one byte")]
    HalfCloseCode,
    /// Section 7.4: reserved, or never to be sent.
    #[error("a close code that must not be sent")]
    CloseCode,
    /// Section 5.5.1.
    #[error("a close reason that is not UTF-8")]
    CloseReason,
    /// Section 8.1.
    #[error("a text message that is not UTF-8")]
    NotText,
    /// RFC 7692 section 7.2.2: it does not inflate.
    #[error("a compressed message that does not inflate")]
    NotDeflate,
    /// Longer than it may be, on the wire or inflated.
    #[error("a message longer than it may be")]
    TooLong,
}

impl Fault {
    /// Section 7.4.1: 1002, 1007 where the payload is at fault, 1009 for its size.
    #[must_use]
    pub const fn code(self) -> CloseCode {
        match self {
            Self::CloseReason | Self::NotText | Self::NotDeflate => CloseCode::INVALID_PAYLOAD,
            Self::TooLong => CloseCode::TOO_BIG,
            _ => CloseCode::PROTOCOL_ERROR,
        }
    }
}
