//! What concerns the process as a whole: log, network, pool, cache, WebSocket memory, drain.

use std::time::Duration;

use crate::config::kind::{FILTER, Flag, PATIENCE, REDIS_URL, SIZE, TIME, Threads, Whole, Word};
use crate::config::section::Section;
use crate::config::settings::{CacheStore, Log, LogFormat, Network, Pool, SharedCache};

/// A count that nobody means to exceed.
const MANY: usize = 100_000_000;
/// What a shared cache may take by default.
const SHARED_TIMEOUT: Duration = Duration::from_millis(50);
/// What HTTP/2 can count.
const MAX_STREAMS: u32 = 1_000_000;

pub(in crate::config) const FORMAT: Word<LogFormat> =
    Word(&[("text", LogFormat::Text), ("json", LogFormat::Json)]);

pub(super) fn log(s: &mut Section<'_>) -> Log {
    let base = Log::default();
    s.section("log", "What is logged, and how.", |s| Log {
        level: s.key(
            "level",
            &FILTER,
            base.level,
            "error, warn, info, debug, trace, or a tracing filter.",
        ),
        format: s.key(
            "format",
            &FORMAT,
            base.format,
            "Lines for people, or JSON objects.",
        ),
        access: s.key("access", &Flag, base.access, "One line for each exchange."),
    })
}

pub(super) fn network(s: &mut Section<'_>) -> Network {
    let base = Network::default();
    s.section(
        "network",
        "The threads and limits of the network side.",
        |s| Network {
            threads: s.key(
                "threads",
                &Threads,
                base.threads,
                "Threads that serve connections; auto: the CPUs that this process may use.",
            ),
            max_connections: s.key(
                "max_connections",
                &Whole(1..=MANY),
                base.max_connections,
                "Beyond these, connections are not accepted until one ends.",
            ),
            per_client_connections: s.key(
                "per_client_connections",
                &Whole(0..=MANY),
                base.per_client_connections,
                "Connections of one client address; 0: unlimited.",
            ),
            max_streams: s.key(
                "max_streams",
                &Whole(1..=MAX_STREAMS),
                base.max_streams,
                "Concurrent HTTP/2 streams of a connection.",
            ),
            keep_alive: s.key(
                "keep_alive",
                &TIME,
                base.keep_alive,
                "An idle client connection is closed after this.",
            ),
            send: s.key(
                "send",
                &PATIENCE,
                base.send,
                "Between two writes that a client takes; a stalled reader is cut off.",
            ),
            tls_handshake: s.key(
                "tls_handshake",
                &PATIENCE,
                base.tls_handshake,
                "For the whole TLS handshake.",
            ),
        },
    )
}

pub(super) fn pool(s: &mut Section<'_>) -> Pool {
    let base = Pool::default();
    let about = "The threads that compress: never the ones that serve the network.";
    s.section("pool", about, |s| Pool {
        threads: s.key(
            "threads",
            &Threads,
            base.threads,
            "Threads that compress; auto: the CPUs that this process may use.",
        ),
        nice: s.key(
            "nice",
            &Whole(-20..=19),
            base.nice,
            "Their niceness: above 0 the network's threads win when the CPUs are full.",
        ),
        inline: s.key(
            "inline",
            &SIZE,
            base.inline,
            "At most so many bytes are compressed where they stand.",
        ),
        max_wait: s.key(
            "max_wait",
            &TIME,
            base.max_wait,
            "Work that would wait longer is answered with a cheaper level, then plain.",
        ),
    })
}

pub(super) fn cache(s: &mut Section<'_>) -> CacheStore {
    let base = CacheStore::default();
    s.section(
        "cache",
        "The store of responses and their compressed copies.",
        |s| CacheStore {
            memory: s.key(
                "memory",
                &SIZE,
                base.memory,
                "Plain and compressed copies together.",
            ),
            shared: s.optional_section(
                "shared",
                "A second tier, so that many replicas compress once.",
                |s| {
                    let about = "redis://host:port, or rediss:// over TLS.";
                    let url = s.required("url", &REDIS_URL, about);
                    let about = "Slower or absent: served without it.";
                    let timeout = s.key("timeout", &PATIENCE, SHARED_TIMEOUT, about);
                    Some(SharedCache { url: url?, timeout })
                },
            ),
        },
    )
}

pub(super) fn websocket_memory(s: &mut Section<'_>) -> u64 {
    s.section("websocket", "All WebSocket connections together.", |s| {
        let about = "Compression state of all connections; past it new ones run uncompressed.";
        s.key("memory", &SIZE, 256 << 20, about)
    })
}

pub(super) fn drain(s: &mut Section<'_>) -> Duration {
    let about = "On SIGTERM: stop accepting, finish what runs, at most this long.";
    s.key("drain", &TIME, Duration::from_secs(30), about)
}
