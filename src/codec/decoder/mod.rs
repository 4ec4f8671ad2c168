//! Inflates what strangers compressed, within a limit.
//!
//! The only place that may hold a raw decoder: every byte that comes out is counted against the
//! limit before it is handed on, one call brings forth no more than its caller has room for, and no
//! frame is believed about the window it wants beyond 8 MiB (zstd) or 16 MiB (br).

mod brotli;
mod inflate;
mod zstd;

use bytes::BytesMut;

use super::Coding;
use super::output::append;

/// Decodes one body.
pub struct Decoder {
    engine: Engine,
    /// Bytes that may still come out.
    left: u64,
    /// Input that the engine has taken but that was not reported as consumed.
    owed: usize,
}

/// What one call of [`Decoder::decode`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Input bytes that are done with; the next call wants the rest of them first. It reaches the
    /// end of the input only when everything that the input stands for is out.
    pub consumed: usize,
    /// Output bytes appended.
    pub produced: usize,
}

/// Why a body does not decode. Nothing of the failing call is in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// It inflates beyond the limit.
    #[error("it inflates beyond the limit")]
    TooLarge,
    /// It is not what it says it is.
    #[error("it is corrupt")]
    Corrupt,
    /// Something follows its end.
    #[error("something follows its end")]
    Trailing,
    /// It ends too early.
    #[error("it is cut short")]
    Truncated,
    /// It wants a larger window than any client may.
    #[error("it wants a window of more than 8 MiB")]
    Window,
}

enum Engine {
    Inflate(inflate::Inflater),
    Brotli(Box<brotli::Unbrotli>),
    Zstd(zstd::Unzstd),
}

/// What one run of an engine did.
struct Run {
    taken: usize,
    made: usize,
    /// Output may wait inside although all input was taken.
    more: bool,
}

impl Decoder {
    /// For one body, of which no more than `limit` bytes may come out.
    #[must_use]
    pub fn new(coding: Coding, limit: u64) -> Self {
        let engine = match coding {
            Coding::Gzip => Engine::Inflate(inflate::Inflater::gzip()),
            Coding::Deflate => Engine::Inflate(inflate::Inflater::deflate()),
            Coding::Brotli => Engine::Brotli(Box::new(brotli::Unbrotli::new())),
            Coding::Zstd => Engine::Zstd(zstd::Unzstd::new()),
        };
        Self {
            engine,
            left: limit,
            owed: 0,
        }
    }

    /// Decodes from `input` and appends at most `room` (at least 1) bytes to `output`.
    ///
    /// Every call makes progress as long as `input` is not empty.
    ///
    /// # Errors
    /// Any [`DecodeError`] but `Truncated`; the decoder is of no use after it.
    pub fn decode(
        &mut self,
        input: &[u8],
        output: &mut BytesMut,
        room: usize,
    ) -> Result<Progress, DecodeError> {
        let fresh = input.get(self.owed..).unwrap_or_default();
        let before = output.len();
        // One byte more than is allowed, to tell "just fits" from "too large".
        let allowed = usize::try_from(self.left.saturating_add(1)).unwrap_or(usize::MAX);
        let room = room.clamp(1, likely(fresh.len())).min(allowed);
        let engine = &mut self.engine;
        let mut run = Run {
            taken: 0,
            made: 0,
            more: false,
        };
        append(output, room, |free| {
            run = engine.run(fresh, free)?;
            Ok::<_, DecodeError>(run.made)
        })?;
        if run.made as u64 > self.left {
            output.truncate(before);
            return Err(DecodeError::TooLarge);
        }
        self.left -= run.made as u64;
        let taken = self.owed + run.taken;
        // The last byte stays owed while output waits, so that the caller comes again.
        self.owed = usize::from(run.more && taken > 0);
        Ok(Progress {
            consumed: taken - self.owed,
            produced: run.made,
        })
    }

    /// The input has ended.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`]: the body has not.
    pub fn finish(self) -> Result<(), DecodeError> {
        let complete = match &self.engine {
            Engine::Inflate(inflater) => inflater.complete(),
            Engine::Brotli(decoder) => decoder.complete(),
            Engine::Zstd(decoder) => decoder.complete(),
        };
        if complete && self.owed == 0 {
            Ok(())
        } else {
            Err(DecodeError::Truncated)
        }
    }
}

/// The room that is worth having ready for so much input: a small piece gets no large buffer, and
/// where it inflates further the caller comes again.
fn likely(input: usize) -> usize {
    input.saturating_mul(8).saturating_add(4096)
}

impl Engine {
    fn run(&mut self, input: &[u8], output: &mut [u8]) -> Result<Run, DecodeError> {
        match self {
            Self::Inflate(inflater) => inflater.run(input, output),
            Self::Brotli(decoder) => decoder.run(input, output),
            Self::Zstd(decoder) => decoder.run(input, output),
        }
    }
}

#[cfg(test)]
mod tests;
