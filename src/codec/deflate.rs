//! gzip and zlib streams on zlib-rs.
//!
//! gzip's header and trailer are written here: the header has room for filler, and the checksum is
//! libdeflate's, which is faster.

use bytes::{BufMut as _, BytesMut};
use flate2::{Compress, Compression, FlushCompress};
use libdeflater::Crc;

use super::output::{append, guess};
use super::{CodecError, Coding, Recipe, Step};

/// What a zlib-rs deflater with a 32 KiB window holds (NUMBERS.md).
pub(super) const WEIGHT: usize = 373 << 10;

/// Room for the marker of a flush, so that it is never cut in two and written twice.
const MARKER: usize = 64;

/// Flags of gzip's header: an extra field follows.
const EXTRA: u8 = 4;

/// A deflater and, for gzip, what its trailer needs.
pub(super) struct Stream {
    coding: Coding,
    deflater: Compress,
    crc: Crc,
}

impl Stream {
    pub(super) fn new(recipe: Recipe) -> Self {
        // zlib-rs at 1 gives a third more bytes than at 2.
        let level = Compression::new(u32::from(recipe.effort.clamp(2, 9)));
        let deflater = Compress::new(level, recipe.coding == Coding::Deflate);
        Self {
            coding: recipe.coding,
            deflater,
            crc: Crc::new(),
        }
    }

    pub(super) fn begin(&mut self, pad: usize, output: &mut BytesMut) {
        if self.coding == Coding::Gzip {
            header(pad, output);
        }
    }

    pub(super) fn encode(
        &mut self,
        mut input: &[u8],
        step: Step,
        output: &mut BytesMut,
    ) -> Result<(), CodecError> {
        let flush = match step {
            Step::Continue => FlushCompress::None,
            Step::Flush => FlushCompress::Sync,
            Step::Finish => FlushCompress::Finish,
        };
        if self.coding == Coding::Gzip {
            self.crc.update(input);
        }
        let room = guess(input.len()) + MARKER;
        loop {
            let (seen, made) = (self.deflater.total_in(), self.deflater.total_out());
            let deflater = &mut self.deflater;
            let written = append(output, room, |free| {
                deflater
                    .compress(input, free, flush)
                    .map(|_| difference(deflater.total_out(), made))
                    .map_err(|_| CodecError::Engine(self.coding))
            })?;
            input = &input[difference(self.deflater.total_in(), seen)..];
            // Room was left: nothing waits inside, except for what a later step asks for.
            if written < room && input.is_empty() {
                return Ok(());
            }
        }
    }

    pub(super) fn end(&self, output: &mut BytesMut) {
        if self.coding == Coding::Gzip {
            trailer(self.crc.sum(), self.deflater.total_in(), output);
        }
    }

    pub(super) fn reset(&mut self) {
        self.deflater.reset();
        self.crc = Crc::new();
    }
}

/// What a call of the engine added to one of its totals.
fn difference(after: u64, before: u64) -> usize {
    usize::try_from(after - before).unwrap_or(usize::MAX)
}

/// RFC 1952 section 2.3: no name, no time, no system; `pad` bytes in a subfield that nobody reads.
pub(super) fn header(pad: usize, output: &mut BytesMut) {
    let flags = if pad > 0 { EXTRA } else { 0 };
    output.put_slice(&[0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 255]);
    if let (true, Ok(length)) = (pad > 0, u16::try_from(pad)) {
        output.put_u16_le(length + 4);
        output.put_slice(b"tw");
        output.put_u16_le(length);
        output.put_bytes(0, pad);
    }
}

/// CRC-32 and size modulo 2^32 of the plain bytes.
pub(super) fn trailer(crc: u32, size: u64, output: &mut BytesMut) {
    output.put_u32_le(crc);
    // The cast wraps, as RFC 1952 wants it.
    output.put_u32_le(size as u32);
}
