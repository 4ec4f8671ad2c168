//! Bodies that are complete: one shot, by the fastest engine for that.
//!
//! Engines and buffers stay with their thread between two bodies, within bounds.

use std::cell::RefCell;

use bytes::{Bytes, BytesMut};
use libdeflater::{CompressionLvl, Compressor};
use zstd_safe::{CCtx, ResetDirective};

use super::encoder::MOST_PAD;
use super::{CodecError, Coding, Encoder, Recipe, Step, deflate, zstd};

/// What a thread keeps of each of its buffers between two bodies.
const KEPT_BUFFER: usize = 4 << 20;

/// What a thread keeps of its zstd context: levels up to 6 or so (NUMBERS.md).
const KEPT_CONTEXT: usize = 4 << 20;

/// Compressors a thread keeps, 142 to 230 KiB each.
const KEPT_COMPRESSORS: usize = 3;

/// Beyond this level libdeflate's compressors weigh megabytes.
const KEPT_LEVEL: u8 = 9;

#[derive(Default)]
struct Bench {
    input: Vec<u8>,
    output: Vec<u8>,
    /// The one used last is last.
    deflaters: Vec<(u8, Compressor)>,
    zstd: Option<CCtx<'static>>,
}

thread_local! {
    static BENCH: RefCell<Bench> = RefCell::default();
}

/// Encodes a complete body of `size` bytes, with `pad` bytes of filler as in [`Encoder::padded`].
/// What comes out is as long as it has to be.
///
/// # Errors
/// [`CodecError::Setup`] or [`CodecError::Engine`].
pub fn whole(
    recipe: Recipe,
    input: &[Bytes],
    size: usize,
    pad: usize,
) -> Result<Bytes, CodecError> {
    let recipe = recipe.fitted(Some(size as u64));
    if recipe.coding == Coding::Brotli {
        return piecewise(recipe, input, size, pad);
    }
    BENCH.with_borrow_mut(|bench| {
        let mut joined = std::mem::take(&mut bench.input);
        let plain = match input {
            [] => &[],
            [only] => &only[..],
            pieces => {
                joined.clear();
                pieces
                    .iter()
                    .for_each(|piece| joined.extend_from_slice(piece));
                &joined[..]
            }
        };
        let coded = match recipe.coding {
            Coding::Zstd => bench.zstd(recipe, plain, pad.min(MOST_PAD)),
            _ => bench.deflate(recipe, plain, pad.min(MOST_PAD)),
        };
        bench.input = joined;
        bench.tidy();
        coded
    })
}

/// br takes pieces as they are.
fn piecewise(
    recipe: Recipe,
    input: &[Bytes],
    size: usize,
    pad: usize,
) -> Result<Bytes, CodecError> {
    let mut output = BytesMut::with_capacity(size / 4 + 256);
    let mut encoder = Encoder::padded(recipe, pad)?;
    let (last, before) = match input {
        [] => (&[][..], input),
        [before @ .., last] => (&last[..], before),
    };
    for piece in before {
        encoder.encode(piece, Step::Continue, &mut output)?;
    }
    encoder.encode(last, Step::Finish, &mut output)?;
    Ok(Bytes::copy_from_slice(&output))
}

impl Bench {
    fn zstd(&mut self, recipe: Recipe, plain: &[u8], pad: usize) -> Result<Bytes, CodecError> {
        let mut context = match self.zstd.take() {
            Some(context) => context,
            None => CCtx::try_create().ok_or(CodecError::Setup(Coding::Zstd))?,
        };
        context
            .reset(ResetDirective::SessionAndParameters)
            .map_err(|_| CodecError::Setup(Coding::Zstd))?;
        zstd::set_up(&mut context, recipe)?;
        let room = self.room(zstd_safe::compress_bound(plain.len()));
        let written = context
            .compress2(room, plain)
            .map_err(|_| CodecError::Engine(Coding::Zstd))?;
        if context.sizeof() <= KEPT_CONTEXT {
            self.zstd = Some(context);
        }
        let mut coded = BytesMut::with_capacity(written + if pad > 0 { pad + 8 } else { 0 });
        coded.extend_from_slice(&self.output[..written]);
        zstd::skippable(pad, &mut coded);
        Ok(coded.freeze())
    }

    fn deflate(&mut self, recipe: Recipe, plain: &[u8], pad: usize) -> Result<Bytes, CodecError> {
        let failed = CodecError::Engine(recipe.coding);
        let mut compressor = self.compressor(recipe)?;
        if recipe.coding == Coding::Deflate {
            let room = self.room(compressor.zlib_compress_bound(plain.len()));
            let written = compressor.zlib_compress(plain, room).map_err(|_| failed)?;
            self.keep(recipe.effort, compressor);
            return Ok(Bytes::copy_from_slice(&self.output[..written]));
        }
        let room = self.room(compressor.deflate_compress_bound(plain.len()));
        let written = compressor
            .deflate_compress(plain, room)
            .map_err(|_| failed)?;
        self.keep(recipe.effort, compressor);
        let mut coded = BytesMut::with_capacity(written + 18 + if pad > 0 { pad + 6 } else { 0 });
        deflate::header(pad, &mut coded);
        coded.extend_from_slice(&self.output[..written]);
        deflate::trailer(libdeflater::crc32(plain), plain.len() as u64, &mut coded);
        Ok(coded.freeze())
    }

    fn compressor(&mut self, recipe: Recipe) -> Result<Compressor, CodecError> {
        if let Some(at) = self
            .deflaters
            .iter()
            .position(|(level, _)| *level == recipe.effort)
        {
            return Ok(self.deflaters.remove(at).1);
        }
        let level = CompressionLvl::new(i32::from(recipe.effort))
            .map_err(|_| CodecError::Setup(recipe.coding))?;
        Ok(Compressor::new(level))
    }

    fn keep(&mut self, level: u8, compressor: Compressor) {
        if level > KEPT_LEVEL {
            return;
        }
        if self.deflaters.len() == KEPT_COMPRESSORS {
            self.deflaters.remove(0);
        }
        self.deflaters.push((level, compressor));
    }

    /// At least `least` bytes to write into.
    fn room(&mut self, least: usize) -> &mut [u8] {
        if self.output.len() < least {
            self.output.resize(least, 0);
        }
        &mut self.output
    }

    /// What a large body left behind goes.
    fn tidy(&mut self) {
        for buffer in [&mut self.input, &mut self.output] {
            if buffer.capacity() > KEPT_BUFFER {
                *buffer = Vec::new();
            }
        }
    }
}

#[cfg(test)]
mod tests;
