//! Engines between two bodies: a reset costs a third to a fifth of a new one (NUMBERS.md).
//!
//! Shared by all threads, since encoders are made on one and dropped on another; bounded in count
//! and in bytes. The lock is held to move a value, never to compute.

use parking_lot::Mutex;

use super::encoder::Engine;
use super::{Coding, Recipe};

/// Engines kept at most.
const MOST: usize = 32;

/// Bytes that they hold together, at most.
const MOST_BYTES: usize = 8 << 20;

/// What makes two engines interchangeable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    coding: Coding,
    effort: u8,
    window: u8,
}

impl Key {
    pub(super) fn of(recipe: Recipe) -> Self {
        Self {
            coding: recipe.coding,
            effort: recipe.effort,
            window: recipe.window,
        }
    }
}

struct Shelf {
    /// The last one put is the warmest.
    engines: Vec<(Key, usize, Engine)>,
    bytes: usize,
}

static SHELF: Mutex<Shelf> = Mutex::new(Shelf {
    engines: Vec::new(),
    bytes: 0,
});

/// A used engine, as good as new.
pub(super) fn take(key: Key) -> Option<Engine> {
    let (_, _, mut engine) = {
        let mut shelf = SHELF.lock();
        let at = shelf.engines.iter().rposition(|(kept, ..)| *kept == key)?;
        let taken = shelf.engines.remove(at);
        shelf.bytes -= taken.1;
        taken
    };
    engine.reset().then_some(engine)
}

/// Keeps an engine for later, or drops it where there is no room.
pub(super) fn put(key: Key, engine: Engine) {
    let weight = engine.weight();
    if weight > MOST_BYTES {
        return;
    }
    let mut dropped = Vec::new();
    let mut shelf = SHELF.lock();
    while shelf.engines.len() >= MOST || shelf.bytes + weight > MOST_BYTES {
        // The oldest goes: levels that nobody uses any more leave by themselves.
        let oldest = shelf.engines.remove(0);
        shelf.bytes -= oldest.1;
        dropped.push(oldest);
    }
    shelf.bytes += weight;
    shelf.engines.push((key, weight, engine));
    drop(shelf);
    drop(dropped);
}

#[cfg(test)]
mod tests {
    use super::super::{Encoder, Step};
    use super::*;

    #[test]
    fn what_is_kept_is_bounded() -> Result<(), super::super::CodecError> {
        let recipe = Recipe::new(Coding::Zstd, 3);
        let mut encoders = (0..3 * MOST)
            .map(|_| Encoder::new(recipe))
            .collect::<Result<Vec<_>, _>>()?;
        for encoder in &mut encoders {
            encoder.encode(&[7; 100_000], Step::Flush, &mut bytes::BytesMut::new())?;
        }
        drop(encoders);
        let shelf = SHELF.lock();
        assert!(shelf.engines.len() <= MOST);
        assert!(shelf.bytes <= MOST_BYTES);
        assert_eq!(
            shelf.bytes,
            shelf
                .engines
                .iter()
                .map(|(_, weight, _)| weight)
                .sum::<usize>()
        );
        Ok(())
    }
}
