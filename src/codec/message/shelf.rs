//! Engines between two messages, shared by all threads.
//!
//! The lock is held to move a value, never to compute. An engine comes back only after it did its
//! work without a fault.

use flate2::{Compress, Compression, Decompress};
use parking_lot::Mutex;

/// Deflaters kept: each is away for one call only, so that more are of no use than there are threads,
/// for each window and level in use. 160 to 373 KiB each (NUMBERS.md).
const DEFLATERS: usize = 16;

/// Inflaters kept. Half-received messages have one each, and they come back in bursts.
const INFLATERS: usize = 32;

/// zlib refuses a window of 2^8, and never reaches back further than its window less 262 bytes: one
/// of 2^9 keeps the promise of 2^8.
const LEAST_BITS: u8 = 9;

static IDLE_DEFLATERS: Mutex<Vec<(u8, u8, Compress)>> = Mutex::new(Vec::new());
static IDLE_INFLATERS: Mutex<Vec<Decompress>> = Mutex::new(Vec::new());

/// A deflater without a history.
pub(super) fn deflater(level: u8, bits: u8) -> Compress {
    let bits = bits.clamp(LEAST_BITS, 15);
    let idle = {
        let mut idle = IDLE_DEFLATERS.lock();
        let fits = |kept: &(u8, u8, Compress)| (kept.0, kept.1) == (level, bits);
        // The last one put is the warmest.
        idle.iter().rposition(fits).map(|at| idle.remove(at).2)
    };
    match idle {
        Some(mut engine) => {
            engine.reset();
            engine
        }
        None => Compress::new_with_window_bits(Compression::new(u32::from(level)), false, bits),
    }
}

/// Keeps a deflater that was taken by the same level and window.
pub(super) fn keep_deflater(level: u8, bits: u8, engine: Compress) {
    let mut idle = IDLE_DEFLATERS.lock();
    // The oldest goes: levels and windows that nobody uses any more leave by themselves.
    let oldest = (idle.len() >= DEFLATERS).then(|| idle.remove(0));
    idle.push((level, bits.clamp(LEAST_BITS, 15), engine));
    drop(idle);
    drop(oldest);
}

/// An inflater without a history; of the largest window, which all others fit in.
#[allow(
    clippy::disallowed_methods,
    reason = "its only user counts every byte that comes out"
)]
pub(super) fn inflater() -> Decompress {
    let idle = IDLE_INFLATERS.lock().pop();
    match idle {
        Some(mut engine) => {
            engine.reset(false);
            engine
        }
        None => Decompress::new(false),
    }
}

/// Keeps an inflater, or drops it where there are enough.
pub(super) fn keep_inflater(engine: Decompress) {
    let mut idle = IDLE_INFLATERS.lock();
    if idle.len() < INFLATERS {
        idle.push(engine);
    }
}
