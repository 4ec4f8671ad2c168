//! The codec work on one message, in turns that are bounded: nobody holds a thread for long.

use bytes::{Bytes, BytesMut};
use std::time::Duration;

use crate::codec::{self, CodecError, Coding, DecodeError, Decoder, Encoder, Recipe, Step, cost};
use crate::policy::MessageFault;

/// What one turn of the pool may cost where a message is coded whole, by the fastest engine for
/// that; what costs more is coded in slices.
const LONGEST: Duration = Duration::from_millis(10);

/// Inflated bytes that a turn brings.
const ROOM: usize = 256 * 1024;

/// What is done to a message; it travels to a worker and back.
pub(super) enum Work {
    /// Coded in one turn.
    Whole(Recipe),
    /// Coded slice by slice.
    Slices(Box<Slices>),
    /// Inflated.
    Inflate(Box<Inflate>),
}

pub(super) struct Slices {
    encoder: Encoder,
    recipe: Recipe,
    at: Place,
    output: BytesMut,
}

pub(super) struct Inflate {
    coding: Coding,
    decoder: Option<Decoder>,
    limit: u64,
    at: Place,
    /// A piece a turn: nothing is copied into ever larger buffers.
    output: Vec<Bytes>,
}

/// How far the message was read.
#[derive(Default)]
struct Place {
    piece: usize,
    offset: usize,
}

/// What a turn led to.
pub(super) enum Turned {
    /// There it is.
    Done(Vec<Bytes>),
    /// Another turn is needed.
    More(Work),
    /// It cannot be coded; it can still go plain.
    Uncoded(CodecError),
    /// It cannot be inflated.
    Fault(MessageFault),
}

impl Work {
    /// Compresses a message of this size.
    pub(super) fn encode(recipe: Recipe, size: usize) -> Result<Self, CodecError> {
        let fitted = recipe.fitted(Some(size as u64));
        if cost::whole_estimate(fitted, size) <= LONGEST {
            return Ok(Self::Whole(fitted));
        }
        let recipe = recipe.streaming(Some(size as u64));
        Ok(Self::Slices(Box::new(Slices {
            encoder: Encoder::new(recipe)?,
            recipe,
            at: Place::default(),
            output: BytesMut::new(),
        })))
    }

    /// Inflates a message, of which no more than `limit` bytes may come out.
    pub(super) fn inflate(coding: Coding, limit: u64) -> Self {
        Self::Inflate(Box::new(Inflate {
            coding,
            decoder: Some(Decoder::new(coding, limit)),
            limit,
            at: Place::default(),
            output: Vec::new(),
        }))
    }

    pub(super) fn coding(&self) -> Coding {
        match self {
            Self::Whole(recipe) => recipe.coding,
            Self::Slices(slices) => slices.recipe.coding,
            Self::Inflate(inflate) => inflate.coding,
        }
    }

    /// What the next turn on a message of this size costs.
    pub(super) fn cost(&self, size: usize) -> Duration {
        match self {
            Self::Whole(recipe) => cost::whole_estimate(*recipe, size),
            Self::Slices(slices) => {
                cost::stream_estimate(slices.recipe, cost::slice_bytes(slices.recipe, cost::SLICE))
            }
            // What inflates more than eightfold is rare, and corrected by what it really takes.
            Self::Inflate(inflate) => {
                cost::decode_estimate(inflate.coding, size.saturating_mul(8).min(ROOM))
            }
        }
    }

    /// The next turn costs no more than handing it over.
    pub(super) fn is_inline(&self, size: usize) -> bool {
        match self {
            Self::Whole(recipe) => cost::is_inline_whole(*recipe, size),
            Self::Slices(_) => false,
            Self::Inflate(inflate) => {
                inflate.output.is_empty() && cost::is_inline_decode(inflate.coding, size)
            }
        }
    }

    /// One turn on the message in these pieces.
    pub(super) fn turn(self, message: &[Bytes], size: usize) -> Turned {
        match self {
            Self::Whole(recipe) => match codec::whole(recipe, message, size, 0) {
                Ok(coded) => Turned::Done(vec![coded]),
                Err(error) => Turned::Uncoded(error),
            },
            Self::Slices(slices) => slices.turn(message),
            Self::Inflate(inflate) => inflate.turn(message, ROOM),
        }
    }

    /// The same where it stands: an inflating message gets less room.
    pub(super) fn turn_inline(self, message: &[Bytes], size: usize) -> Turned {
        match self {
            Self::Inflate(inflate) => inflate.turn(message, ROOM / 4),
            other => other.turn(message, size),
        }
    }
}

impl Place {
    /// What is left of the piece that is read.
    fn rest<'a>(&mut self, message: &'a [Bytes]) -> Option<&'a [u8]> {
        loop {
            let rest = message.get(self.piece)?.get(self.offset..)?;
            if !rest.is_empty() {
                return Some(rest);
            }
            *self = Self {
                piece: self.piece + 1,
                offset: 0,
            };
        }
    }
}

impl Slices {
    fn turn(mut self: Box<Self>, message: &[Bytes]) -> Turned {
        let mut left = cost::slice_bytes(self.recipe, cost::SLICE);
        while left > 0 {
            let Some(rest) = self.at.rest(message) else {
                let ended = self.encoder.encode(&[], Step::Finish, &mut self.output);
                return match ended {
                    Ok(()) => Turned::Done(vec![self.output.freeze()]),
                    Err(error) => Turned::Uncoded(error),
                };
            };
            let piece = &rest[..rest.len().min(left)];
            let step = Step::Continue;
            if let Err(error) = self.encoder.encode(piece, step, &mut self.output) {
                return Turned::Uncoded(error);
            }
            left -= piece.len();
            self.at.offset += piece.len();
        }
        Turned::More(Work::Slices(self))
    }
}

impl Inflate {
    fn turn(mut self: Box<Self>, message: &[Bytes], room: usize) -> Turned {
        let Some(mut decoder) = self.decoder.take() else {
            return Turned::Fault(MessageFault::Lost);
        };
        let mut output = BytesMut::new();
        while let Some(rest) = self.at.rest(message) {
            if output.len() >= room {
                self.output.push(output.freeze());
                self.decoder = Some(decoder);
                return Turned::More(Work::Inflate(self));
            }
            let left = room - output.len();
            match decoder.decode(rest, &mut output, left) {
                Ok(progress) => self.at.offset += progress.consumed,
                Err(DecodeError::TooLarge) => {
                    return Turned::Fault(MessageFault::TooLarge(self.limit));
                }
                Err(error) => return Turned::Fault(MessageFault::Corrupt(error)),
            }
        }
        self.output.push(output.freeze());
        match decoder.finish() {
            Ok(()) => Turned::Done(self.output),
            Err(error) => Turned::Fault(MessageFault::Corrupt(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(bytes: &[u8], size: usize) -> Vec<Bytes> {
        bytes.chunks(size).map(Bytes::copy_from_slice).collect()
    }

    /// Runs to the end, and says in how many turns.
    fn run(mut work: Work, message: &[Bytes]) -> (Result<Bytes, MessageFault>, usize) {
        let size = message.iter().map(Bytes::len).sum();
        for turns in 1.. {
            match work.turn(message, size) {
                Turned::More(more) => work = more,
                Turned::Done(pieces) => return (Ok(Bytes::from(pieces.concat())), turns),
                Turned::Fault(fault) => return (Err(fault), turns),
                Turned::Uncoded(error) => panic!("{error}"),
            }
        }
        unreachable!("it ends")
    }

    #[test]
    fn a_long_message_takes_many_short_turns_both_ways() {
        let plain: Vec<u8> = (0..3_000_000_u32)
            .flat_map(|number| (number / 7).to_le_bytes())
            .collect();
        for coding in [Coding::Gzip, Coding::Deflate, Coding::Zstd] {
            let recipe = Recipe::new(coding, 6);
            let work = Work::encode(recipe, plain.len()).expect("an encoder");
            let (coded, turns) = run(work, &pieces(&plain, 70_000));
            let coded = coded.expect("coded");
            assert!(turns > 10 && coded.len() < plain.len(), "{coding} {turns}");
            let limit = plain.len() as u64;
            let (inflated, turns) = run(Work::inflate(coding, limit), &pieces(&coded, 9_999));
            assert!(inflated.as_deref() == Ok(&plain[..]), "{coding}");
            assert!(turns > 10, "{coding} {turns}");
            let (fault, _) = run(Work::inflate(coding, limit - 1), &pieces(&coded, 9_999));
            assert_eq!(fault, Err(MessageFault::TooLarge(limit - 1)), "{coding}");
        }
    }

    #[test]
    fn a_message_that_is_cut_does_not_inflate() {
        let recipe = Recipe::new(Coding::Gzip, 4);
        let work = Work::encode(recipe, 3_000).expect("an encoder");
        let (coded, _) = run(work, &[Bytes::from(vec![7; 3_000])]);
        let mut coded = coded.expect("coded");
        coded.truncate(coded.len() - 1);
        let (fault, _) = run(Work::inflate(Coding::Gzip, 3_000), &[coded]);
        assert_eq!(fault, Err(MessageFault::Corrupt(DecodeError::Truncated)));
    }
}
