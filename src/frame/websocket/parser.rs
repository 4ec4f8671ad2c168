//! Frames out of bytes.

use bytes::{Buf as _, Bytes, BytesMut};

use super::head::{Head, Opcode};
use super::{Close, Fault, Kind, Mask, Message};

/// Who sends what is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// It masks.
    Client,
    /// It does not.
    Server,
}

/// What came next.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Some of a message.
    Data(Piece),
    /// To be relayed at once, also within a message.
    Ping(Bytes),
    /// As a ping.
    Pong(Bytes),
    /// The last event: what follows is dropped.
    Close(Option<Close>),
}

/// Bytes of a message as they came: of one frame, and of no more than one read.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    /// What it is a part of.
    pub message: Message,
    /// The first piece of its message.
    pub opens: bool,
    /// Its frame is the last of the message.
    pub last_frame: bool,
    /// Bytes of its frame that have not come yet.
    pub frame_left: u64,
    /// Unmasked; empty where a frame is.
    pub payload: BytesMut,
}

impl Piece {
    /// Nothing of the message follows.
    #[must_use]
    pub fn ends(&self) -> bool {
        self.last_frame && self.frame_left == 0
    }

    /// Bytes of the message on the wire; known from the first piece of a message in one frame.
    #[must_use]
    pub fn message_length(&self) -> Option<u64> {
        let known = self.opens && self.last_frame;
        known.then_some(self.payload.len() as u64 + self.frame_left)
    }
}

/// One direction of a connection.
#[derive(Debug)]
pub struct Parser {
    sender: Sender,
    deflate: bool,
    limit: u64,
    message: Option<Open>,
    state: State,
}

/// A message that has begun and not ended.
#[derive(Debug, Clone, Copy)]
struct Open {
    message: Message,
    /// Bytes of all its frames, those that are announced included.
    announced: u64,
}

#[derive(Debug)]
enum State {
    /// A head comes next.
    Between,
    /// In the payload of a data frame.
    Within(Frame),
    /// Closed, or failed.
    Over,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    message: Message,
    mask: Option<Mask>,
    /// Bytes of it to come.
    left: u64,
    opens: bool,
    last: bool,
}

impl Parser {
    /// `deflate`: permessage-deflate is agreed. `limit`: bytes that a message may have on the wire;
    /// compressed ones, which may be a little longer than what they stand for, an eighth and 1 KiB
    /// more. What they inflate to is limited by who inflates.
    #[must_use]
    pub const fn new(sender: Sender, deflate: bool, limit: u64) -> Self {
        Self {
            sender,
            deflate,
            limit,
            message: None,
            state: State::Between,
        }
    }

    /// Takes the next event from the front of `input`; `None`: more bytes are needed, and all that
    /// is left in `input` is wanted again. It never wants more than a head and a control frame.
    ///
    /// # Errors
    /// A [`Fault`]; whatever follows is dropped.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<Event>, Fault> {
        let event = match &self.state {
            State::Over => {
                input.clear();
                Ok(None)
            }
            State::Within(frame) if frame.left > 0 && input.is_empty() => Ok(None),
            State::Within(frame) => Ok(Some(self.piece(*frame, input))),
            State::Between => self.frame(input),
        };
        if matches!(event, Err(_) | Ok(Some(Event::Close(_)))) {
            self.state = State::Over;
            self.message = None;
            input.clear();
        }
        event
    }

    /// Between two messages: none has begun.
    #[must_use]
    pub fn is_between_messages(&self) -> bool {
        self.message.is_none() && !matches!(self.state, State::Within(_))
    }

    fn frame(&mut self, input: &mut BytesMut) -> Result<Option<Event>, Fault> {
        let Some((head, taken)) = Head::parse(input)? else {
            return Ok(None);
        };
        if head.deflated && !self.deflate {
            return Err(Fault::ReservedBit);
        }
        match (self.sender, head.mask) {
            (Sender::Client, None) => return Err(Fault::Unmasked),
            (Sender::Server, Some(_)) => return Err(Fault::Masked),
            _ => {}
        }
        let opens = match head.opcode {
            Opcode::Data(kind) => {
                self.open(kind, head.deflated)?;
                true
            }
            Opcode::Continuation => false,
            opcode => return control(opcode, head, taken, input),
        };
        let message = self.announce(&head)?;
        input.advance(taken);
        let frame = Frame {
            message,
            mask: head.mask,
            left: head.length,
            opens,
            last: head.last,
        };
        if frame.left > 0 && input.is_empty() {
            self.state = State::Within(frame);
            return Ok(None);
        }
        Ok(Some(self.piece(frame, input)))
    }

    fn open(&mut self, kind: Kind, deflated: bool) -> Result<(), Fault> {
        if self.message.is_some() {
            return Err(Fault::InsideMessage);
        }
        self.message = Some(Open {
            message: Message { kind, deflated },
            announced: 0,
        });
        Ok(())
    }

    /// Counts a frame to its message.
    fn announce(&mut self, head: &Head) -> Result<Message, Fault> {
        let open = self.message.as_mut().ok_or(Fault::NothingToContinue)?;
        if head.deflated && head.opcode == Opcode::Continuation {
            return Err(Fault::CompressedContinuation);
        }
        open.announced = open.announced.saturating_add(head.length);
        let slack = if open.message.deflated {
            self.limit / 8 + 1024
        } else {
            0
        };
        if open.announced > self.limit.saturating_add(slack) {
            return Err(Fault::TooLong);
        }
        Ok(open.message)
    }

    /// What of the frame is there.
    fn piece(&mut self, mut frame: Frame, input: &mut BytesMut) -> Event {
        let there = usize::try_from(frame.left).map_or(input.len(), |left| left.min(input.len()));
        let mut payload = input.split_to(there);
        if let Some(mask) = &mut frame.mask {
            mask.apply(&mut payload);
        }
        frame.left -= there as u64;
        let piece = Piece {
            message: frame.message,
            opens: frame.opens,
            last_frame: frame.last,
            frame_left: frame.left,
            payload,
        };
        frame.opens = false;
        if piece.ends() {
            self.message = None;
        }
        self.state = if frame.left > 0 {
            State::Within(frame)
        } else {
            State::Between
        };
        Event::Data(piece)
    }
}

/// A control frame, once it is whole.
fn control(
    opcode: Opcode,
    head: Head,
    taken: usize,
    input: &mut BytesMut,
) -> Result<Option<Event>, Fault> {
    let end = taken + usize::try_from(head.length).unwrap_or(usize::MAX - taken);
    if input.len() < end {
        return Ok(None);
    }
    // Copied: it may wait for its turn, and must not keep the buffer of a whole read.
    let mut payload = BytesMut::from(&input[taken..end]);
    input.advance(end);
    if let Some(mut mask) = head.mask {
        mask.apply(&mut payload);
    }
    Ok(Some(match opcode {
        Opcode::Ping => Event::Ping(payload.freeze()),
        Opcode::Pong => Event::Pong(payload.freeze()),
        _ => Event::Close(Close::parse(&payload)?),
    }))
}
