//! Frames into bytes.

use bytes::{BufMut as _, BytesMut};

use super::head::{Head, Opcode};
use super::{Close, MOST_CONTROL, Mask, Message};

/// A frame that is no part of a message.
#[derive(Debug, Clone, Copy)]
pub enum Control<'a> {
    /// Cut to 125 bytes, which a relayed one never has more of.
    Ping(&'a [u8]),
    /// As a ping.
    Pong(&'a [u8]),
    /// With a code and a reason, or with neither.
    Close(Option<&'a Close>),
}

impl Control<'_> {
    /// Appends the frame; `mask` towards a server, none towards a client.
    pub fn write(self, mask: Option<Mask>, output: &mut BytesMut) {
        let (opcode, length) = match self {
            Self::Ping(payload) => (Opcode::Ping, payload.len().min(MOST_CONTROL)),
            Self::Pong(payload) => (Opcode::Pong, payload.len().min(MOST_CONTROL)),
            Self::Close(close) => (Opcode::Close, close.map_or(0, Close::len)),
        };
        let head = Head {
            last: true,
            deflated: false,
            opcode,
            mask,
            length: length as u64,
        };
        head.write(output);
        let start = output.len();
        match self {
            Self::Ping(payload) | Self::Pong(payload) => output.put_slice(&payload[..length]),
            Self::Close(Some(close)) => close.write(output),
            Self::Close(None) => {}
        }
        if let Some(mut mask) = mask {
            mask.apply(&mut output[start..]);
        }
    }
}

/// The messages of one direction: which frame opens one and which goes on with it.
#[derive(Debug, Default)]
pub struct Writer {
    inside: bool,
}

impl Writer {
    /// Appends the head of a data frame whose payload of `length` bytes the caller sends after it,
    /// masked by `mask`. Of `message` only the first frame speaks.
    pub fn head(
        &mut self,
        message: Message,
        last: bool,
        length: u64,
        mask: Option<Mask>,
        output: &mut BytesMut,
    ) {
        let opens = !self.inside;
        self.inside = !last;
        let head = Head {
            last,
            deflated: message.deflated && opens,
            opcode: if opens {
                Opcode::Data(message.kind)
            } else {
                Opcode::Continuation
            },
            mask,
            length,
        };
        head.write(output);
    }

    /// Appends a data frame.
    pub fn frame(
        &mut self,
        message: Message,
        last: bool,
        payload: &[u8],
        mask: Option<Mask>,
        output: &mut BytesMut,
    ) {
        self.head(message, last, payload.len() as u64, mask, output);
        let start = output.len();
        output.put_slice(payload);
        if let Some(mut mask) = mask {
            mask.apply(&mut output[start..]);
        }
    }

    /// A message was opened and not ended.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.inside
    }
}
