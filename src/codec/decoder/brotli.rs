//! br (RFC 7932), in Rust; windows beyond the RFC's 16 MiB are refused.

use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};

use super::{DecodeError, Run};

pub(super) struct Unbrotli {
    state: BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>,
    complete: bool,
}

impl Unbrotli {
    pub(super) fn new() -> Self {
        let alloc = StandardAlloc::default;
        Self {
            state: BrotliState::new_strict(alloc(), alloc(), alloc()),
            complete: false,
        }
    }

    pub(super) fn complete(&self) -> bool {
        self.complete
    }

    pub(super) fn run(&mut self, input: &[u8], output: &mut [u8]) -> Result<Run, DecodeError> {
        if self.complete {
            return after(
                input,
                Run {
                    taken: 0,
                    made: 0,
                    more: false,
                },
            );
        }
        let (mut left, mut taken) = (input.len(), 0);
        let (mut free, mut made, mut total) = (output.len(), 0, 0);
        let result = BrotliDecompressStream(
            &mut left,
            &mut taken,
            input,
            &mut free,
            &mut made,
            output,
            &mut total,
            &mut self.state,
        );
        match result {
            BrotliResult::ResultFailure => Err(DecodeError::Corrupt),
            BrotliResult::ResultSuccess => {
                self.complete = true;
                after(
                    input,
                    Run {
                        taken,
                        made,
                        more: false,
                    },
                )
            }
            BrotliResult::NeedsMoreOutput => Ok(Run {
                taken,
                made,
                more: true,
            }),
            // It says so also while output waits for which there was no room.
            BrotliResult::NeedsMoreInput => Ok(Run {
                taken,
                made,
                more: made == output.len(),
            }),
        }
    }
}

/// Nothing may follow the end.
fn after(input: &[u8], run: Run) -> Result<Run, DecodeError> {
    if run.taken < input.len() {
        Err(DecodeError::Trailing)
    } else {
        Ok(run)
    }
}
