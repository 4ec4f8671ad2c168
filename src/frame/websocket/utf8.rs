//! UTF-8 in pieces (RFC 6455 section 8.1): a character may lie across any border.

use super::Fault;

/// The text of one message, checked as it comes; what is wrong is known at its first wrong byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Utf8 {
    /// A character that has begun.
    begun: [u8; 4],
    length: u8,
}

impl Utf8 {
    /// The next piece.
    ///
    /// # Errors
    /// [`Fault::NotText`]: no text begins like this.
    pub fn piece(&mut self, mut piece: &[u8]) -> Result<(), Fault> {
        while self.length > 0 {
            let Some((&byte, rest)) = piece.split_first() else {
                return Ok(());
            };
            piece = rest;
            self.begun[usize::from(self.length)] = byte;
            self.length += 1;
            match std::str::from_utf8(&self.begun[..usize::from(self.length)]) {
                Ok(_) => self.length = 0,
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(Fault::NotText),
            }
        }
        let Err(error) = std::str::from_utf8(piece) else {
            return Ok(());
        };
        if error.error_len().is_some() {
            return Err(Fault::NotText);
        }
        // At most three bytes: four are a character, or none.
        for &byte in &piece[error.valid_up_to()..] {
            self.begun[usize::from(self.length)] = byte;
            self.length += 1;
        }
        Ok(())
    }

    /// The message has ended; the next one may begin.
    ///
    /// # Errors
    /// [`Fault::NotText`]: within a character.
    pub fn end(&mut self) -> Result<(), Fault> {
        if self.length > 0 {
            return Err(Fault::NotText);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(pieces: &[&[u8]]) -> Result<(), Fault> {
        let mut text = Utf8::default();
        for piece in pieces {
            text.piece(piece)?;
        }
        text.end()
    }

    #[test]
    fn characters_may_lie_across_borders() {
        let text = "aé€𝄞\u{10ffff}z".as_bytes();
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(judged(&pieces), Ok(()));
            }
        }
    }

    #[test]
    fn what_cannot_become_text_is_known_before_the_next_byte() {
        // A surrogate, an overlong form, beyond the last plane.
        for bytes in [
            &b"\xed\xa0"[..],
            b"\xe0\x80",
            b"\xf0\x80",
            b"\xf4\x90",
            b"\xc0",
        ] {
            let mut text = Utf8::default();
            let fault = bytes.iter().find_map(|byte| text.piece(&[*byte]).err());
            assert_eq!(fault, Some(Fault::NotText), "{bytes:x?}");
        }
        assert_eq!(judged(&[b"caf\xc3"]), Err(Fault::NotText));
    }
}
