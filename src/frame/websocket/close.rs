//! The payload of a close frame (RFC 6455 sections 5.5.1 and 7.4).

use bytes::{BufMut as _, BytesMut};

use super::{Fault, MOST_CONTROL};

/// Bytes of the code.
const CODE: usize = 2;

/// A code that may stand in a close frame. 1004, 1005, 1006 and 1015 cannot be made, nor what no
/// registry gives out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CloseCode(u16);

impl CloseCode {
    /// All was said.
    pub const NORMAL: Self = Self(1000);
    /// The process goes, or the page was left.
    pub const GOING_AWAY: Self = Self(1001);
    /// A rule was broken.
    pub const PROTOCOL_ERROR: Self = Self(1002);
    /// Text that is none, deflate that is none.
    pub const INVALID_PAYLOAD: Self = Self(1007);
    /// A rule of the house was broken.
    pub const POLICY: Self = Self(1008);
    /// A message longer than it may be.
    pub const TOO_BIG: Self = Self(1009);
    /// The server cannot go on.
    pub const INTERNAL: Self = Self(1011);
    /// The server starts anew.
    pub const RESTART: Self = Self(1012);
    /// The server is overloaded.
    pub const TRY_AGAIN: Self = Self(1013);

    /// The code of this number, if it may be sent: registered ones, 3000 to 4999.
    #[must_use]
    pub const fn new(number: u16) -> Option<Self> {
        match number {
            1000..=1003 | 1007..=1014 | 3000..=4999 => Some(Self(number)),
            _ => None,
        }
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }
}

impl std::fmt::Display for CloseCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A code and its reason; a close frame may also have neither.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Close {
    code: CloseCode,
    reason: Box<str>,
}

impl Close {
    /// Cuts the reason to the 123 bytes that a frame has room for, between two characters.
    #[must_use]
    pub fn new(code: CloseCode, reason: &str) -> Self {
        let mut end = reason.len().min(MOST_CONTROL - CODE);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        Self {
            code,
            reason: reason[..end].into(),
        }
    }

    /// Reads the payload of a close frame; `None`: an empty one.
    ///
    /// # Errors
    /// [`Fault::HalfCloseCode`], [`Fault::CloseCode`], [`Fault::CloseReason`].
    pub fn parse(payload: &[u8]) -> Result<Option<Self>, Fault> {
        let Some((code, reason)) = payload.split_first_chunk() else {
            let empty = payload.is_empty();
            return if empty {
                Ok(None)
            } else {
                Err(Fault::HalfCloseCode)
            };
        };
        let code = CloseCode::new(u16::from_be_bytes(*code)).ok_or(Fault::CloseCode)?;
        let reason = std::str::from_utf8(reason).map_err(|_| Fault::CloseReason)?;
        Ok(Some(Self {
            code,
            reason: reason.into(),
        }))
    }

    /// Why, by number.
    #[must_use]
    pub const fn code(&self) -> CloseCode {
        self.code
    }

    /// Why, in words.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Appends the payload.
    pub(super) fn write(&self, output: &mut BytesMut) {
        output.put_u16(self.code.number());
        output.put_slice(self.reason.as_bytes());
    }

    /// Bytes of the payload.
    pub(super) fn len(&self) -> usize {
        CODE + self.reason.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_may_be_sent_and_no_others() {
        let sent: Vec<u16> = (0..=u16::MAX)
            .filter(|&number| CloseCode::new(number).is_some())
            .collect();
        let expected: Vec<u16> = (1000..=1003)
            .chain(1007..=1014)
            .chain(3000..=4999)
            .collect();
        assert_eq!(sent, expected);
    }

    #[test]
    fn a_payload_is_read_as_it_was_written() {
        let close = Close::new(CloseCode::GOING_AWAY, "bis später");
        let mut payload = BytesMut::new();
        close.write(&mut payload);
        assert_eq!(payload.len(), close.len());
        assert_eq!(Close::parse(&payload), Ok(Some(close)));
        assert_eq!(Close::parse(b""), Ok(None));
    }

    #[test]
    fn half_a_code_a_reserved_code_and_a_reason_that_is_no_text_are_refused() {
        assert_eq!(Close::parse(&[3]), Err(Fault::HalfCloseCode));
        for number in [0, 999, 1004, 1005, 1006, 1015, 2999, 5000, 65535_u16] {
            assert_eq!(Close::parse(&number.to_be_bytes()), Err(Fault::CloseCode));
        }
        assert_eq!(Close::parse(b"\x03\xe8\xc3"), Err(Fault::CloseReason));
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let close = Close::new(CloseCode::NORMAL, &"ä".repeat(100));
        assert_eq!(close.reason(), "ä".repeat(61));
        assert!(close.len() <= MOST_CONTROL);
    }
}
