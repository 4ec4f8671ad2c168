//! At most so many repetitions: a failing upstream must not get twice the requests.
//!
//! As in Finagle and linkerd, each request earns a fraction of a repetition, up to a bound; a few
//! are there from the start, so that an upstream with little traffic can repeat at all.

use std::sync::atomic::{AtomicU32, Ordering};

/// A repetition costs five requests' earnings: 20 %.
const PRICE: u32 = 5;

/// Repetitions there are at first.
const FIRST: u32 = 10;

/// What a long calm can save up.
const MOST: u32 = 100 * PRICE;

/// What an upstream may spend.
#[derive(Debug)]
pub(super) struct Thrift(AtomicU32);

impl Thrift {
    pub(super) fn new() -> Self {
        Self(AtomicU32::new(FIRST * PRICE))
    }

    /// A request came.
    pub(super) fn earn(&self) {
        // A race loses a fifth of a repetition.
        let saved = self.0.load(Ordering::Relaxed);
        if saved < MOST {
            self.0.store(saved + 1, Ordering::Relaxed);
        }
    }

    /// Pays for one repetition; false: there is not enough.
    pub(super) fn spend(&self) -> bool {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |saved| {
                saved.checked_sub(PRICE)
            })
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fifth_request_may_be_repeated_beyond_the_first_ten() {
        let thrift = Thrift::new();
        let repeated = (0..1_000)
            .filter(|_| {
                thrift.earn();
                thrift.spend()
            })
            .count();
        assert_eq!(repeated, 10 + 200);
    }

    #[test]
    fn a_calm_saves_up_a_bounded_number() {
        let thrift = Thrift::new();
        (0..100_000).for_each(|_| thrift.earn());
        assert_eq!((0..1_000).filter(|_| thrift.spend()).count(), 100);
    }
}
