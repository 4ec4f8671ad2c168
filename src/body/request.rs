//! What a client sends, on its way to the app: counted, timed, and inflated where the route says so.
//!
//! Inflating is codec work: it is done on a worker in bounded pieces, and where it stands only when
//! a piece is cheaper than a hand-over.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep};

use super::{Arriving, BoxError};
use crate::codec::{Coding, DecodeError, Decoder, cost};
use crate::work::{Errand, Lane, Pool};

/// Inflated bytes a slice brings at most.
const SLICE: usize = 64 * 1024;

/// A frame of the body, on its way to the app.
type Polled = Poll<Option<Result<Frame<Bytes>, RequestFault>>>;

/// The bounds of one request body.
#[derive(Debug, Clone, Copy)]
pub struct RequestLimits {
    /// Bytes as they arrive.
    pub bytes: u64,
    /// Between two reads; absent: any.
    pub pause: Option<Duration>,
}

/// Why a request body did not get through; the client's doing.
#[derive(Debug, thiserror::Error)]
pub enum RequestFault {
    /// 413.
    #[error("the body is larger than {0} bytes")]
    TooLarge(u64),
    /// 408.
    #[error("the body paused for longer than {0:?}")]
    Slow(Duration),
    /// 400, or 413 past `compress.max_inflated`.
    #[error("the body does not decompress")]
    Decode(#[from] DecodeError),
    /// 400, or nobody is left to be told.
    #[error("the body could not be read")]
    Read(#[source] BoxError),
    /// 503.
    #[error("no worker could take the body")]
    Lost(#[source] BoxError),
}

/// A request body within its limits.
pub struct RequestBody {
    incoming: Arriving,
    limits: RequestLimits,
    seen: u64,
    pause: Option<Pin<Box<Sleep>>>,
    pausing: bool,
    inflate: Option<Box<Inflate>>,
    /// Keeps the connection's state for as long as the body is read.
    _part: Option<Box<dyn Send + Sync>>,
}

struct Inflate {
    coding: Coding,
    decoder: Option<Decoder>,
    errand: Option<Errand<Inflated>>,
    input: Bytes,
    ended: bool,
    done: bool,
    inline: usize,
    pool: Pool,
}

/// What a worker brings back: the decoder, what is left of the input, the output.
struct Inflated {
    decoder: Decoder,
    input: Bytes,
    output: Result<Bytes, DecodeError>,
}

impl RequestBody {
    /// Passes `incoming` on within `limits`.
    #[must_use]
    pub fn new(
        incoming: Arriving,
        limits: RequestLimits,
        part: Option<Box<dyn Send + Sync>>,
    ) -> Self {
        Self {
            incoming,
            limits,
            seen: 0,
            pause: None,
            pausing: false,
            inflate: None,
            _part: part,
        }
    }

    /// The app gets it plain, and no more than `most` bytes of it.
    #[must_use]
    pub fn inflated(mut self, coding: Coding, most: u64, inline: usize, pool: Pool) -> Self {
        self.inflate = Some(Box::new(Inflate {
            coding,
            decoder: Some(Decoder::new(coding, most)),
            errand: None,
            input: Bytes::new(),
            ended: false,
            done: false,
            inline,
            pool,
        }));
        self
    }

    pub(super) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = match self.inflate.take() {
            None => self.poll_raw(cx),
            Some(mut inflate) => {
                let polled = inflate.poll_frame(self, cx);
                self.inflate = Some(inflate);
                polled
            }
        };
        polled.map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    pub(super) fn is_end_stream(&self) -> bool {
        match &self.inflate {
            None => self.incoming.is_end_stream(),
            Some(inflate) => inflate.done,
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match &self.inflate {
            None => self.incoming.size_hint(),
            Some(_) => SizeHint::default(),
        }
    }

    /// The next frame as it arrives.
    fn poll_raw(&mut self, cx: &mut Context<'_>) -> Polled {
        let Poll::Ready(polled) = self.incoming.poll_frame(cx) else {
            let limit = ready!(self.poll_pause(cx));
            return Poll::Ready(Some(Err(RequestFault::Slow(limit))));
        };
        self.pausing = false;
        Poll::Ready(match polled {
            None => None,
            Some(Err(error)) => Some(Err(RequestFault::Read(error))),
            Some(Ok(frame)) => {
                self.seen += frame.data_ref().map_or(0, |data| data.len() as u64);
                if self.seen > self.limits.bytes {
                    Some(Err(RequestFault::TooLarge(self.limits.bytes)))
                } else {
                    Some(Ok(frame))
                }
            }
        })
    }

    /// Ready once nothing came for too long.
    fn poll_pause(&mut self, cx: &mut Context<'_>) -> Poll<Duration> {
        let Some(limit) = self.limits.pause else {
            return Poll::Pending;
        };
        let pause = self
            .pause
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        if !self.pausing {
            self.pausing = true;
            pause.as_mut().reset(Instant::now() + limit);
        }
        pause.as_mut().poll(cx).map(|()| limit)
    }
}

impl Inflate {
    fn poll_frame(&mut self, raw: &mut RequestBody, cx: &mut Context<'_>) -> Polled {
        loop {
            if self.done {
                return Poll::Ready(None);
            }
            if let Some(errand) = &mut self.errand {
                let outcome = ready!(Pin::new(errand).poll(cx));
                self.errand = None;
                let inflated = match outcome {
                    Ok(done) => done.value,
                    Err(lost) => return self.fail(RequestFault::Lost(lost.into())),
                };
                if let Some(ready) = self.took(inflated) {
                    return ready;
                }
                continue;
            }
            if self.input.is_empty() && !self.ended {
                match ready!(raw.poll_raw(cx)) {
                    None => self.ended = true,
                    Some(Err(fault)) => return self.fail(fault),
                    // Trailers of a coded body end it like its last byte does.
                    Some(Ok(frame)) => self.input = frame.into_data().unwrap_or_default(),
                }
                continue;
            }
            let Some(decoder) = self.decoder.take() else {
                return Poll::Ready(None);
            };
            if self.input.is_empty() {
                self.done = true;
                return match decoder.finish() {
                    Ok(()) => Poll::Ready(None),
                    Err(error) => Poll::Ready(Some(Err(error.into()))),
                };
            }
            let input = std::mem::take(&mut self.input);
            if input.len() <= self.inline && cost::is_inline_decode(self.coding, input.len()) {
                let inflated = inflate(decoder, input);
                if let Some(ready) = self.took(inflated) {
                    return ready;
                }
            } else {
                let estimate = cost::decode_estimate(self.coding, SLICE);
                self.errand = Some(
                    self.pool
                        .run_more(Lane::Short, estimate, move || inflate(decoder, input)),
                );
            }
        }
    }

    /// Takes the decoder back; `Some`: something to hand on.
    fn took(&mut self, inflated: Inflated) -> Option<Polled> {
        self.decoder = Some(inflated.decoder);
        self.input = inflated.input;
        match inflated.output {
            Ok(output) if output.is_empty() => None,
            Ok(output) => Some(Poll::Ready(Some(Ok(Frame::data(output))))),
            Err(error) => Some(self.fail(error.into())),
        }
    }

    fn fail(&mut self, fault: RequestFault) -> Polled {
        self.done = true;
        Poll::Ready(Some(Err(fault)))
    }
}

/// One slice of inflating.
fn inflate(mut decoder: Decoder, mut input: Bytes) -> Inflated {
    let mut output = BytesMut::new();
    let result = decoder.decode(&input, &mut output, SLICE).map(|progress| {
        input.advance(progress.consumed);
        output.freeze()
    });
    Inflated {
        decoder,
        input,
        output: result,
    }
}
