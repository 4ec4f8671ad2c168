//! What we send.

use bytes::BytesMut;
use flate2::{Compress, FlushCompress};

use super::history::{History, window};
use super::{TAIL, shelf};
use crate::codec::output::{append, guess};
use crate::codec::{CodecError, Coding};

/// Bytes of history that a direction keeps at most.
pub const HISTORY: usize = 4 << 10;

/// Room for the marker of a flush, so that it is never cut in two and written twice.
const MARKER: usize = 64;

/// Compresses the messages of one direction; they reach the peer in the order of the calls.
///
/// No engine is kept from one call to the next, not even within a message: a part ends with a sync
/// flush, and the next one goes on from the history.
#[derive(Debug)]
pub struct Deflater {
    level: u8,
    bits: u8,
    takeover: bool,
    /// The end of what the peer's window holds.
    history: History,
}

impl Deflater {
    /// Level 1 to 9; `bits` is what was agreed for this direction, 8 to 15; `takeover`: messages may
    /// refer to earlier ones.
    #[must_use]
    pub fn new(level: u8, bits: u8, takeover: bool) -> Self {
        let bits = bits.clamp(8, 15);
        Self {
            level: level.clamp(1, 9),
            bits,
            takeover,
            history: History::new(HISTORY.min(window(bits))),
        }
    }

    /// Compresses a message, if that makes it smaller, and appends what is to be sent with RSV1.
    /// `false`: nothing was appended, and the message is to be sent plain.
    ///
    /// # Errors
    /// [`CodecError::Engine`]: nothing was appended, and nothing has changed.
    pub fn whole(&mut self, plain: &[u8], output: &mut BytesMut) -> Result<bool, CodecError> {
        let start = output.len();
        self.run(plain, true, output)?;
        if output.len() - start >= plain.len() {
            // The history has not heard of it.
            output.truncate(start);
            return Ok(false);
        }
        self.remember(plain, true);
        Ok(true)
    }

    /// Compresses the next part of a message, which the peer can inflate at once, and appends what is
    /// to be sent. The last part may be empty. A message that was begun like this has to be ended
    /// like this.
    ///
    /// # Errors
    /// [`CodecError::Engine`]: nothing was appended; the message cannot be continued.
    pub fn part(
        &mut self,
        plain: &[u8],
        last: bool,
        output: &mut BytesMut,
    ) -> Result<(), CodecError> {
        self.run(plain, last, output)?;
        self.remember(plain, last);
        Ok(())
    }

    /// Bytes of memory beside the value itself.
    #[must_use]
    pub fn held(&self) -> usize {
        self.history.held()
    }

    fn run(&self, plain: &[u8], last: bool, output: &mut BytesMut) -> Result<(), CodecError> {
        let start = output.len();
        let mut engine = shelf::deflater(self.level, self.bits);
        if let Err(fault) = deflate(&mut engine, self.history.bytes(), plain, output) {
            output.truncate(start);
            return Err(fault);
        }
        shelf::keep_deflater(self.level, self.bits, engine);
        if last && output[start..].ends_with(&TAIL) {
            output.truncate(output.len() - TAIL.len());
        }
        Ok(())
    }

    fn remember(&mut self, plain: &[u8], last: bool) {
        if last && !self.takeover {
            self.history.forget();
        } else {
            self.history.push(plain);
        }
    }
}

/// Appends blocks that stand for `plain` behind `history`, and a sync flush.
fn deflate(
    engine: &mut Compress,
    history: &[u8],
    plain: &[u8],
    output: &mut BytesMut,
) -> Result<(), CodecError> {
    const FAULT: CodecError = CodecError::Engine(Coding::Deflate);
    if !history.is_empty() {
        engine.set_dictionary(history).map_err(|_| FAULT)?;
    }
    let room = guess(plain.len()) + MARKER;
    loop {
        let taken = usize::try_from(engine.total_in()).map_err(|_| FAULT)?;
        let made = engine.total_out();
        let written = append(output, room, |free| {
            engine
                .compress(&plain[taken..], free, FlushCompress::Sync)
                .map_err(|_| FAULT)?;
            usize::try_from(engine.total_out() - made).map_err(|_| FAULT)
        })?;
        // Room was left: nothing waits inside.
        if written < room && engine.total_in() == plain.len() as u64 {
            return Ok(());
        }
    }
}
