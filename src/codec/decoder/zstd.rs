//! zstd (RFC 8878): any number of frames, none of which may want a window of more than 8 MiB.

use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use super::{DecodeError, Run};

/// Browsers' bound, and RFC 9659's for HTTP.
const WINDOW: u32 = 23;

/// Frames that one call starts at most: tiny ones cost more to set up than to decode.
const FRAMES: usize = 64;

pub(super) struct Unzstd {
    context: DCtx<'static>,
    /// The context knows the widest window.
    bounded: bool,
    /// The last byte taken ended a frame.
    between: bool,
    /// A frame was complete.
    frames: bool,
}

impl Unzstd {
    #[allow(clippy::disallowed_methods, reason = "this is codec::decoder")]
    pub(super) fn new() -> Self {
        Self {
            context: DCtx::create(),
            bounded: false,
            between: true,
            frames: false,
        }
    }

    /// Nothing is decoded before the bound on windows stands.
    fn bound(&mut self) -> Result<(), DecodeError> {
        if !self.bounded {
            let bound = self.context.set_parameter(DParameter::WindowLogMax(WINDOW));
            bound.map_err(|_| DecodeError::Window)?;
            self.bounded = true;
        }
        Ok(())
    }

    pub(super) fn complete(&self) -> bool {
        self.between && self.frames
    }

    pub(super) fn run(&mut self, input: &[u8], output: &mut [u8]) -> Result<Run, DecodeError> {
        self.bound()?;
        let room = output.len();
        let mut source = InBuffer::around(input);
        let mut target = OutBuffer::around(output);
        for _ in 0..FRAMES {
            if source.pos() == input.len() && self.between {
                break;
            }
            let hint = self
                .context
                .decompress_stream(&mut target, &mut source)
                .map_err(|code| self.fault(code))?;
            self.between = hint == 0;
            self.frames |= self.between;
            if target.pos() == room || !self.between {
                break;
            }
        }
        let more = target.pos() == room && !self.between;
        Ok(Run {
            taken: source.pos(),
            made: target.pos(),
            more,
        })
    }

    fn fault(&self, code: zstd_safe::ErrorCode) -> DecodeError {
        use zstd_safe::zstd_sys::ZSTD_ErrorCode::{
            ZSTD_error_frameParameter_windowTooLarge, ZSTD_error_prefix_unknown,
        };
        if zstd_safe::is_error_kind(code, ZSTD_error_frameParameter_windowTooLarge) {
            return DecodeError::Window;
        }
        let unknown = zstd_safe::is_error_kind(code, ZSTD_error_prefix_unknown);
        if self.frames && unknown {
            DecodeError::Trailing
        } else {
            DecodeError::Corrupt
        }
    }
}
