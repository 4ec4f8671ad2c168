//! The chunked coding and its trailers (RFC 9112 section 7.1), byte by byte; data is skipped.

use super::chars::{is_control, is_token};
use super::refusal::Refusal;

/// Bytes of chunk extensions in one body. hyper's own bound, so that the refusal is ours.
const MOST_EXTENSION: u32 = 16 * 1024;
/// Bytes of trailers, their line ends included. hyper's own bound too.
const MOST_TRAILERS: u32 = 16 * 1024;
/// Hexadecimal digits of a size: 64 bits.
const MOST_DIGITS: u8 = 16;

/// Where a chunked body stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunks {
    at: At,
    /// Size of the chunk while its line is read, then what is missing of its data.
    left: u64,
    digits: u8,
    extension: u32,
    trailers: u32,
    fields: usize,
    most_fields: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Size,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// The first byte of a trailer line, or of the end.
    Line,
    Name,
    Value,
    ValueLf,
    EndLf,
    Done,
}

impl Chunks {
    pub(super) const fn new(most_fields: usize) -> Self {
        Self {
            at: At::Size,
            left: 0,
            digits: 0,
            extension: 0,
            trailers: 0,
            fields: 0,
            most_fields,
        }
    }

    /// The last byte was seen.
    pub(super) fn is_done(&self) -> bool {
        self.at == At::Done
    }

    /// How many bytes, at least one, belong to the body; a refusal is of the very first byte.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        let mut taken = 0;
        while taken < bytes.len() && !self.is_done() {
            if self.at == At::Data {
                taken += self.skip(bytes.len() - taken);
            } else {
                match self.byte(bytes[taken]) {
                    Ok(()) => taken += 1,
                    // What came before it is good; the next look begins with the bad byte.
                    Err(_) if taken > 0 => break,
                    Err(refusal) => return Err(refusal),
                }
            }
        }
        Ok(taken)
    }

    fn skip(&mut self, available: usize) -> usize {
        let taken = self.left.min(available as u64);
        self.left -= taken;
        if self.left == 0 {
            self.at = At::DataCr;
        }
        usize::try_from(taken).unwrap_or(available)
    }

    /// One byte of framing. An error changes nothing.
    fn byte(&mut self, byte: u8) -> Result<(), Refusal> {
        self.at = match self.at {
            At::Size => self.size(byte)?,
            At::Extension => self.extension(byte)?,
            At::SizeLf => match byte {
                b'\n' if self.left == 0 => At::Line,
                b'\n' => At::Data,
                _ => return Err(Refusal::BareCr),
            },
            At::DataCr if byte == b'\r' => At::DataLf,
            At::DataLf if byte == b'\n' => {
                self.digits = 0;
                At::Size
            }
            At::DataCr | At::DataLf => return Err(Refusal::ChunkEnd),
            At::Line | At::Name | At::Value | At::ValueLf | At::EndLf => self.trailer(byte)?,
            At::Data | At::Done => self.at,
        };
        Ok(())
    }

    fn size(&mut self, byte: u8) -> Result<At, Refusal> {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            b';' if self.digits > 0 => return Ok(At::Extension),
            b'\r' if self.digits > 0 => return Ok(At::SizeLf),
            b'\n' => return Err(Refusal::BareLf),
            _ => return Err(Refusal::ChunkSize),
        };
        if self.digits == MOST_DIGITS {
            return Err(Refusal::ChunkSize);
        }
        self.left = if self.digits == 0 { 0 } else { self.left << 4 } | u64::from(digit);
        self.digits += 1;
        Ok(At::Size)
    }

    fn extension(&mut self, byte: u8) -> Result<At, Refusal> {
        match byte {
            b'\r' => Ok(At::SizeLf),
            b'\n' => Err(Refusal::BareLf),
            _ if is_control(byte) || self.extension + 1 >= MOST_EXTENSION => {
                Err(Refusal::ChunkExtension)
            }
            _ => {
                self.extension += 1;
                Ok(At::Extension)
            }
        }
    }

    /// The same rules as for the fields of a head; nothing is kept of them.
    fn trailer(&mut self, byte: u8) -> Result<At, Refusal> {
        if self.trailers + 1 >= MOST_TRAILERS {
            return Err(Refusal::Trailers);
        }
        let next = match (self.at, byte) {
            (At::Line, b'\r') => At::EndLf,
            (At::EndLf, b'\n') => At::Done,
            (At::Line, b' ' | b'\t') => return Err(Refusal::Folded),
            (At::ValueLf, b'\n') => {
                if self.fields == self.most_fields {
                    return Err(Refusal::Trailers);
                }
                self.fields += 1;
                At::Line
            }
            (At::EndLf | At::ValueLf, _) => return Err(Refusal::BareCr),
            (_, b'\n') => return Err(Refusal::BareLf),
            (At::Line | At::Name, _) if is_token(byte) => At::Name,
            (At::Name, b':') => At::Value,
            (At::Name, b' ' | b'\t') => return Err(Refusal::SpaceBeforeColon),
            (At::Value, b'\r') => At::ValueLf,
            (At::Value, _) if !is_control(byte) => At::Value,
            (At::Value, _) => return Err(Refusal::ControlByte),
            _ => return Err(Refusal::FieldName),
        };
        self.trailers += 1;
        Ok(next)
    }
}
