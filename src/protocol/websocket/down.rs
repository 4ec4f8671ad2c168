//! From the app to the client: messages are compressed, and leave as they come.
//!
//! What is in hand of a message goes out when the message ends, when a slice is full, or when the
//! app pauses behind a fragment; each time as one frame. So a message in hand is one frame with the
//! choice to leave it plain, and a long one is never collected. A piece of work is away at a time, and
//! nothing of a message, nor the Close behind it, passes one that is.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::House;
use super::fanout::{self, Key};
use super::side::MARK;
use super::tally::Tally;
use crate::codec::message::Deflater;
use crate::codec::{CodecError, Coding, Recipe, cost};
use crate::config::settings::WebSocket;
use crate::frame::extension::Agreed;
use crate::frame::websocket::{Event, Fault, Message, Parser, Piece, Sender, Writer};
use crate::policy::{BackOff, Form, Told, should_compress};
use crate::work::{CpuClock, Errand, Lane, Lost};

/// A frame is made of so many bytes, where a message has more.
pub(super) const SLICE: usize = 32 << 10;

/// In the middle of a frame this much is worth a frame of its own while its rest is awaited.
pub(super) const LEAST: usize = 16 << 10;

/// The way to the client.
pub(super) struct Down {
    parser: Parser,
    writer: Writer,
    /// Of the message that runs, not sent yet.
    hand: BytesMut,
    /// A frame of the app's ends with what is in hand.
    border: bool,
    message: Option<Running>,
    squeezer: Option<Box<Squeezer>>,
    away: Option<Errand<Squeezed>>,
    /// Waits for what is away.
    held: Option<Event>,
    /// The client hears no more messages.
    stopped: bool,
    /// Without the extension: bytes of a frame that are still to come, its head was sent.
    left: u64,
    pub(super) tally: Tally,
}

/// A message that has begun.
#[derive(Clone, Copy)]
struct Running {
    message: Message,
    /// Its length, where it came in one frame.
    length: Option<u64>,
    /// The first bytes were sent, or are away to be coded.
    decided: bool,
    plain: u64,
    coded: u64,
}

/// What compresses.
struct Squeezer {
    /// Absent while it is away.
    deflater: Option<Deflater>,
    bits: u8,
    takeover: bool,
    policy: WebSocket,
    back_off: BackOff,
    house: Arc<House>,
}

/// A piece of work that was done.
struct Squeezed {
    deflater: Deflater,
    plain: Bytes,
    last: bool,
    /// What to send compressed; `None`: it did not shrink.
    coded: Result<Option<Bytes>, CodecError>,
    /// An encoder ran.
    ran: bool,
}

/// Nothing can be sent on this connection any more.
#[derive(Debug, Clone, Copy, thiserror::Error)]
pub(super) enum Broken {
    #[error(transparent)]
    Codec(#[from] CodecError),
    #[error(transparent)]
    Lost(#[from] Lost),
}

impl Down {
    pub(super) fn new(
        agreed: Option<Agreed>,
        policy: &WebSocket,
        house: &Arc<House>,
        tally: Tally,
    ) -> Self {
        let squeezer = agreed.map(|agreed| {
            let (bits, takeover) = (agreed.server_bits, agreed.server_takeover);
            Box::new(Squeezer {
                deflater: Some(Deflater::new(policy.level, bits, takeover)),
                bits,
                takeover,
                policy: policy.clone(),
                back_off: BackOff::default(),
                house: Arc::clone(house),
            })
        });
        Self {
            parser: Parser::new(Sender::Server, false, u64::MAX),
            writer: Writer::default(),
            hand: BytesMut::new(),
            border: true,
            message: None,
            squeezer,
            away: None,
            held: None,
            stopped: false,
            left: 0,
            tally,
        }
    }

    /// The next event that is not a part of a message; those become frames in `output`. `None`: bytes
    /// are needed, or room, or what is away.
    pub(super) fn next(
        &mut self,
        input: &mut BytesMut,
        output: &mut BytesMut,
    ) -> Result<Option<Event>, DownFault> {
        while output.len() < MARK {
            let event = match self.held.take() {
                Some(event) => Some(event),
                None => self.parser.next(input).map_err(DownFault::App)?,
            };
            match event {
                Some(event @ (Event::Data(_) | Event::Close(_))) if self.away.is_some() => {
                    self.held = Some(detached(event));
                    return Ok(None);
                }
                Some(Event::Data(piece)) => self.piece(piece, output)?,
                event => return Ok(event),
            }
        }
        Ok(None)
    }

    /// More bytes of the app's are of use.
    pub(super) fn is_hungry(&self) -> bool {
        self.held.is_none()
    }

    /// Nothing more is there at the moment.
    pub(super) fn pause(&mut self, output: &mut BytesMut) -> Result<(), Broken> {
        let due = !self.hand.is_empty() && (self.border || self.hand.len() >= LEAST);
        if !due || self.away.is_some() {
            return Ok(());
        }
        let hand = std::mem::take(&mut self.hand);
        self.send(hand, false, output)
    }

    /// Looks after what is away. True: it came back.
    pub(super) fn poll_away(
        &mut self,
        cx: &mut Context<'_>,
        output: &mut BytesMut,
    ) -> Result<bool, Broken> {
        let Some(errand) = &mut self.away else {
            return Ok(false);
        };
        let Poll::Ready(done) = std::pin::Pin::new(errand).poll(cx) else {
            return Ok(false);
        };
        self.away = None;
        let done = done?;
        self.squeezed(done.value, done.cpu, output)?;
        Ok(true)
    }

    /// Within a message towards the client.
    pub(super) fn is_inside(&self) -> bool {
        self.message.is_some() || self.away.is_some() || self.writer.is_inside() || self.left > 0
    }

    /// Within a frame: nothing else can be sent.
    pub(super) const fn is_within_frame(&self) -> bool {
        self.left > 0
    }

    /// Drops what was not sent, and all messages that follow.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
        self.hand = BytesMut::new();
        self.away = None;
        self.message = None;
        self.squeezer = None;
    }

    fn piece(&mut self, piece: Piece, output: &mut BytesMut) -> Result<(), Broken> {
        if self.stopped {
            return Ok(());
        }
        if self.squeezer.is_none() {
            self.pass(&piece, output);
            return Ok(());
        }
        let (ends, length) = (piece.ends(), piece.message_length());
        self.border = piece.frame_left == 0;
        self.message.get_or_insert(Running {
            message: piece.message,
            length,
            decided: false,
            plain: 0,
            coded: 0,
        });
        let payload = if self.hand.is_empty() && (ends || piece.payload.len() >= SLICE) {
            piece.payload
        } else {
            self.hand.extend_from_slice(&piece.payload);
            if !ends && self.hand.len() < SLICE {
                return Ok(());
            }
            std::mem::take(&mut self.hand)
        };
        self.send(payload, ends, output)
    }

    /// Without the extension frames pass as they are.
    fn pass(&mut self, piece: &Piece, output: &mut BytesMut) {
        let size = piece.payload.len();
        if self.left == 0 {
            let length = size as u64 + piece.frame_left;
            self.writer
                .head(piece.message, piece.last_frame, length, None, output);
        }
        output.extend_from_slice(&piece.payload);
        self.left = piece.frame_left;
        self.tally.bytes(size, size);
        if piece.ends() {
            self.tally.message(false);
        }
    }

    /// Sends what is in hand, in the form that the message has or gets now.
    fn send(&mut self, payload: BytesMut, last: bool, output: &mut BytesMut) -> Result<(), Broken> {
        let Some(mut running) = self.message else {
            return Ok(());
        };
        let whole = last && !running.decided;
        if !running.decided {
            running.length = if last {
                Some(payload.len() as u64)
            } else {
                running.length
            };
            running.message.deflated = self
                .squeezer
                .as_mut()
                .is_some_and(|squeezer| squeezer.wants(&running, &payload));
            running.decided = true;
        }
        running.plain += payload.len() as u64;
        self.message = Some(running);
        let squeezer = self.squeezer.as_mut().filter(|_| running.message.deflated);
        let Some(squeezer) = squeezer else {
            self.frame(&payload, payload.len(), last, output);
            return Ok(());
        };
        let Some(deflater) = squeezer.deflater.take() else {
            return Ok(());
        };
        let job = squeezer.job(deflater, payload.freeze(), whole, last);
        match squeezer.away(job.plain.len()) {
            None => {
                let clock = CpuClock::start();
                let squeezed = job.run();
                self.squeezed(squeezed, clock.elapsed(), output)
            }
            Some(cost) => {
                let pool = &squeezer.house.pool;
                self.away = Some(pool.run_more(Lane::Short, cost, move || job.run()));
                Ok(())
            }
        }
    }

    /// Sends what was compressed.
    fn squeezed(
        &mut self,
        done: Squeezed,
        cpu: Duration,
        output: &mut BytesMut,
    ) -> Result<(), Broken> {
        let (Some(squeezer), Some(running)) = (&mut self.squeezer, &mut self.message) else {
            return Ok(());
        };
        squeezer.deflater = Some(done.deflater);
        let coded = done.coded?;
        let plain = done.plain.len();
        let size = coded.as_ref().map_or(plain, Bytes::len);
        running.message.deflated = coded.is_some();
        if done.ran {
            if running.coded == 0 {
                self.tally.encodes();
            }
            self.tally.encoded(plain, size, cpu);
        }
        running.coded += size as u64;
        if done.last {
            squeezer
                .back_off
                .learn(running.message.kind, running.plain, running.coded);
        }
        let payload = coded.unwrap_or(done.plain);
        self.frame(&payload, plain, done.last, output);
        Ok(())
    }

    fn frame(&mut self, payload: &[u8], plain: usize, last: bool, output: &mut BytesMut) {
        let Some(running) = self.message else { return };
        self.writer
            .frame(running.message, last, payload, None, output);
        self.tally.bytes(plain, payload.len());
        if last {
            self.tally.message(running.message.deflated);
            self.message = None;
        }
    }
}

impl Squeezer {
    fn wants(&mut self, running: &Running, beginning: &[u8]) -> bool {
        // What would wait too long goes out plain.
        if self.house.pool.pressure().expected_wait > self.house.max_wait
            && self.away(beginning.len()).is_some()
        {
            return false;
        }
        let told = Told {
            kind: running.message.kind,
            length: running.length,
            beginning,
        };
        should_compress(told, &self.policy, self.takeover, &mut self.back_off) == Form::Deflated
    }

    /// What so much costs, where it is worth the way to another thread.
    fn away(&self, bytes: usize) -> Option<Duration> {
        let recipe = Recipe::new(Coding::Deflate, self.policy.level).streaming(None);
        let inline = bytes <= self.house.inline && cost::is_inline(recipe, bytes);
        (!inline).then(|| cost::stream_estimate(recipe, bytes))
    }

    fn job(&self, deflater: Deflater, plain: Bytes, whole: bool, last: bool) -> Job {
        let shared = whole && !self.takeover && plain.len() <= fanout::LARGEST;
        let key = shared.then(|| Key {
            level: self.policy.level,
            bits: self.bits,
            plain: plain.clone(),
        });
        Job {
            deflater,
            plain,
            whole,
            last,
            shared: key.map(|key| (Arc::clone(&self.house), key)),
        }
    }
}

/// A piece of work.
struct Job {
    deflater: Deflater,
    plain: Bytes,
    /// The message in one piece.
    whole: bool,
    last: bool,
    shared: Option<(Arc<House>, Key)>,
}

impl Job {
    fn run(mut self) -> Squeezed {
        let (coded, ran) = match self.shared.take() {
            Some((house, key)) => {
                let mut fault = None;
                let (form, made) = house.fanout.form(&key, || {
                    self.code().unwrap_or_else(|error| {
                        fault = Some(error);
                        None
                    })
                });
                (fault.map_or(Ok(form), Err), made)
            }
            None => (self.code(), true),
        };
        Squeezed {
            deflater: self.deflater,
            plain: self.plain,
            last: self.last,
            coded,
            ran,
        }
    }

    fn code(&mut self) -> Result<Option<Bytes>, CodecError> {
        let mut coded = BytesMut::new();
        let shrank = if self.whole {
            self.deflater.whole(&self.plain, &mut coded)?
        } else {
            self.deflater.part(&self.plain, self.last, &mut coded)?;
            true
        };
        Ok(shrank.then(|| coded.freeze()))
    }
}

/// Why the way to the client ends.
#[derive(Debug)]
pub(super) enum DownFault {
    /// The app broke a rule.
    App(Fault),
    /// We failed.
    Us(Broken),
}

impl From<Broken> for DownFault {
    fn from(broken: Broken) -> Self {
        Self::Us(broken)
    }
}

/// An event that may wait without holding the buffer that it was read into.
pub(super) fn detached(event: Event) -> Event {
    match event {
        Event::Data(piece) => Event::Data(Piece {
            payload: BytesMut::from(&piece.payload[..]),
            ..piece
        }),
        other => other,
    }
}
