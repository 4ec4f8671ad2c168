//! Masks that nobody can foresee (RFC 6455 section 10.3), drawn many at a time.

use std::cell::RefCell;

use crate::frame::websocket::Mask;

const DRAWN: usize = 256;

thread_local! {
    /// Random bytes, and how many of them were used.
    static DRAW: RefCell<([u8; DRAWN], usize)> = const { RefCell::new(([0; DRAWN], DRAWN)) };
}

/// A fresh mask.
pub(super) fn mask() -> Mask {
    DRAW.with_borrow_mut(|(bytes, used)| {
        if *used == DRAWN {
            // It fails only where the system has no randomness at all; the process did not start then.
            if aws_lc_rs::rand::fill(bytes).is_err() {
                fastrand::fill(bytes);
            }
            *used = 0;
        }
        let mut key = [0; 4];
        key.copy_from_slice(&bytes[*used..*used + 4]);
        // What was used is not kept.
        bytes[*used..*used + 4].fill(0);
        *used += 4;
        Mask::new(key)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    #[test]
    fn no_mask_is_drawn_twice() {
        let drawn: HashSet<[u8; 4]> = (0..1_000).map(|_| super::mask().key()).collect();
        // Four billion there are: two alike among a thousand once in 8,000 runs, three never.
        assert!(drawn.len() >= 998);
    }
}
