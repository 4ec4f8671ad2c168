//! `thinwire measure --websocket` and `--grpc`: what it costs to compress messages one by one.

use std::fs;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use super::sample::MOST;
use crate::codec::message::Deflater;
use crate::codec::{self, CodecError, Coding, Recipe, sample};
use crate::frame::grpc::{PREFIX, Prefix};
use crate::work::CpuClock;

/// The level that a route starts from.
const LEVEL: u8 = 6;

/// Runs over all messages; the median counts.
const RUNS: usize = 5;

/// As `defaults.grpc.min_size`: smaller calls' messages stay plain.
const MIN_SIZE: usize = 1 << 10;

/// Levels of gRPC's codings that are tried.
const LEVELS: [(Coding, &[u8]); 3] = [
    (Coding::Gzip, &[1, 4, 6]),
    (Coding::Zstd, &[1, 3]),
    (Coding::Deflate, &[4]),
];

/// Why there are no messages to measure.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoMessages {
    #[error("{name}: {error}")]
    Unreadable { name: String, error: io::Error },
    #[error("{name}: it is empty")]
    Empty { name: String },
    #[error(
        "{name}: at byte {at} there is no whole message: 5 bytes of prefix, then what they announce"
    )]
    Cut { name: String, at: usize },
    #[error("{name}: the message at byte {at} has flags {flags:#04x}: plain ones (0) are measured")]
    Flags { name: String, at: usize, flags: u8 },
}

/// One way to compress them all.
#[derive(Debug)]
pub(super) struct Tried {
    pub(super) way: Way,
    /// Bytes of all messages, plain and as they would be sent.
    pub(super) plain: usize,
    pub(super) sent: usize,
    /// Messages that would be sent compressed.
    pub(super) compressed: usize,
    /// CPU time of a message.
    pub(super) each: Duration,
    /// What is kept of a connection for the direction to the client, in bytes; calls keep nothing.
    pub(super) held: usize,
}

/// How.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// permessage-deflate.
    WebSocket { takeover: bool, bits: u8 },
    /// A coding and its level.
    Grpc { coding: Coding, level: u8 },
}

/// One message a line: a JSON string stands for its content, anything else for itself.
pub(super) fn from_lines(name: &str) -> Result<Vec<Bytes>, NoMessages> {
    let text = read(name)?;
    let lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let messages: Vec<_> = lines
        .filter(|line| !line.is_empty())
        .map(|line| match serde_json::from_slice::<String>(line) {
            Ok(content) => content.into(),
            Err(_) => Bytes::copy_from_slice(line),
        })
        .collect();
    some(messages, name)
}

/// Messages as gRPC has them on the wire, each behind its prefix of 5 bytes.
pub(super) fn from_frames(name: &str) -> Result<Vec<Bytes>, NoMessages> {
    let mut rest = Bytes::from(read(name)?);
    let all = rest.len();
    let mut messages = Vec::new();
    while !rest.is_empty() {
        let (name, at) = (name.to_owned(), all - rest.len());
        let prefix = rest
            .first_chunk::<PREFIX>()
            .map(|bytes| Prefix::decode(*bytes));
        let length = prefix.map_or(usize::MAX, |prefix| prefix.length as usize);
        match prefix {
            Some(Prefix { flags: 0, .. }) if length <= rest.len() - PREFIX => {}
            Some(Prefix { flags: 1.., .. }) => {
                let flags = rest[0];
                return Err(NoMessages::Flags { name, at, flags });
            }
            _ => return Err(NoMessages::Cut { name, at }),
        }
        let message = rest.split_to(PREFIX + length);
        messages.push(message.slice(PREFIX..));
    }
    some(messages, name)
}

fn read(name: &str) -> Result<Vec<u8>, NoMessages> {
    fs::read(name).map_err(|error| NoMessages::Unreadable {
        name: name.to_owned(),
        error,
    })
}

/// The first megabytes of them count.
fn some(mut messages: Vec<Bytes>, name: &str) -> Result<Vec<Bytes>, NoMessages> {
    let mut seen = 0;
    let within = messages.iter().take_while(|message| {
        let fits = seen < MOST;
        seen += message.len();
        fits
    });
    let within = within.count();
    messages.truncate(within);
    if messages.iter().all(Bytes::is_empty) {
        return Err(NoMessages::Empty {
            name: name.to_owned(),
        });
    }
    Ok(messages)
}

impl Way {
    /// Windows of 9 to 15 bits, with and without takeover.
    pub(super) fn of_websocket() -> Vec<Self> {
        [true, false]
            .into_iter()
            .flat_map(|takeover| (9..=15).map(move |bits| Self::WebSocket { takeover, bits }))
            .collect()
    }

    /// The levels worth a thought.
    pub(super) fn of_grpc() -> Vec<Self> {
        LEVELS
            .into_iter()
            .flat_map(|(coding, levels)| {
                let levels = levels.iter().copied();
                levels.map(move |level| Self::Grpc { coding, level })
            })
            .collect()
    }

    /// Its name in progress lines.
    pub(super) fn name(self) -> String {
        match self {
            Self::WebSocket { takeover, bits } => {
                let takeover = if takeover { "takeover" } else { "no takeover" };
                format!("{takeover}, {bits} bits")
            }
            Self::Grpc { coding, level } => format!("{coding} {level}"),
        }
    }

    /// Compresses all messages so, a few times over.
    pub(super) fn try_on(self, messages: &[Bytes]) -> Result<Tried, CodecError> {
        let plain = messages.iter().map(Bytes::len).sum();
        let mut tried = Tried {
            way: self,
            plain,
            sent: 0,
            compressed: 0,
            each: Duration::ZERO,
            held: 0,
        };
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            (tried.sent, tried.compressed) = (0, 0);
            let clock = CpuClock::start();
            match self {
                Self::WebSocket { takeover, bits } => {
                    tried.deflate(&mut Deflater::new(LEVEL, bits, takeover), messages)?;
                }
                Self::Grpc { coding, level } => tried.code(Recipe::new(coding, level), messages)?,
            }
            runs.push(clock.elapsed());
        }
        runs.sort_unstable();
        let count = u32::try_from(messages.len()).unwrap_or(u32::MAX);
        tried.each = runs[RUNS / 2] / count.max(1);
        Ok(tried)
    }
}

impl Tried {
    /// Bytes on the wire for a plain one.
    pub(super) fn ratio(&self) -> f64 {
        self.sent as f64 / self.plain as f64
    }

    fn deflate(&mut self, deflater: &mut Deflater, messages: &[Bytes]) -> Result<(), CodecError> {
        let mut output = BytesMut::new();
        for message in messages {
            output.clear();
            if deflater.whole(message, &mut output)? {
                self.compressed += 1;
                self.sent += output.len();
            } else {
                self.sent += message.len();
            }
        }
        self.held = deflater.held();
        Ok(())
    }

    /// As calls are treated: small and random-looking messages stay plain.
    fn code(&mut self, recipe: Recipe, messages: &[Bytes]) -> Result<(), CodecError> {
        for message in messages {
            let pieces = std::slice::from_ref(message);
            let worth = message.len() >= MIN_SIZE && !sample::looks_incompressible(pieces);
            let coded = if worth {
                codec::whole(recipe, pieces, message.len(), 0)?.len()
            } else {
                message.len()
            };
            self.compressed += usize::from(coded < message.len());
            self.sent += coded.min(message.len());
        }
        Ok(())
    }
}
