//! What a client sends.

use bytes::BytesMut;
use flate2::{Decompress, FlushDecompress, Status};

use super::history::{History, window};
use super::{TAIL, shelf};
use crate::codec::DecodeError;
use crate::codec::output::append;

/// Bytes that a message holds while it is half received, beside the history.
pub const INFLATING: usize = 48 << 10;

/// What is fed behind a message: the tail that its sender took off, and an empty last block, which
/// ends the stream exactly here or shows that the message was cut short.
const END: [u8; 9] = [0, 0, 0xff, 0xff, 1, 0, 0, 0xff, 0xff];

/// Streams that a message may consist of (each block may be a last one, RFC 7692 section 7.2.3.4):
/// so many, and another one for each so many bytes of it. To start one costs microseconds.
const STREAMS: u64 = 16;
const BYTES_A_STREAM: u64 = 64;

/// Inflates the messages of one direction.
#[derive(Debug)]
pub struct Inflater {
    takeover: bool,
    limit: u64,
    /// All that the peer's messages may refer to.
    history: History,
    message: Option<Box<Inflating>>,
}

/// What one call of [`Inflater::inflate`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inflated {
    /// Input bytes that are done with; the next call wants the rest of them first.
    pub consumed: usize,
    /// All that the input stands for is out; if it was the last of its message, the message has ended.
    pub done: bool,
}

/// A message that has begun.
#[derive(Debug)]
struct Inflating {
    engine: Decompress,
    /// Nothing was fed to the engine since it was started.
    fresh: bool,
    /// Bytes of [`END`] that were fed.
    ended: usize,
    /// Bytes that may still come out.
    left: u64,
    /// Bytes that went in.
    taken: u64,
    /// Streams that have ended.
    streams: u64,
}

/// How an engine came to a stop.
enum Stop {
    /// There is no more room, and maybe more output.
    Full,
    /// All of the input is out.
    Dry,
    /// The message has ended.
    End,
}

impl Inflater {
    /// `bits` and `takeover` are what was agreed for this direction; `limit`: bytes that a message
    /// may inflate to.
    #[must_use]
    pub fn new(bits: u8, takeover: bool, limit: u64) -> Self {
        Self {
            takeover,
            limit,
            history: History::new(window(bits.clamp(8, 15))),
            message: None,
        }
    }

    /// Inflates some of a message and appends at most `room` (at least 1) bytes to `output`. `last`:
    /// the message has no bytes behind `input`.
    ///
    /// The caller comes again, with the rest of the input, until it is done.
    ///
    /// # Errors
    /// [`DecodeError::TooLarge`], [`DecodeError::Corrupt`], [`DecodeError::Truncated`]: nothing of
    /// this call is in the output, and the connection cannot go on.
    pub fn inflate(
        &mut self,
        input: &[u8],
        last: bool,
        room: usize,
        output: &mut BytesMut,
    ) -> Result<Inflated, DecodeError> {
        if self.message.is_none() && input.is_empty() {
            // Section 7.2.3.6 has one byte for an empty message; none at all is one, too.
            return Ok(Inflated {
                consumed: 0,
                done: true,
            });
        }
        let mut message = match self.message.take() {
            Some(message) => message,
            None => self.begin(),
        };
        let before = output.len();
        // One byte more than is allowed, to tell "just fits" from "too large".
        let allowed = usize::try_from(message.left.saturating_add(1)).unwrap_or(usize::MAX);
        let room = room.clamp(1, likely(input.len())).min(allowed);
        let (mut consumed, mut stop) = (0, Stop::Dry);
        let history = &mut self.history;
        let made = append(output, room, |free| {
            let mut made = 0;
            stop = message.run(input, last, (&mut consumed, &mut made), free, history)?;
            Ok::<_, DecodeError>(made)
        })?;
        let made = made as u64;
        if made > message.left {
            output.truncate(before);
            return Err(DecodeError::TooLarge);
        }
        message.left -= made;
        if matches!(stop, Stop::End) {
            shelf::keep_inflater(message.engine);
            if !self.takeover {
                self.history.forget();
            }
        } else {
            self.message = Some(message);
        }
        Ok(Inflated {
            consumed,
            done: !matches!(stop, Stop::Full),
        })
    }

    /// Bytes of memory beside the value itself.
    #[must_use]
    pub fn held(&self) -> usize {
        let message = self.message.as_ref().map_or(0, |_| INFLATING);
        self.history.held() + message
    }

    fn begin(&self) -> Box<Inflating> {
        Box::new(Inflating {
            engine: shelf::inflater(),
            fresh: true,
            ended: 0,
            left: self.limit,
            taken: 0,
            streams: 0,
        })
    }
}

/// The room that is worth having ready for so much input.
fn likely(input: usize) -> usize {
    input.saturating_mul(8).saturating_add(1024)
}

impl Inflating {
    /// Until the room is full, the input is out, or the message is.
    fn run(
        &mut self,
        input: &[u8],
        last: bool,
        (consumed, made): (&mut usize, &mut usize),
        free: &mut [u8],
        history: &mut History,
    ) -> Result<Stop, DecodeError> {
        loop {
            let rest = &input[*consumed..];
            let behind = last && rest.is_empty();
            if self.fresh && rest.is_empty() {
                // The last stream has ended with the last byte: there is nothing to end.
                return Ok(if last { Stop::End } else { Stop::Dry });
            }
            if *made == free.len() {
                return Ok(Stop::Full);
            }
            if self.fresh {
                self.prime(history)?;
            }
            let fed = if behind { &END[self.ended..] } else { rest };
            let (status, taken, out) = self.feed(fed, &mut free[*made..])?;
            history.push(&free[*made..*made + out]);
            *made += out;
            if behind {
                self.ended += taken;
            } else {
                *consumed += taken;
                self.taken += taken as u64;
            }
            if status == Status::StreamEnd {
                if behind {
                    return self.end();
                }
                self.start_again()?;
            } else if *made < free.len() && taken == fed.len() {
                return if behind {
                    Err(DecodeError::Truncated)
                } else if last {
                    continue;
                } else {
                    Ok(Stop::Dry)
                };
            } else if taken == 0 && out == 0 {
                return Err(DecodeError::Corrupt);
            }
        }
    }

    /// The stream has ended within [`END`]: behind the tail, which may have been that of a last
    /// block, or behind all of it.
    fn end(&self) -> Result<Stop, DecodeError> {
        if self.ended == TAIL.len() || self.ended == END.len() {
            Ok(Stop::End)
        } else {
            Err(DecodeError::Truncated)
        }
    }

    /// A last block that was not the last: the window stays.
    fn start_again(&mut self) -> Result<(), DecodeError> {
        self.streams += 1;
        if self.streams > STREAMS + self.taken / BYTES_A_STREAM {
            return Err(DecodeError::Corrupt);
        }
        self.engine.reset(false);
        self.fresh = true;
        Ok(())
    }

    fn prime(&mut self, history: &History) -> Result<(), DecodeError> {
        self.fresh = false;
        let window = history.bytes();
        if window.is_empty() {
            return Ok(());
        }
        let primed = self.engine.set_dictionary(window);
        primed.map(|_| ()).map_err(|_| DecodeError::Corrupt)
    }

    /// One run of the engine: how it stopped, what it took and what it made.
    fn feed(
        &mut self,
        input: &[u8],
        free: &mut [u8],
    ) -> Result<(Status, usize, usize), DecodeError> {
        let (taken, made) = (self.engine.total_in(), self.engine.total_out());
        let status = self
            .engine
            .decompress(input, free, FlushDecompress::None)
            .map_err(|_| DecodeError::Corrupt)?;
        let count = |total: u64, before: u64| usize::try_from(total - before).unwrap_or(usize::MAX);
        let taken = count(self.engine.total_in(), taken);
        Ok((status, taken, count(self.engine.total_out(), made)))
    }
}
