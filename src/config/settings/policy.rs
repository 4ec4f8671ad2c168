//! How exchanges are treated: what `defaults` and every route say.

use std::time::Duration;

use http::{HeaderName, HeaderValue};

use crate::codec::Coding;
use crate::head::media::MediaPattern;

/// How the exchanges of a route are treated.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// HTTP bodies.
    pub compress: Compress,
    /// Copies.
    pub cache: Cache,
    /// gRPC messages.
    pub grpc: Grpc,
    /// WebSocket messages.
    pub websocket: WebSocket,
    /// Upgrade tokens that may pass, lower case.
    pub upgrades: Vec<String>,
    /// Bounds.
    pub limits: Limits,
    /// Patience.
    pub timeouts: Timeouts,
    /// Header edits towards the app.
    pub request_headers: HeaderEdits,
    /// Header edits towards the client.
    pub response_headers: HeaderEdits,
}

/// Compression of HTTP bodies.
#[derive(Debug, Clone, PartialEq)]
pub struct Compress {
    /// Off: the client's Accept-Encoding passes.
    pub enabled: bool,
    /// In the server's order; gzip, br or zstd, each once.
    pub encodings: Vec<Coding>,
    /// The level of each.
    pub levels: Levels,
    /// Bytes; smaller bodies stay plain.
    pub min_size: u64,
    /// What is compressed.
    pub types: Vec<MediaPattern>,
    /// What is not, although `types` has it.
    pub except_types: Vec<MediaPattern>,
    /// Bytes: an answer complete within these is coded in one shot.
    pub whole_bytes: u64,
    /// ... and within this time.
    pub whole_wait: Duration,
    /// When what is there is sent.
    pub flush: Flush,
    /// no-transform keeps bodies plain.
    pub honor_no_transform: bool,
    /// Bodies that clients compressed.
    pub requests: Requests,
    /// Bytes that a request body may inflate to.
    pub max_inflated: u64,
    /// Random bytes that hide the length of a compressed body, at most.
    pub breach_pad: u64,
    /// Answers to requests from other sites.
    pub breach_cross_site: CrossSite,
}

/// The level of each coding, in the engines' own scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    /// 1..=12.
    pub gzip: u8,
    /// 1..=12; gRPC only.
    pub deflate: u8,
    /// 0..=11.
    pub br: u8,
    /// 1..=22.
    pub zstd: u8,
}

impl Levels {
    /// The level for this coding.
    #[must_use]
    pub const fn of(&self, coding: Coding) -> u8 {
        match coding {
            Coding::Gzip => self.gzip,
            Coding::Deflate => self.deflate,
            Coding::Brotli => self.br,
            Coding::Zstd => self.zstd,
        }
    }
}

/// When a stream is flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// When the app pauses.
    Auto,
    /// At the end only.
    Never,
    /// After each chunk of the app's.
    EveryChunk,
}

/// What happens to what clients compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requests {
    /// It passes as it is.
    Pass,
    /// The app gets it plain.
    Decompress,
}

/// What requests from other sites get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrossSite {
    /// As any other.
    Compress,
    /// Plain.
    Plain,
}

/// Caching of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// Off: nothing is kept but `reuse`.
    pub enabled: bool,
    /// For responses that say nothing about freshness.
    pub default_ttl: Duration,
    /// Bytes.
    pub max_object: u64,
    /// Which part of the query is in the key.
    pub query: QueryKey,
    /// Where the response does not say.
    pub stale_while_revalidate: Duration,
    /// Where the response does not say.
    pub stale_if_error: Duration,
    /// Identical bytes reuse an earlier compression.
    pub reuse: bool,
    /// Popular copies are recompressed when idle.
    pub densify: bool,
}

/// Which part of the query is in the cache key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueryKey {
    /// All of it.
    All,
    /// None of it.
    None,
    /// These parameters.
    Names(Vec<String>),
}

/// gRPC messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grpc {
    /// Off: responses pass.
    pub compress: bool,
    /// In the server's order; gzip, zstd or deflate.
    pub encodings: Vec<Coding>,
    /// The level of each.
    pub levels: Levels,
    /// Bytes; smaller messages stay plain.
    pub min_size: u64,
    /// Messages that clients compressed.
    pub requests: Requests,
    /// gRPC-Web clients.
    pub web: GrpcWeb,
    /// Bytes, inflated.
    pub max_message: u64,
}

/// What gRPC-Web clients get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrpcWeb {
    /// The app speaks it.
    Pass,
    /// It is translated to gRPC.
    Bridge,
}

/// WebSocket messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebSocket {
    /// Off: the extension is not agreed.
    pub compress: bool,
    /// zlib's.
    pub level: u8,
    /// 9..=15.
    pub window_bits: u8,
    /// History across messages.
    pub context_takeover: bool,
    /// Bytes; only where `context_takeover` is false.
    pub min_size: u64,
    /// Text messages stay plain.
    pub except_text: bool,
    /// Binary messages stay plain.
    pub except_binary: bool,
    /// Bytes, inflated, from the client.
    pub max_message: u64,
    /// A silent connection is closed after this.
    pub idle_timeout: Duration,
}

/// Bounds of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes; only that of `defaults` counts.
    pub request_head: u64,
    /// Bytes: 413.
    pub request_body: u64,
    /// 0 = unlimited; beyond: 503.
    pub concurrent_requests: usize,
    /// 0 = unlimited; beyond: 429.
    pub requests_per_second: u32,
    /// What may come at once above that.
    pub burst: u32,
}

/// Patience of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    /// Only that of `defaults` counts: 408.
    pub request_head: Duration,
    /// Between two reads.
    pub request_body: Duration,
    /// The whole exchange; zero = none.
    pub response: Duration,
}

/// Fields set and removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeaderEdits {
    /// Replace or add.
    pub set: Vec<(HeaderName, HeaderValue)>,
    /// Remove.
    pub remove: Vec<HeaderName>,
}
