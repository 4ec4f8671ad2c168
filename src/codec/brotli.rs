//! br streams, by the reference encoder in C.
//!
//! It has no reset: an engine serves one body.

use brotlic::encode::BrotliOperation;
use brotlic::{BrotliEncoder, BrotliEncoderOptions, Quality, WindowSize};
use bytes::{BufMut as _, BytesMut};

use super::output::{append, guess};
use super::{CodecError, Coding, Recipe, Step};

/// At level 4 a body said to be of 1 MiB or more gets a hash table of 4 MiB, where 512 KiB serve the
/// others. It saves up to 8 % of the bytes, for twice the CPU as soon as the caches are shared.
const LARGEST_HINT: u64 = (1 << 20) - 1;

const FAILED: CodecError = CodecError::Engine(Coding::Brotli);

/// One encoder.
pub(super) struct Stream {
    encoder: BrotliEncoder,
}

impl Stream {
    pub(super) fn new(recipe: Recipe) -> Result<Self, CodecError> {
        let setup = CodecError::Setup(Coding::Brotli);
        let quality = Quality::new(recipe.effort).map_err(|_| setup)?;
        let window = WindowSize::new(recipe.window).map_err(|_| setup)?;
        let mut options = BrotliEncoderOptions::new();
        options.quality(quality).window_size(window);
        // Left alone the engine takes the first piece for the body, so something is always said.
        let hint = recipe.size.unwrap_or(LARGEST_HINT).clamp(1, LARGEST_HINT);
        options.size_hint(u32::try_from(hint).map_err(|_| setup)?);
        let encoder = options.build().map_err(|_| setup)?;
        Ok(Self { encoder })
    }

    /// With a pad: the stream's header, then a metadata block.
    pub(super) fn begin(&mut self, pad: usize, output: &mut BytesMut) -> Result<(), CodecError> {
        if pad > 0 {
            self.encode(&[], Step::Flush, output)?;
            metadata(pad, output);
        }
        Ok(())
    }

    pub(super) fn encode(
        &mut self,
        mut input: &[u8],
        step: Step,
        output: &mut BytesMut,
    ) -> Result<(), CodecError> {
        let operation = match step {
            Step::Continue => BrotliOperation::Process,
            Step::Flush => BrotliOperation::Flush,
            Step::Finish => BrotliOperation::Finish,
        };
        let room = guess(input.len());
        loop {
            let encoder = &mut self.encoder;
            append(output, room, |free| {
                let done = encoder
                    .compress(input, free, operation)
                    .map_err(|_| FAILED)?;
                input = &input[done.bytes_read..];
                Ok::<_, CodecError>(done.bytes_written)
            })?;
            let closed = step != Step::Finish || self.encoder.is_finished();
            if input.is_empty() && !self.encoder.has_output() && closed {
                return Ok(());
            }
        }
    }
}

/// An empty metadata block (RFC 7932 section 9.2) with `pad` (1 to 65,536) bytes that decoders skip.
/// It starts on a byte border, so only after a flush.
fn metadata(pad: usize, output: &mut BytesMut) {
    let length = pad as u32 - 1;
    let bytes = if length < 1 << 8 { 1 } else { 2 };
    // Not the last block, size "zero", a reserved 0, then how many bytes of length: 1 + 2 + 1 + 2 bits.
    let bits = 0b00_0110 | bytes << 4 | length << 6;
    output.put_uint_le(u64::from(bits), 1 + bytes as usize);
    output.put_bytes(0, pad);
}
