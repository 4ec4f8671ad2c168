//! zstd streams, by the format's own library.

use bytes::{BufMut as _, BytesMut};
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective};

use super::output::{append, guess};
use super::{CodecError, Coding, Recipe, Step};

const SETUP: CodecError = CodecError::Setup(Coding::Zstd);
const FAILED: CodecError = CodecError::Engine(Coding::Zstd);

/// One compression context.
pub(super) struct Stream {
    context: CCtx<'static>,
}

impl Stream {
    pub(super) fn new(recipe: Recipe) -> Result<Self, CodecError> {
        let mut context = CCtx::try_create().ok_or(SETUP)?;
        set_up(&mut context, recipe)?;
        Ok(Self { context })
    }

    pub(super) fn encode(
        &mut self,
        input: &[u8],
        step: Step,
        output: &mut BytesMut,
    ) -> Result<(), CodecError> {
        let directive = match step {
            Step::Continue => ZSTD_EndDirective::ZSTD_e_continue,
            Step::Flush => ZSTD_EndDirective::ZSTD_e_flush,
            Step::Finish => ZSTD_EndDirective::ZSTD_e_end,
        };
        let mut source = InBuffer::around(input);
        let room = guess(input.len());
        loop {
            let mut left = 0;
            append(output, room, |free| {
                let mut target = OutBuffer::around(free);
                left = self
                    .context
                    .compress_stream2(&mut target, &mut source, directive)
                    .map_err(|_| FAILED)?;
                Ok::<_, CodecError>(target.pos())
            })?;
            let all_in = source.pos() == input.len();
            if all_in && (step == Step::Continue || left == 0) {
                return Ok(());
            }
        }
    }

    pub(super) fn reset(&mut self) -> bool {
        self.context.reset(ResetDirective::SessionOnly).is_ok()
    }

    pub(super) fn weight(&self) -> usize {
        self.context.sizeof()
    }
}

/// Level and window.
pub(super) fn set_up(context: &mut CCtx<'static>, recipe: Recipe) -> Result<(), CodecError> {
    for parameter in [
        CParameter::CompressionLevel(i32::from(recipe.effort)),
        CParameter::WindowLog(u32::from(recipe.window)),
    ] {
        context.set_parameter(parameter).map_err(|_| SETUP)?;
    }
    Ok(())
}

/// A frame that decoders skip (RFC 8878 section 3.1.2). It stands after the body's frame: tools that
/// look at the first frame only still see the body.
pub(super) fn skippable(pad: usize, output: &mut BytesMut) {
    if let (true, Ok(length)) = (pad > 0, u32::try_from(pad)) {
        output.put_u32_le(0x184d_2a50);
        output.put_u32_le(length);
        output.put_bytes(0, pad);
    }
}
