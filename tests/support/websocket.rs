//! WebSocket frames as tests send and see them, over any stream, and a reference inflater.

use std::io::{self, Write as _};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

use super::h2::H2Stream;
use super::{Call, Conn, Fields, Proxy, Reply};

/// A key, and what it has to be answered with.
pub const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
pub const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// The fields of a client's handshake.
pub const HANDSHAKE: [(&str, &str); 4] = [
    ("Connection", "keep-alive, Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Key", KEY),
    ("Sec-WebSocket-Version", "13"),
];

pub const FIN: u8 = 0x80;
pub const RSV1: u8 = 0x40;
pub const TEXT: u8 = 1;
pub const BINARY: u8 = 2;
pub const CLOSE: u8 = 8;
pub const PING: u8 = 9;
pub const PONG: u8 = 10;

/// A frame as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// FIN, the reserved bits and the opcode.
    pub first: u8,
    pub mask: Option<[u8; 4]>,
    /// Unmasked.
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn opcode(&self) -> u8 {
        self.first & 15
    }

    pub fn is_last(&self) -> bool {
        self.first & FIN != 0
    }

    pub fn is_deflated(&self) -> bool {
        self.first & RSV1 != 0
    }
}

/// The code of a close frame's payload.
pub fn code(payload: &[u8]) -> Option<u16> {
    payload
        .first_chunk()
        .map(|&number| u16::from_be_bytes(number))
}

/// A frame as a server writes it.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = head(first, 0, payload.len());
    bytes.extend_from_slice(payload);
    bytes
}

/// A frame as a client writes it.
pub fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    let mut bytes = head(first, 0x80, payload.len());
    bytes.extend_from_slice(&mask);
    let payload = payload.iter().zip(mask.iter().cycle());
    bytes.extend(payload.map(|(byte, mask)| byte ^ mask));
    bytes
}

fn head(first: u8, masked: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![first];
    match length {
        0..126 => bytes.push(masked | length as u8),
        126..0x1_0000 => {
            bytes.push(masked | 126);
            bytes.extend((length as u16).to_be_bytes());
        }
        _ => {
            bytes.push(masked | 127);
            bytes.extend((length as u64).to_be_bytes());
        }
    }
    bytes
}

/// The frame that stands first, and its bytes.
fn parse(bytes: &[u8]) -> Option<(Frame, usize)> {
    let (&first, &second) = (bytes.first()?, bytes.get(1)?);
    let (length, mut at) = match second & 0x7f {
        126 => (
            usize::from(u16::from_be_bytes(*bytes[2..].first_chunk()?)),
            4,
        ),
        127 => (u64::from_be_bytes(*bytes[2..].first_chunk()?) as usize, 10),
        short => (usize::from(short), 2),
    };
    let mut mask = None;
    if second & 0x80 != 0 {
        mask = Some(*bytes.get(at..)?.first_chunk()?);
        at += 4;
    }
    let mut payload = bytes.get(at..at + length)?.to_vec();
    for (byte, mask) in payload.iter_mut().zip(mask.iter().flatten().cycle()) {
        *byte ^= mask;
    }
    let frame = Frame {
        first,
        mask,
        payload,
    };
    Some((frame, at + length))
}

/// What frames can run over.
pub trait Wire {
    /// The next bytes; none at the end.
    fn bytes(&mut self) -> io::Result<Option<Vec<u8>>>;
    fn put(&mut self, bytes: &[u8]) -> io::Result<()>;
}

impl Wire for Conn {
    fn bytes(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.raw()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.try_send(bytes)
    }
}

impl Wire for &mut Call<'_> {
    fn bytes(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.raw()
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream().write_all(bytes)
    }
}

impl Wire for H2Stream {
    fn bytes(&mut self) -> io::Result<Option<Vec<u8>>> {
        self.try_piece().map_err(io::Error::other)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.try_send(bytes, false).map_err(io::Error::other)
    }
}

/// One end of a WebSocket connection.
pub struct Socket<W> {
    pub wire: W,
    is_client: bool,
    buffer: Vec<u8>,
    inflater: Decompress,
    deflater: Compress,
}

/// A message: its opcode, its payload, and whether it came compressed.
pub type Told = (u8, Vec<u8>, bool);

#[allow(
    clippy::disallowed_methods,
    reason = "the reference that the product is compared with"
)]
impl<W: Wire> Socket<W> {
    pub fn new(wire: W, is_client: bool) -> Self {
        Self {
            wire,
            is_client,
            buffer: Vec::new(),
            inflater: Decompress::new(false),
            deflater: Compress::new_with_window_bits(Compression::new(6), false, 9),
        }
    }

    pub fn put(&mut self, bytes: impl AsRef<[u8]>) {
        self.wire
            .put(bytes.as_ref())
            .expect("the peer takes what is sent");
    }

    /// Sends a frame, masked where a client does.
    pub fn send(&mut self, first: u8, payload: impl AsRef<[u8]>) {
        let write = if self.is_client { masked } else { frame };
        self.put(write(first, payload.as_ref()));
    }

    /// Sends a message compressed, with a history.
    pub fn send_deflated(&mut self, opcode: u8, plain: &[u8]) {
        let coded = self.deflated(plain);
        self.send(FIN | RSV1 | opcode, coded);
    }

    /// The next message's compressed form: at most 512 bytes of history.
    pub fn deflated(&mut self, plain: &[u8]) -> Vec<u8> {
        if plain.is_empty() {
            // Behind a flush zlib has nothing to flush.
            return vec![0];
        }
        let mut coded = Vec::new();
        let before = self.deflater.total_in();
        loop {
            let at = (self.deflater.total_in() - before) as usize;
            coded.reserve(64 << 10);
            self.deflater
                .compress_vec(&plain[at..], &mut coded, FlushCompress::Sync)
                .expect("an encoder that works");
            // Room was left: nothing waits inside.
            if coded.len() < coded.capacity() {
                break;
            }
        }
        assert_eq!(self.deflater.total_in() - before, plain.len() as u64);
        assert!(coded.ends_with(&[0, 0, 0xff, 0xff]));
        coded.truncate(coded.len() - 4);
        coded
    }

    /// The next frame; none at the end of the stream.
    pub fn try_frame(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some((frame, taken)) = parse(&self.buffer) {
                self.buffer.drain(..taken);
                assert_eq!(frame.mask.is_some(), !self.is_client, "{frame:x?}");
                return Ok(Some(frame));
            }
            let Some(bytes) = self.wire.bytes()? else {
                assert!(self.buffer.is_empty(), "the stream ends within a frame");
                return Ok(None);
            };
            self.buffer.extend(bytes);
        }
    }

    #[track_caller]
    pub fn frame(&mut self) -> Frame {
        let frame = self.try_frame().expect("a stream that works");
        frame.expect("a frame before the end")
    }

    /// The next message; control frames on the way are an error.
    #[track_caller]
    pub fn message(&mut self) -> Told {
        let first = self.frame();
        assert!(matches!(first.opcode(), TEXT | BINARY), "{first:x?}");
        let (opcode, deflated) = (first.opcode(), first.is_deflated());
        let (mut payload, mut last) = (first.payload.clone(), first.is_last());
        while !last {
            let next = self.frame();
            assert_eq!(next.first & 0x7f, 0, "a continuation");
            payload.extend_from_slice(&next.payload);
            last = next.is_last();
        }
        if deflated {
            payload = self.inflated(&payload);
        }
        (opcode, payload, deflated)
    }

    /// What a message's payload stands for, behind those before it.
    pub fn inflated(&mut self, coded: &[u8]) -> Vec<u8> {
        let input = [coded, &[0, 0, 0xff, 0xff]].concat();
        let mut plain = Vec::new();
        let mut at = 0;
        loop {
            let before = self.inflater.total_in();
            plain.reserve(64 << 10);
            let len = plain.len();
            self.inflater
                .decompress_vec(&input[at..], &mut plain, FlushDecompress::Sync)
                .expect("a message that inflates");
            at += (self.inflater.total_in() - before) as usize;
            if at == input.len() && plain.len() - len < 64 << 10 {
                return plain;
            }
        }
    }

    /// The code of the Close that comes next, behind nothing, and the end of the stream behind it.
    #[track_caller]
    pub fn closes(&mut self) -> Option<u16> {
        let frame = self.frame();
        assert_eq!(frame.first, FIN | CLOSE, "{frame:x?}");
        code(&frame.payload)
    }

    /// Waits for the end of the stream; whatever still comes is not wanted.
    #[track_caller]
    pub fn ends(&mut self) {
        let next = self.try_frame();
        assert!(!matches!(&next, Ok(Some(_))), "{next:x?}");
    }
}

impl Socket<Conn> {
    /// Opens a connection through the proxy; `offer` is Sec-WebSocket-Extensions, none if empty.
    #[track_caller]
    pub fn open(proxy: &Proxy, target: &str, offer: &str) -> Self {
        let (socket, head) = Self::handshake(proxy, target, offer, &[]);
        assert_eq!(head.status, 101, "{:?}", head.head.fields);
        socket
    }

    /// The same, with more fields, and with the answer's head.
    #[track_caller]
    pub fn handshake(
        proxy: &Proxy,
        target: &str,
        offer: &str,
        fields: Fields<'_>,
    ) -> (Self, Reply) {
        let mut conn = proxy.conn();
        let mut all = HANDSHAKE.to_vec();
        if !offer.is_empty() {
            all.push(("Sec-WebSocket-Extensions", offer));
        }
        all.extend_from_slice(fields);
        conn.request("GET", target, &all, b"");
        let head = conn.head();
        (Self::new(conn, true), head)
    }
}

/// Opens the app's side: answers the handshake, with more fields.
pub fn accept<'a, 'c>(
    call: &'a mut Call<'c>,
    fields: Fields<'_>,
) -> io::Result<Socket<&'a mut Call<'c>>> {
    let key = call.head.field("sec-websocket-key").expect("a key");
    let accept = accept_for(key);
    let all = [
        &[
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Accept", &accept),
        ],
        fields,
    ]
    .concat();
    call.raw_head(101, &all)?;
    Ok(Socket::new(call, false))
}

/// What RFC 6455 wants as the answer to a key.
pub fn accept_for(key: &str) -> String {
    let guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    let sha1 = &aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY;
    let digest = aws_lc_rs::digest::digest(sha1, format!("{key}{guid}").as_bytes());
    BASE64_STANDARD.encode(digest)
}

/// An app that sends each frame back as it came, and ends behind the client's Close.
pub fn echoing(call: &mut Call<'_>) -> io::Result<()> {
    let mut socket = accept(call, &[])?;
    while let Some(frame) = socket.try_frame()? {
        match frame.opcode() {
            PING => socket.send(FIN | PONG, &frame.payload),
            CLOSE => {
                socket.send(frame.first, &frame.payload);
                return Ok(());
            }
            _ => socket.send(frame.first, &frame.payload),
        }
    }
    Ok(())
}
