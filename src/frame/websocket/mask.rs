//! Masking (RFC 6455 section 5.3): exclusive or with four bytes, over and over.

/// A masking key, turned to where the payload has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mask(u32);

impl Mask {
    /// The key as it stands on the wire. One for each frame, and not to be foreseen (section 10.3).
    #[must_use]
    pub const fn new(key: [u8; 4]) -> Self {
        Self(u32::from_ne_bytes(key))
    }

    /// The key's bytes, the one for the next byte of the payload first.
    #[must_use]
    pub const fn key(self) -> [u8; 4] {
        self.0.to_ne_bytes()
    }

    /// Masks, or unmasks, the next bytes of the payload in place, and turns to the ones after them.
    pub fn apply(&mut self, payload: &mut [u8]) {
        let wide = u64::from(self.0) << 32 | u64::from(self.0);
        let mut words = payload.chunks_exact_mut(8);
        for word in &mut words {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(word);
            word.copy_from_slice(&(u64::from_ne_bytes(bytes) ^ wide).to_ne_bytes());
        }
        let rest = words.into_remainder();
        let key = self.key();
        for (at, byte) in rest.iter_mut().enumerate() {
            *byte ^= key[at % 4];
        }
        let mut turned = key;
        turned.rotate_left(rest.len() % 4);
        self.0 = u32::from_ne_bytes(turned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_split_of_a_payload_masks_alike() {
        let key = [0x37, 0xfa, 0x21, 0x3d];
        for length in 0..40_usize {
            let plain: Vec<u8> = (0..length as u8).collect();
            let expected: Vec<u8> = plain
                .iter()
                .zip(key.iter().cycle())
                .map(|(a, b)| a ^ b)
                .collect();
            for cut in 0..=length {
                let (mut masked, mut mask) = (plain.clone(), Mask::new(key));
                let (before, after) = masked.split_at_mut(cut);
                mask.apply(before);
                mask.apply(after);
                assert_eq!(masked, expected, "{length} bytes cut at {cut}");
            }
        }
    }

    #[test]
    fn the_example_of_the_rfc_is_unmasked() {
        // Section 5.7: a single-frame masked text message, "Hello".
        let mut payload = [0x7f, 0x9f, 0x4d, 0x51, 0x58];
        Mask::new([0x37, 0xfa, 0x21, 0x3d]).apply(&mut payload);
        assert_eq!(&payload, b"Hello");
    }
}
