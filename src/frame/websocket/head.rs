//! The head of a frame (RFC 6455 section 5.2).

use bytes::{BufMut as _, BytesMut};

use super::{Fault, Kind, Mask};

/// Bytes that a head has at most.
pub const MOST_HEAD: usize = 14;

/// Bytes of payload that a control frame has at most.
pub const MOST_CONTROL: usize = 125;

const FIN: u8 = 0x80;
const RSV1: u8 = 0x40;
const RSV2_AND_3: u8 = 0x30;
const OPCODE: u8 = 0x0f;
const MASKED: u8 = 0x80;
const LENGTH: u8 = 0x7f;

/// In place of a length: it follows in two bytes, or in eight.
const IN_TWO: u8 = 126;
const IN_EIGHT: u8 = 127;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opcode {
    Continuation,
    Data(Kind),
    Close,
    Ping,
    Pong,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// FIN.
    pub(super) last: bool,
    /// RSV1, where permessage-deflate is agreed.
    pub(super) deflated: bool,
    pub(super) opcode: Opcode,
    pub(super) mask: Option<Mask>,
    /// Of the payload, in bytes.
    pub(super) length: u64,
}

impl Opcode {
    const fn new(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Continuation,
            1 => Self::Data(Kind::Text),
            2 => Self::Data(Kind::Binary),
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }

    const fn number(self) -> u8 {
        match self {
            Self::Continuation => 0,
            Self::Data(Kind::Text) => 1,
            Self::Data(Kind::Binary) => 2,
            Self::Close => 8,
            Self::Ping => 9,
            Self::Pong => 10,
        }
    }

    const fn is_control(self) -> bool {
        self.number() >= 8
    }
}

impl Head {
    /// The head that stands first, and its bytes; `None`: it has not ended yet.
    ///
    /// Faults are looked for in the order of the bytes, so that none hides another by coming sooner.
    pub(super) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, Fault> {
        let Some((&[first, second], rest)) = bytes.split_first_chunk() else {
            return Ok(None);
        };
        if first & RSV2_AND_3 != 0 {
            return Err(Fault::ReservedBit);
        }
        let opcode = Opcode::new(first & OPCODE).ok_or(Fault::Opcode)?;
        let (last, deflated) = (first & FIN != 0, first & RSV1 != 0);
        if opcode.is_control() {
            check_control(last, deflated, second & LENGTH)?;
        }
        let Some((length, taken)) = length(second & LENGTH, rest)? else {
            return Ok(None);
        };
        let masked = second & MASKED != 0;
        let key = rest[taken..].first_chunk().filter(|_| masked);
        if masked && key.is_none() {
            return Ok(None);
        }
        let head = Self {
            last,
            deflated,
            opcode,
            mask: key.map(|&key| Mask::new(key)),
            length,
        };
        Ok(Some((head, 2 + taken + if masked { 4 } else { 0 })))
    }

    /// Appends the head.
    pub(super) fn write(&self, output: &mut BytesMut) {
        let bit = |flag: bool, bit: u8| if flag { bit } else { 0 };
        output.put_u8(bit(self.last, FIN) | bit(self.deflated, RSV1) | self.opcode.number());
        let masked = bit(self.mask.is_some(), MASKED);
        if let Some(short) = u8::try_from(self.length)
            .ok()
            .filter(|&short| short < IN_TWO)
        {
            output.put_u8(masked | short);
        } else if let Ok(two) = u16::try_from(self.length) {
            output.put_u8(masked | IN_TWO);
            output.put_u16(two);
        } else {
            output.put_u8(masked | IN_EIGHT);
            output.put_u64(self.length);
        }
        if let Some(mask) = self.mask {
            output.put_slice(&mask.key());
        }
    }
}

/// Section 5.5, and RFC 7692 section 6.
fn check_control(last: bool, deflated: bool, length: u8) -> Result<(), Fault> {
    if deflated {
        Err(Fault::CompressedControl)
    } else if !last {
        Err(Fault::FragmentedControl)
    } else if length >= IN_TWO {
        Err(Fault::LongControl)
    } else {
        Ok(())
    }
}

/// The length that `short` and the bytes behind it give, and how many of those it took.
fn length(short: u8, rest: &[u8]) -> Result<Option<(u64, usize)>, Fault> {
    let (length, taken, least) = match short {
        IN_TWO => match rest.first_chunk() {
            Some(&two) => (u64::from(u16::from_be_bytes(two)), 2, u64::from(IN_TWO)),
            None => return Ok(None),
        },
        IN_EIGHT => match rest.first_chunk() {
            Some(&eight) => (u64::from_be_bytes(eight), 8, 1 << 16),
            None => return Ok(None),
        },
        short => (u64::from(short), 0, 0),
    };
    if length > u64::MAX >> 1 {
        Err(Fault::HugeLength)
    } else if length < least {
        Err(Fault::PaddedLength)
    } else {
        Ok(Some((length, taken)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(length: u64, mask: Option<Mask>) -> Head {
        Head {
            last: true,
            deflated: false,
            opcode: Opcode::Data(Kind::Binary),
            mask,
            length,
        }
    }

    #[test]
    fn a_head_is_read_as_it_was_written_and_not_before_its_last_byte() {
        for length in [0, 1, 125, 126, 127, 65_535, 65_536, u64::MAX >> 1] {
            for mask in [None, Some(Mask::new([1, 2, 3, 4]))] {
                let mut bytes = BytesMut::new();
                head(length, mask).write(&mut bytes);
                assert!(bytes.len() <= MOST_HEAD);
                for cut in 0..bytes.len() {
                    assert_eq!(
                        Head::parse(&bytes[..cut]),
                        Ok(None),
                        "{length} cut at {cut}"
                    );
                }
                let parsed = Some((head(length, mask), bytes.len()));
                assert_eq!(Head::parse(&bytes), Ok(parsed));
            }
        }
    }

    #[test]
    fn a_length_has_one_form_and_63_bits() {
        let parse = |second: u8, rest: &[u8]| Head::parse(&[&[0x82, second], rest].concat());
        assert_eq!(parse(126, &[0, 125]), Err(Fault::PaddedLength));
        assert!(parse(126, &[0, 126]).is_ok());
        let eight = |length: u64| parse(127, &length.to_be_bytes());
        assert_eq!(eight(65_535), Err(Fault::PaddedLength));
        assert!(eight(65_536).is_ok());
        assert_eq!(eight(1 << 63), Err(Fault::HugeLength));
    }
}
