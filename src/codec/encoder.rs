//! A body through an engine, piece by piece.
//!
//! An encoder is a value: it travels with its input to a worker and back. It never emits a byte for
//! a flush that has nothing to flush.

use bytes::BytesMut;

use super::shelf::{self, Key};
use super::{CodecError, Coding, Recipe, brotli, deflate, zstd};

/// What is asked of an encoder after a piece of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// More follows; nothing has to come out yet.
    Continue,
    /// All input so far must be decodable from what came out.
    Flush,
    /// The body ends here.
    Finish,
}

/// The engine at work.
pub(super) enum Engine {
    Deflate(deflate::Stream),
    Brotli(brotli::Stream),
    Zstd(zstd::Stream),
}

/// Encodes one body.
pub struct Encoder {
    recipe: Recipe,
    /// Present until dropped.
    engine: Option<Engine>,
    /// Filler that hides the body's length.
    pad: usize,
    stage: Stage,
    /// Input was taken since the last flush.
    unflushed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Fresh,
    Begun,
    Finished,
}

impl Encoder {
    /// An encoder for one body; a used engine is taken where one is free.
    ///
    /// # Errors
    /// [`CodecError::Setup`].
    pub fn new(recipe: Recipe) -> Result<Self, CodecError> {
        Self::padded(recipe, 0)
    }

    /// The same, with `pad` bytes (at most 65,531) of filler that hide the body's length: an extra
    /// field of gzip's header, a metadata block of br, a skippable frame after zstd's. The zlib
    /// format has no place for any.
    ///
    /// # Errors
    /// [`CodecError::Setup`].
    pub fn padded(recipe: Recipe, pad: usize) -> Result<Self, CodecError> {
        let engine = match shelf::take(Key::of(recipe)) {
            Some(engine) => engine,
            None => Engine::new(recipe)?,
        };
        let pad = pad.min(MOST_PAD);
        Ok(Self {
            recipe,
            engine: Some(engine),
            pad,
            stage: Stage::Fresh,
            unflushed: false,
        })
    }

    /// What it encodes by.
    #[must_use]
    pub fn recipe(&self) -> Recipe {
        self.recipe
    }

    /// Encodes `input` and appends to `output` what comes out.
    ///
    /// # Errors
    /// [`CodecError::Finished`] after a [`Step::Finish`]; [`CodecError::Engine`], after which the
    /// stream is lost.
    pub fn encode(
        &mut self,
        input: &[u8],
        step: Step,
        output: &mut BytesMut,
    ) -> Result<(), CodecError> {
        let coding = self.recipe.coding;
        let Some(engine) = self
            .engine
            .as_mut()
            .filter(|_| self.stage != Stage::Finished)
        else {
            return Err(CodecError::Finished(coding));
        };
        let idle = input.is_empty() && !self.unflushed;
        if idle && step != Step::Finish {
            return Ok(());
        }
        if self.stage == Stage::Fresh {
            self.stage = Stage::Begun;
            engine.begin(self.pad, output)?;
        }
        engine.encode(input, step, output)?;
        self.unflushed = step == Step::Continue;
        if step == Step::Finish {
            self.stage = Stage::Finished;
            engine.end(self.pad, output);
        }
        Ok(())
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.take() {
            shelf::put(Key::of(self.recipe), engine);
        }
    }
}

/// What fits gzip's extra field (16 bits of length, 4 bytes of subfield header).
pub(super) const MOST_PAD: usize = 65_531;

impl Engine {
    fn new(recipe: Recipe) -> Result<Self, CodecError> {
        Ok(match recipe.coding {
            Coding::Gzip | Coding::Deflate => Self::Deflate(deflate::Stream::new(recipe)),
            Coding::Brotli => Self::Brotli(brotli::Stream::new(recipe)?),
            Coding::Zstd => Self::Zstd(zstd::Stream::new(recipe)?),
        })
    }

    /// What stands before the first byte.
    fn begin(&mut self, pad: usize, output: &mut BytesMut) -> Result<(), CodecError> {
        match self {
            Self::Deflate(stream) => stream.begin(pad, output),
            Self::Brotli(stream) => stream.begin(pad, output)?,
            Self::Zstd(_) => {}
        }
        Ok(())
    }

    fn encode(
        &mut self,
        input: &[u8],
        step: Step,
        output: &mut BytesMut,
    ) -> Result<(), CodecError> {
        match self {
            Self::Deflate(stream) => stream.encode(input, step, output),
            Self::Brotli(stream) => stream.encode(input, step, output),
            Self::Zstd(stream) => stream.encode(input, step, output),
        }
    }

    /// What stands after the last byte.
    fn end(&mut self, pad: usize, output: &mut BytesMut) {
        match self {
            Self::Deflate(stream) => stream.end(output),
            Self::Brotli(_) => {}
            Self::Zstd(_) => zstd::skippable(pad, output),
        }
    }

    /// Makes it as good as new; false: it cannot be.
    pub(super) fn reset(&mut self) -> bool {
        match self {
            Self::Deflate(stream) => {
                stream.reset();
                true
            }
            Self::Brotli(_) => false,
            Self::Zstd(stream) => stream.reset(),
        }
    }

    /// Bytes that it holds, about.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Deflate(_) => deflate::WEIGHT,
            Self::Brotli(_) => usize::MAX,
            Self::Zstd(stream) => stream.weight(),
        }
    }
}

#[cfg(test)]
mod tests;
