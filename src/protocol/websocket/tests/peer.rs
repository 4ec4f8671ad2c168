//! A peer that says what it is given, cut at random, and hears what is said to it.

use bytes::BytesMut;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, split};

use crate::frame::extension::Agreed;
use crate::frame::websocket::{
    Close, CloseCode, Control, Event, Kind, Mask, Message, Parser, Sender, Writer,
};

/// What is said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    Message { kind: Kind, payload: Vec<u8> },
    Ping(Vec<u8>),
    Pong(Vec<u8>),
}

/// Some messages and control frames.
pub(super) fn talk(dice: &mut fastrand::Rng, most: usize) -> Vec<Said> {
    let count = dice.usize(1..14);
    (0..count)
        .map(|_| match dice.u8(..6) {
            0 => Said::Ping(noise(dice, 125)),
            1 => Said::Pong(noise(dice, 125)),
            _ => message(dice, most),
        })
        .collect()
}

fn message(dice: &mut fastrand::Rng, most: usize) -> Said {
    let most = [20, 1_000, 5_000, most][dice.usize(..4)].min(most);
    if dice.bool() {
        let payload = noise(dice, most);
        let kind = Kind::Binary;
        return Said::Message { kind, payload };
    }
    let mut text = String::new();
    let length = dice.usize(..=most);
    while text.len() < length {
        match dice.u8(..4) {
            0 => text.push(dice.char(..)),
            1 => text.push_str("größer "),
            _ => text += &format!(r#"{{"id":{},"state":"open"}},"#, dice.u16(..)),
        }
    }
    Said::Message {
        kind: Kind::Text,
        payload: text.into_bytes(),
    }
}

fn noise(dice: &mut fastrand::Rng, most: usize) -> Vec<u8> {
    let mut noise = vec![0; dice.usize(..=most)];
    dice.fill(&mut noise);
    noise
}

/// One end.
pub(super) struct Peer {
    stream: DuplexStream,
    is_client: bool,
    /// How it compresses, and how often; absent: never.
    deflate: Option<(Compress, bool)>,
    inflate: Option<(Decompress, bool)>,
    dice: fastrand::Rng,
}

#[allow(
    clippy::disallowed_methods,
    reason = "the reference that we are compared with"
)]
impl Peer {
    pub(super) fn client(stream: DuplexStream, agreed: Option<Agreed>, seed: u64) -> Self {
        let deflate = agreed.map(|agreed| {
            let bits = agreed.client_bits.max(9);
            // zlib-rs keeps to 250 bytes at 9 bits, which is what 8 allow.
            let engine = Compress::new_with_window_bits(Compression::new(6), false, bits);
            (engine, agreed.client_takeover)
        });
        let inflate = agreed.map(|agreed| {
            let bits = agreed.server_bits.max(9);
            let engine = Decompress::new_with_window_bits(false, bits);
            (engine, agreed.server_takeover)
        });
        Self {
            stream,
            is_client: true,
            deflate,
            inflate,
            dice: fastrand::Rng::with_seed(seed ^ 1),
        }
    }

    pub(super) fn server(stream: DuplexStream, seed: u64) -> Self {
        Self {
            stream,
            is_client: false,
            deflate: None,
            inflate: None,
            dice: fastrand::Rng::with_seed(seed ^ 2),
        }
    }

    /// Says all this and then Close, and hears the other until its Close.
    pub(super) async fn converse(self, said: Vec<Said>) -> Vec<Said> {
        let (reading, writing) = split(self.stream);
        let sender = if self.is_client {
            Sender::Server
        } else {
            Sender::Client
        };
        let parser = Parser::new(sender, self.inflate.is_some(), u64::MAX);
        let mouth = Mouth {
            writing,
            is_client: self.is_client,
            deflate: self.deflate,
            dice: self.dice,
        };
        let (_mouth, heard) = tokio::join!(mouth.say(said), hear(reading, parser, self.inflate));
        heard
    }
}

struct Mouth {
    writing: WriteHalf<DuplexStream>,
    is_client: bool,
    deflate: Option<(Compress, bool)>,
    dice: fastrand::Rng,
}

impl Mouth {
    async fn say(mut self, said: Vec<Said>) -> Self {
        let mut bytes = BytesMut::new();
        let mut writer = Writer::default();
        for one in &said {
            match one {
                Said::Ping(payload) => Control::Ping(payload).write(self.mask(), &mut bytes),
                Said::Pong(payload) => Control::Pong(payload).write(self.mask(), &mut bytes),
                Said::Message { kind, payload } => {
                    let deflated = self.deflate.is_some() && self.dice.u8(..4) > 0;
                    let coded = if deflated {
                        self.deflated(payload)
                    } else {
                        payload.clone()
                    };
                    let message = Message {
                        kind: *kind,
                        deflated,
                    };
                    self.fragments(message, &coded, &mut writer, &mut bytes);
                }
            }
            if self.dice.bool() {
                self.write(&mut bytes).await;
            }
        }
        let close = Close::new(CloseCode::NORMAL, "all was said");
        Control::Close(Some(&close)).write(self.mask(), &mut bytes);
        self.write(&mut bytes).await;
        self
    }

    fn mask(&mut self) -> Option<Mask> {
        self.is_client
            .then(|| Mask::new(self.dice.u32(..).to_ne_bytes()))
    }

    fn fragments(
        &mut self,
        message: Message,
        mut payload: &[u8],
        writer: &mut Writer,
        bytes: &mut BytesMut,
    ) {
        while self.dice.u8(..3) == 0 {
            let (piece, rest) = payload.split_at(self.dice.usize(..=payload.len()));
            let mask = self.mask();
            writer.frame(message, false, piece, mask, bytes);
            payload = rest;
        }
        let mask = self.mask();
        writer.frame(message, true, payload, mask, bytes);
    }

    fn deflated(&mut self, plain: &[u8]) -> Vec<u8> {
        let Some((engine, takeover)) = self.deflate.as_mut().filter(|_| !plain.is_empty()) else {
            return vec![0];
        };
        if !*takeover {
            engine.reset();
        }
        let mut coded = Vec::new();
        let before = engine.total_in();
        loop {
            let at = usize::try_from(engine.total_in() - before).unwrap();
            coded.reserve(16 << 10);
            engine
                .compress_vec(&plain[at..], &mut coded, FlushCompress::Sync)
                .unwrap();
            if coded.len() < coded.capacity() {
                break;
            }
        }
        assert!(coded.ends_with(&[0, 0, 0xff, 0xff]));
        coded.truncate(coded.len() - 4);
        coded
    }

    async fn write(&mut self, bytes: &mut BytesMut) {
        let most = [1, 100, 100_000][self.dice.usize(..3)].max(bytes.len() / 500);
        while !bytes.is_empty() {
            let piece = self.dice.usize(1..=most).min(bytes.len());
            if self
                .writing
                .write_all(&bytes.split_to(piece))
                .await
                .is_err()
            {
                return;
            }
            if self.dice.bool() {
                tokio::task::yield_now().await;
            }
        }
    }
}

/// All that is said until the Close.
async fn hear(
    mut reading: ReadHalf<DuplexStream>,
    mut parser: Parser,
    mut inflate: Option<(Decompress, bool)>,
) -> Vec<Said> {
    let mut heard = Vec::new();
    let (mut input, mut payload) = (BytesMut::new(), Vec::new());
    loop {
        while let Some(event) = parser.next(&mut input).unwrap() {
            match event {
                Event::Ping(payload) => heard.push(Said::Ping(payload.to_vec())),
                Event::Pong(payload) => heard.push(Said::Pong(payload.to_vec())),
                Event::Close(close) => {
                    assert_eq!(close, Some(Close::new(CloseCode::NORMAL, "all was said")));
                    return heard;
                }
                Event::Data(piece) => {
                    payload.extend_from_slice(&piece.payload);
                    if piece.ends() {
                        let mut payload = std::mem::take(&mut payload);
                        if piece.message.deflated {
                            payload = inflated(inflate.as_mut().unwrap(), &payload);
                        }
                        let kind = piece.message.kind;
                        heard.push(Said::Message { kind, payload });
                    }
                }
            }
        }
        let read = reading.read_buf(&mut input).await.unwrap();
        assert!(read > 0, "it ends without a Close");
    }
}

fn inflated((engine, takeover): &mut (Decompress, bool), coded: &[u8]) -> Vec<u8> {
    if !*takeover {
        engine.reset(false);
    }
    let input = [coded, &[0, 0, 0xff, 0xff]].concat();
    let (mut plain, start) = (Vec::new(), engine.total_in());
    loop {
        let at = usize::try_from(engine.total_in() - start).unwrap();
        plain.reserve(16 << 10);
        engine
            .decompress_vec(&input[at..], &mut plain, FlushDecompress::Sync)
            .unwrap();
        let at = usize::try_from(engine.total_in() - start).unwrap();
        if at == input.len() && plain.len() < plain.capacity() {
            return plain;
        }
    }
}
