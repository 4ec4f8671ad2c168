//! An answer through an encoder, slice by slice.
//!
//! The encoder travels with its input to a worker and comes back: nothing is shared, nothing is
//! locked while encoding. One slice is away at a time, so fairness, cancellation and memory are
//! bounded by a slice. While it is away at most one more slice is pulled from the app; beyond that
//! the client's window is the backpressure. Work cheaper than a hand-over is done where it stands.
//! Dropping the body withdraws the slice.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Frame;
use tokio::time::{Instant, Sleep};

use super::{AppBody, BoxError, Ledger};
use crate::codec::{CodecError, Encoder, Recipe, Step, cost};
use crate::config::settings::Flush;
use crate::head::transform;
use crate::work::{CpuClock, Errand, Lane, Pool};

/// An app that sends nothing for so long has paused, and what is there is flushed. Shorter gaps are
/// the network's: flushing at them costs ratio and gains nobody anything.
const PAUSE: Duration = Duration::from_millis(2);

/// Slices of one response that go on the short lane.
const SHORT_SLICES: u32 = 2;

/// How a body is encoded.
#[derive(Debug, Clone)]
pub struct EncodeSettings {
    /// Coding and effort; already fitted for a stream.
    pub recipe: Recipe,
    /// When what is there is sent.
    pub flush: Flush,
    /// Bytes that may be encoded on the network thread.
    pub inline: usize,
    /// Random bytes that hide the length.
    pub pad: usize,
    /// Where the rest is done.
    pub pool: Pool,
}

/// Takes the coded bytes of a stream, to be kept once they are all there.
pub trait Keep: Send {
    /// The next piece.
    fn take(&mut self, piece: &Bytes);

    /// That was the last one.
    fn complete(self: Box<Self>);
}

/// The app's answer, coded as it comes.
pub struct EncodeBody {
    settings: EncodeSettings,
    state: State,
    incoming: Option<AppBody>,
    gathered: VecDeque<Bytes>,
    gathered_size: usize,
    trailers: Option<HeaderMap>,
    /// Something was fed since the last flush.
    unflushed: bool,
    /// The app's last chunk is to leave at once.
    push: bool,
    served: u32,
    pause: Option<Pin<Box<Sleep>>>,
    pausing: bool,
    keep: Option<Box<dyn Keep>>,
}

/// What a worker brings back.
struct Slice {
    encoder: Encoder,
    plain: usize,
    output: Result<Bytes, CodecError>,
}

enum State {
    Here(Encoder),
    Away { errand: Errand<Slice>, last: bool },
    Trailers,
    Done,
}

/// What the app has to offer right now.
enum Supply {
    /// A slice is full.
    Slice,
    /// The app sent its last byte.
    End,
    /// Nothing more for now.
    Pause,
}

impl EncodeBody {
    /// Encodes `held`, then what `incoming` brings (absent: `held` is all, then `trailers`).
    ///
    /// # Errors
    /// The encoder could not be set up.
    pub fn new(
        settings: EncodeSettings,
        held: Vec<Bytes>,
        incoming: Option<AppBody>,
        trailers: Option<HeaderMap>,
    ) -> Result<Self, CodecError> {
        let encoder = Encoder::padded(settings.recipe, settings.pad)?;
        let gathered_size = held.iter().map(Bytes::len).sum();
        Ok(Self {
            settings,
            state: State::Here(encoder),
            incoming,
            gathered: held.into(),
            gathered_size,
            trailers,
            unflushed: false,
            push: false,
            served: 0,
            pause: None,
            pausing: false,
            keep: None,
        })
    }

    /// The same, its coded bytes kept on the way.
    #[must_use]
    pub fn kept(mut self, keep: Option<Box<dyn Keep>>) -> Self {
        self.keep = keep;
        self
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        ledger: &mut Ledger,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            match &mut self.state {
                State::Away { errand, last } => {
                    let last = *last;
                    let Poll::Ready(outcome) = Pin::new(errand).poll(cx) else {
                        if let Err(error) = self.prefetch(cx) {
                            return self.fail(error);
                        }
                        return Poll::Pending;
                    };
                    let done = match outcome {
                        Ok(done) => done,
                        Err(lost) => return self.fail(lost.into()),
                    };
                    ledger.waited(done.waited);
                    let Slice {
                        encoder,
                        plain,
                        output,
                    } = done.value;
                    let output = match output {
                        Ok(output) => output,
                        Err(error) => return self.fail(error.into()),
                    };
                    ledger.coded(plain, output.len(), done.cpu);
                    self.back(encoder, &output, last);
                    if !output.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(output))));
                    }
                }
                State::Here(_) => match ready!(self.supply(cx)) {
                    Err(error) => return self.fail(error),
                    Ok(supply) => match self.feed(&supply, ledger) {
                        Ok(None) => {}
                        Ok(Some(output)) => return Poll::Ready(Some(Ok(Frame::data(output)))),
                        Err(error) => return self.fail(error.into()),
                    },
                },
                State::Trailers => {
                    self.state = State::Done;
                    if let Some(mut trailers) = self.trailers.take() {
                        transform::coded_trailers(&mut trailers, self.settings.recipe.coding);
                        return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
                    }
                }
                State::Done => return Poll::Ready(None),
            }
        }
    }

    /// The encoder is back, with its output.
    fn back(&mut self, encoder: Encoder, output: &Bytes, last: bool) {
        if let Some(keep) = &mut self.keep {
            keep.take(output);
        }
        if last {
            self.state = State::Trailers;
            // Before the client has the last byte, and asks again.
            if let Some(keep) = self.keep.take() {
                keep.complete();
            }
        } else {
            self.state = State::Here(encoder);
        }
    }

    /// After the head a fault aborts the stream: it never goes on plain under a coding.
    fn fail(&mut self, error: BoxError) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.state = State::Done;
        self.incoming = None;
        Poll::Ready(Some(Err(error)))
    }

    /// Gathers until a slice is full, the app has ended, or it pauses with something unsent.
    fn supply(&mut self, cx: &mut Context<'_>) -> Poll<Result<Supply, BoxError>> {
        let slice = self.slice_bytes();
        loop {
            if self.gathered_size >= slice {
                self.pausing = false;
                return Poll::Ready(Ok(Supply::Slice));
            }
            if self.incoming.is_none() {
                return Poll::Ready(Ok(Supply::End));
            }
            if self.push {
                self.push = false;
                return Poll::Ready(Ok(Supply::Pause));
            }
            match self.pull(cx) {
                Poll::Ready(result) => {
                    self.pausing = false;
                    result?;
                }
                Poll::Pending => {
                    let unsent = self.unflushed || self.gathered_size > 0;
                    if self.settings.flush == Flush::Never || !unsent {
                        return Poll::Pending;
                    }
                    ready!(self.poll_pause(cx));
                    self.pausing = false;
                    return Poll::Ready(Ok(Supply::Pause));
                }
            }
        }
    }

    /// Ready once the app has sent nothing for [`PAUSE`].
    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let pause = self
            .pause
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(PAUSE)));
        if !self.pausing {
            self.pausing = true;
            pause.as_mut().reset(Instant::now() + PAUSE);
        }
        pause.as_mut().poll(cx)
    }

    /// One frame of the app's.
    fn pull(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        let Some(incoming) = &mut self.incoming else {
            return Poll::Ready(Ok(()));
        };
        match ready!(incoming.poll_frame(cx)) {
            None => self.incoming = None,
            Some(Err(error)) => return Poll::Ready(Err(error)),
            Some(Ok(frame)) => {
                let ended = incoming.is_end_stream();
                match frame.into_data() {
                    Ok(bytes) => {
                        self.push = self.settings.flush == Flush::EveryChunk;
                        self.gathered_size += bytes.len();
                        self.gathered.push_back(bytes);
                    }
                    Err(frame) => self.trailers = frame.into_trailers().ok(),
                }
                if ended {
                    self.incoming = None;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// While a slice is away: at most one more is pulled.
    fn prefetch(&mut self, cx: &mut Context<'_>) -> Result<(), BoxError> {
        let slice = self.slice_bytes();
        while self.incoming.is_some() && self.gathered_size < slice && !self.push {
            match self.pull(cx) {
                Poll::Ready(result) => result?,
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    /// Feeds what was gathered, in place or on a worker. `Some`: bytes to send now.
    fn feed(&mut self, supply: &Supply, ledger: &mut Ledger) -> Result<Option<Bytes>, CodecError> {
        let State::Here(_) = &self.state else {
            return Ok(None);
        };
        let (input, size) = self.slice();
        let last = self.incoming.is_none() && self.gathered.is_empty();
        let step = match supply {
            _ if last => Step::Finish,
            Supply::Pause => Step::Flush,
            Supply::Slice | Supply::End => Step::Continue,
        };
        ledger.plain(size);
        self.unflushed = step == Step::Continue;
        let recipe = self.settings.recipe;
        let State::Here(mut encoder) = std::mem::replace(&mut self.state, State::Done) else {
            return Ok(None);
        };
        if size <= self.settings.inline && cost::is_inline(recipe, size) {
            let clock = CpuClock::start();
            let output = run(&mut encoder, &input, step)?;
            ledger.coded(size, output.len(), clock.elapsed());
            self.back(encoder, &output, last);
            return Ok((!output.is_empty()).then_some(output));
        }
        let lane = self.lane();
        self.served += 1;
        let estimate = cost::stream_estimate(recipe, size);
        let errand = self.settings.pool.run_more(lane, estimate, move || {
            let output = run(&mut encoder, &input, step);
            Slice {
                encoder,
                plain: size,
                output,
            }
        });
        self.state = State::Away { errand, last };
        Ok(None)
    }

    /// Where the next slice waits.
    fn lane(&self) -> Lane {
        if self.served < SHORT_SLICES {
            Lane::Short
        } else {
            Lane::Bulk
        }
    }

    /// How much that is.
    fn slice_bytes(&self) -> usize {
        let slice = match self.lane() {
            Lane::Short => cost::SLICE,
            Lane::Bulk => cost::BULK_SLICE,
        };
        cost::slice_bytes(self.settings.recipe, slice)
    }

    /// Cuts one slice off what was gathered.
    fn slice(&mut self) -> (Vec<Bytes>, usize) {
        let most = self.slice_bytes();
        let (mut input, mut size) = (Vec::new(), 0);
        while size < most
            && let Some(mut chunk) = self.gathered.pop_front()
        {
            let room = most - size;
            if chunk.len() > room {
                self.gathered.push_front(chunk.split_off(room));
            }
            size += chunk.len();
            input.push(chunk);
        }
        self.gathered_size -= size;
        (input, size)
    }
}

/// Encodes the pieces of one slice; the step holds after the last.
fn run(encoder: &mut Encoder, input: &[Bytes], step: Step) -> Result<Bytes, CodecError> {
    let mut output = BytesMut::new();
    let Some((last, before)) = input.split_last() else {
        encoder.encode(&[], step, &mut output)?;
        return Ok(output.freeze());
    };
    for piece in before {
        encoder.encode(piece, Step::Continue, &mut output)?;
    }
    encoder.encode(last, step, &mut output)?;
    Ok(output.freeze())
}

#[cfg(test)]
mod tests;
