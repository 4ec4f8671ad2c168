//! The brown-out ladder: what is still worth its wait when the pool is busy.

use std::time::Duration;

use crate::codec::Recipe;

/// Waits beyond this many times `pool.max_wait` are not worth any coding.
const FAR: u32 = 4;

/// The recipe that goes ahead where new work would wait this long: as planned up to `max_wait`, a
/// cheaper one above, none (plain, [`super::Reason::Pressure`]) where there is none cheaper or the
/// wait is more than four times too long.
///
/// Decided before the head is sent; a stream keeps what it began with.
#[must_use]
pub fn under(recipe: Recipe, expected_wait: Duration, max_wait: Duration) -> Option<Recipe> {
    if expected_wait <= max_wait {
        Some(recipe)
    } else if expected_wait <= max_wait.saturating_mul(FAR) {
        recipe.cheaper()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Coding;

    #[test]
    fn a_longer_wait_gets_less_for_its_time() {
        let max = Duration::from_millis(20);
        let planned = Recipe::new(Coding::Gzip, 6);
        let just_over = max + Duration::from_nanos(1);
        for (wait, expected) in [
            (Duration::ZERO, Some(planned)),
            (max, Some(planned)),
            (just_over, planned.cheaper()),
            (max * 4, planned.cheaper()),
            (max * 4 + Duration::from_nanos(1), None),
            (Duration::MAX, None),
        ] {
            assert_eq!(under(planned, wait, max), expected, "{wait:?}");
        }
        assert!(planned.cheaper().is_some_and(|cheaper| cheaper != planned));
    }

    #[test]
    fn what_is_cheapest_already_becomes_plain() {
        let max = Duration::from_millis(20);
        let mut recipe = Recipe::new(Coding::Gzip, 6);
        while let Some(cheaper) = recipe.cheaper() {
            recipe = cheaper;
        }
        assert_eq!(under(recipe, max, max), Some(recipe));
        assert_eq!(under(recipe, max * 2, max), None);
    }

    #[test]
    fn without_patience_only_an_idle_pool_compresses() {
        let recipe = Recipe::new(Coding::Zstd, 3);
        assert_eq!(under(recipe, Duration::ZERO, Duration::ZERO), Some(recipe));
        assert_eq!(under(recipe, Duration::from_nanos(1), Duration::ZERO), None);
    }
}
