//! Which variant to make denser next, while the CPUs have nothing else to do.
//!
//! The choice is pure; running it, on the bulk lane and only while threads are idle, is `protocol`'s.

use std::cmp::Reverse;
use std::sync::Arc;

use bytes::Bytes;

use super::object::ObjectId;
use crate::codec::Coding;

/// A variant that was sent again after it was made, and is not as dense as it could be.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Whose variant it is.
    pub object: ObjectId,
    /// The route that stored it: its `cache.densify` decides.
    pub route: Arc<str>,
    /// Which variant.
    pub coding: Coding,
    /// The bytes to compress.
    pub plain: Bytes,
    /// How often it was sent since it was made.
    pub uses: u32,
    /// Bytes of the variant as it is.
    pub length: usize,
}

/// The hottest first, at most so many; among equals the longer one, where more is saved.
#[must_use]
pub fn order(mut candidates: Vec<Candidate>, most: usize) -> Vec<Candidate> {
    let rank = |candidate: &Candidate| Reverse((candidate.uses, candidate.length));
    if most < candidates.len() {
        candidates.select_nth_unstable_by_key(most, rank);
        candidates.truncate(most);
    }
    candidates.sort_unstable_by_key(rank);
    candidates
}

/// The level at which a coding is densest, in its engine's scale (NUMBERS.md).
#[must_use]
pub const fn densest(coding: Coding) -> u8 {
    match coding {
        Coding::Brotli => 11,
        Coding::Gzip | Coding::Deflate => 12,
        Coding::Zstd => 19,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::freshness::Freshness;
    use crate::cache::object::Object;
    use http::{HeaderMap, StatusCode};
    use std::time::{Duration, SystemTime};

    fn candidate(uses: u32, length: usize) -> Candidate {
        let freshness = Freshness {
            born: SystemTime::UNIX_EPOCH,
            lifetime: Duration::ZERO,
            validate: false,
            strict: false,
            while_revalidate: Duration::ZERO,
            if_error: Duration::ZERO,
            authorized: false,
        };
        let object = Object::new(
            StatusCode::OK,
            &HeaderMap::new(),
            SystemTime::UNIX_EPOCH,
            &[],
            freshness,
        );
        Candidate {
            object: object.expect("an object").id(),
            route: "r".into(),
            coding: Coding::Brotli,
            plain: Bytes::new(),
            uses,
            length,
        }
    }

    #[test]
    fn the_hottest_come_first_and_of_equals_the_longer() {
        let all = vec![
            candidate(1, 900),
            candidate(7, 10),
            candidate(3, 10),
            candidate(3, 20),
            candidate(2, 500),
        ];
        let ranks = |found: Vec<Candidate>| -> Vec<_> {
            found.iter().map(|one| (one.uses, one.length)).collect()
        };
        let expected = [(7, 10), (3, 20), (3, 10), (2, 500), (1, 900)];
        assert_eq!(ranks(order(all.clone(), 10)), expected);
        assert_eq!(ranks(order(all.clone(), 3)), expected[..3]);
        assert_eq!(ranks(order(all, 0)), []);
    }
}
