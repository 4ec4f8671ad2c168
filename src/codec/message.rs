//! Messages of permessage-deflate (RFC 7692 section 7.2), without a live stream a connection.
//!
//! What a connection keeps is a history: the last bytes of what was sent, or received. For a message
//! an engine is taken from a shelf, primed with the history as its dictionary, and put back; to the
//! peer it looks like one long stream. That costs a few KiB a connection where a live stream costs
//! hundreds, and no more CPU, since thousands of live streams do not fit a processor's caches
//! (NUMBERS.md).
//!
//! A message that is sent plain must not be shown to a [`Deflater`] or an [`Inflater`]: it is no part
//! of either side's history (RFC 7692 section 6). Output is bounded: a [`Deflater`]'s by its input, an
//! [`Inflater`]'s by its limit and by the room of a call.

mod deflater;
mod history;
mod inflater;
mod shelf;

#[cfg(test)]
mod tests;

pub use deflater::{Deflater, HISTORY};
pub use inflater::{INFLATING, Inflated, Inflater};

/// What ends the sync flush of a message, and is not sent (RFC 7692 section 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];
