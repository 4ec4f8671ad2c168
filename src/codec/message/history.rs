//! The last bytes of what went by.

/// Histories up to here are kept to the byte: moving so little costs less than a tenth of a
/// microsecond.
const SMALL: usize = 4 << 10;

/// Bytes that a window of 2^`bits` reaches back.
pub(super) const fn window(bits: u8) -> usize {
    1 << bits
}

/// At most so many bytes, in one piece; no memory before the first.
#[derive(Debug, Default)]
pub(super) struct History {
    bytes: Vec<u8>,
    limit: usize,
}

impl History {
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
        }
    }

    /// Oldest first.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[self.bytes.len().saturating_sub(self.limit)..]
    }

    /// These bytes went by.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(self.limit)..];
        let together = self.bytes.len() + bytes.len();
        if together > self.most() {
            let gone = together - self.limit;
            self.bytes.drain(..gone.min(self.bytes.len()));
        }
        let needed = self.bytes.len() + bytes.len();
        if needed > self.bytes.capacity() {
            let capacity = needed.next_power_of_two().min(self.most());
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Forgets all, and gives the memory back.
    pub(super) fn forget(&mut self) {
        self.bytes = Vec::new();
    }

    /// Bytes of memory.
    pub(super) fn held(&self) -> usize {
        self.bytes.capacity()
    }

    /// A large one gets slack, so that it is not moved for every byte that goes by.
    const fn most(&self) -> usize {
        let slack = if self.limit > SMALL {
            self.limit / 4
        } else {
            0
        };
        self.limit + slack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_the_last_bytes_whatever_the_pieces() {
        let all: Vec<u8> = (0..60_000_u32).map(|at| ((at * at) >> 7) as u8).collect();
        for limit in [256, 2 << 10, 4 << 10, 32 << 10] {
            for piece in [1, 7, 255, 256, 4_096, 59_999] {
                let mut history = History::new(limit);
                let mut gone = 0;
                for bytes in all.chunks(piece) {
                    history.push(bytes);
                    gone += bytes.len();
                    if gone % 11 == 0 || gone == all.len() {
                        let expected = &all[gone.saturating_sub(limit)..gone];
                        assert_eq!(history.bytes(), expected, "{limit} by {piece}");
                    }
                    assert!(history.held() <= limit + limit / 4);
                }
            }
        }
    }

    #[test]
    fn it_has_no_memory_before_and_after() {
        let mut history = History::new(4 << 10);
        assert_eq!(history.held(), 0);
        history.push(b"tick");
        assert!((4..=16).contains(&history.held()));
        history.forget();
        assert_eq!((history.held(), history.bytes()), (0, &b""[..]));
    }
}
