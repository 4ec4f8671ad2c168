//! From the client to the app: messages are inflated, checked, and leave as they come.
//!
//! What the client sends is held to every rule before the app sees it. Output is counted while it is
//! inflated, a slice at a time, and no slice is made while the app does not take the ones before it.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf as _, BytesMut};

use super::House;
use super::down::{LEAST, SLICE, detached};
use super::random;
use super::side::MARK;
use super::tally::Tally;
use crate::codec::message::{INFLATING, Inflated, Inflater};
use crate::codec::{Coding, DecodeError, cost};
use crate::config::settings::WebSocket;
use crate::frame::extension::Agreed;
use crate::frame::websocket::{Event, Fault, Kind, Message, Parser, Piece, Sender, Utf8, Writer};
use crate::work::{CpuClock, Errand, Lane, Lost};

/// The way to the app.
pub(super) struct Up {
    parser: Parser,
    writer: Writer,
    /// Of the message that runs, plain and checked, not sent yet.
    hand: BytesMut,
    /// A frame of the client's ends with what is in hand.
    border: bool,
    message: Option<Message>,
    text: Utf8,
    swell: Option<Box<Swell>>,
    /// Waits for what is inflated.
    held: Option<Event>,
    /// The app hears no more messages.
    stopped: bool,
    pub(super) tally: Tally,
}

/// What inflates.
struct Swell {
    /// Absent while it is away.
    inflater: Option<Inflater>,
    /// Compressed bytes that wait.
    coded: BytesMut,
    /// They end the message.
    last: bool,
    /// It is time to inflate them.
    due: bool,
    /// Bytes that came out of the message that runs.
    made: usize,
    away: Option<Errand<Swollen>>,
    house: Arc<House>,
}

/// A piece of work.
struct Swollen {
    inflater: Inflater,
    coded: BytesMut,
    last: bool,
    plain: BytesMut,
    /// Bytes of `plain` that were there before.
    before: usize,
    did: Result<Inflated, DecodeError>,
}

/// Why the way to the app ends.
#[derive(Debug)]
pub(super) enum UpFault {
    /// The client broke a rule.
    Client(Fault),
    /// We failed.
    Us(Lost),
}

impl From<Fault> for UpFault {
    fn from(fault: Fault) -> Self {
        Self::Client(fault)
    }
}

impl Up {
    pub(super) fn new(
        agreed: Option<Agreed>,
        policy: &WebSocket,
        house: &Arc<House>,
        tally: Tally,
    ) -> Self {
        let most = policy.max_message;
        let swell = agreed.map(|agreed| {
            let (bits, takeover) = (agreed.client_bits, agreed.client_takeover);
            Box::new(Swell {
                inflater: Some(Inflater::new(bits, takeover, most)),
                coded: BytesMut::new(),
                last: false,
                due: false,
                made: 0,
                away: None,
                house: Arc::clone(house),
            })
        });
        Self {
            parser: Parser::new(Sender::Client, swell.is_some(), most),
            writer: Writer::default(),
            hand: BytesMut::new(),
            border: true,
            message: None,
            text: Utf8::default(),
            swell,
            held: None,
            stopped: false,
            tally,
        }
    }

    /// The next event that is not a part of a message; those become frames in `output`. `None`: bytes
    /// are needed, or room, or what is away.
    pub(super) fn next(
        &mut self,
        input: &mut BytesMut,
        output: &mut BytesMut,
    ) -> Result<Option<Event>, UpFault> {
        while output.len() < MARK {
            if self.inflate_here(output)? {
                continue;
            }
            let event = match self.held.take() {
                Some(event) => Some(event),
                None => self.parser.next(input)?,
            };
            match event {
                Some(event @ (Event::Data(_) | Event::Close(_))) if !self.is_hungry() => {
                    self.held = Some(detached(event));
                    return Ok(None);
                }
                Some(Event::Data(piece)) => self.piece(&piece, output)?,
                event => return Ok(event),
            }
        }
        Ok(None)
    }

    /// More bytes of the client's are of use.
    pub(super) fn is_hungry(&self) -> bool {
        self.held.is_none() && self.swell.as_ref().is_none_or(|swell| !swell.due)
    }

    /// Nothing more is there at the moment.
    pub(super) fn pause(&mut self, output: &mut BytesMut) -> Result<(), UpFault> {
        if let Some(swell) = &mut self.swell
            && !swell.coded.is_empty()
            && self.border
        {
            swell.due = true;
            self.inflate_here(output)?;
        }
        if !self.hand.is_empty() && (self.border || self.hand.len() >= LEAST) {
            self.send(false, output);
        }
        Ok(())
    }

    /// Inflates a slice of what waits, or gives it to the pool. True: it was done here.
    fn inflate_here(&mut self, output: &mut BytesMut) -> Result<bool, UpFault> {
        let Some(swell) = self.swell.as_mut().filter(|swell| swell.due) else {
            return Ok(false);
        };
        let Some(work) = swell.work(&mut self.hand) else {
            return Ok(false);
        };
        let clock = CpuClock::start();
        let swollen = work.run();
        self.tally.decoded(clock.elapsed());
        self.swollen(swollen, output)?;
        Ok(true)
    }

    /// Looks after what is away. True: it came back.
    pub(super) fn poll_away(
        &mut self,
        cx: &mut Context<'_>,
        output: &mut BytesMut,
    ) -> Result<bool, UpFault> {
        let Some(errand) = self.swell.as_mut().and_then(|swell| swell.away.as_mut()) else {
            return Ok(false);
        };
        let Poll::Ready(done) = std::pin::Pin::new(errand).poll(cx) else {
            return Ok(false);
        };
        if let Some(swell) = &mut self.swell {
            swell.away = None;
        }
        let done = done.map_err(UpFault::Us)?;
        self.tally.decoded(done.cpu);
        self.swollen(done.value, output)?;
        Ok(true)
    }

    /// Bytes that the message that runs holds beside what was reserved.
    pub(super) fn held(&self) -> u64 {
        let swell = self.swell.as_ref();
        let runs = swell.is_some_and(|swell| swell.made > 0 || swell.away.is_some());
        if runs { INFLATING as u64 } else { 0 }
    }

    /// Drops what was not sent, and all messages that follow.
    pub(super) fn stop(&mut self) {
        self.stopped = true;
        self.hand = BytesMut::new();
        self.swell = None;
        self.message = None;
    }

    fn piece(&mut self, piece: &Piece, output: &mut BytesMut) -> Result<(), Fault> {
        if self.stopped {
            return Ok(());
        }
        let ends = piece.ends();
        self.border = piece.frame_left == 0;
        self.message = Some(piece.message);
        self.tally.bytes(piece.payload.len(), 0);
        if piece.message.deflated {
            if let Some(swell) = &mut self.swell {
                swell.coded.extend_from_slice(&piece.payload);
                swell.last = ends;
                swell.due = ends || swell.coded.len() >= LEAST;
            }
            return Ok(());
        }
        self.check(piece.message, &piece.payload, ends)?;
        if ends && self.hand.is_empty() {
            self.frame(&piece.payload, true, output);
            return Ok(());
        }
        self.hand.extend_from_slice(&piece.payload);
        if ends || self.hand.len() >= SLICE {
            self.send(ends, output);
        }
        Ok(())
    }

    fn swollen(&mut self, swollen: Swollen, output: &mut BytesMut) -> Result<(), Fault> {
        let (Some(swell), Some(message)) = (&mut self.swell, self.message) else {
            return Ok(());
        };
        let did = swollen.did.map_err(|error| match error {
            DecodeError::TooLarge => Fault::TooLong,
            _ => Fault::NotDeflate,
        })?;
        swell.inflater = Some(swollen.inflater);
        swell.coded = swollen.coded;
        swell.coded.advance(did.consumed);
        if swell.coded.is_empty() {
            swell.coded = BytesMut::new();
        }
        swell.due = !did.done;
        let ends = did.done && swollen.last;
        let fresh = &swollen.plain[swollen.before..];
        swell.made = if ends {
            0
        } else {
            (swell.made + fresh.len()).max(1)
        };
        self.check(message, fresh, ends)?;
        self.hand = swollen.plain;
        if ends || self.hand.len() >= SLICE {
            self.send(ends, output);
        }
        Ok(())
    }

    fn check(&mut self, message: Message, bytes: &[u8], ends: bool) -> Result<(), Fault> {
        if message.kind == Kind::Text {
            self.text.piece(bytes)?;
            if ends {
                self.text.end()?;
            }
        }
        Ok(())
    }

    fn send(&mut self, last: bool, output: &mut BytesMut) {
        let hand = std::mem::take(&mut self.hand);
        self.frame(&hand, last, output);
    }

    fn frame(&mut self, payload: &[u8], last: bool, output: &mut BytesMut) {
        let Some(message) = self.message else { return };
        let plain = Message {
            deflated: false,
            ..message
        };
        let mask = Some(random::mask());
        self.writer.frame(plain, last, payload, mask, output);
        self.tally.bytes(0, payload.len());
        if last {
            self.tally.message(message.deflated);
            self.message = None;
        }
    }
}

impl Swell {
    /// The work to do here; `None`: it went to the pool, or is there already.
    fn work(&mut self, hand: &mut BytesMut) -> Option<Work> {
        let work = Work {
            inflater: self.inflater.take()?,
            coded: std::mem::take(&mut self.coded),
            last: self.last,
            plain: std::mem::take(hand),
        };
        let size = work.coded.len();
        let inline = self.made < SLICE && size <= self.house.inline;
        if inline && cost::is_inline_decode(Coding::Deflate, size) {
            return Some(work);
        }
        let cost = cost::decode_estimate(Coding::Deflate, SLICE).max(Duration::from_micros(1));
        let pool = &self.house.pool;
        self.away = Some(pool.run_more(Lane::Short, cost, move || work.run()));
        None
    }
}

/// A slice to inflate.
struct Work {
    inflater: Inflater,
    coded: BytesMut,
    last: bool,
    /// What is in hand; more is added to it.
    plain: BytesMut,
}

impl Work {
    fn run(mut self) -> Swollen {
        let before = self.plain.len();
        let did = self
            .inflater
            .inflate(&self.coded, self.last, SLICE, &mut self.plain);
        Swollen {
            inflater: self.inflater,
            coded: self.coded,
            last: self.last,
            plain: self.plain,
            before,
            did,
        }
    }
}
