//! What holds where the file says nothing.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::{
    Admin, Cache, CacheStore, Compress, CrossSite, Flush, Grpc, GrpcWeb, HeaderEdits, Levels,
    Limits, Log, LogFormat, Network, Policy, Pool, QueryKey, Requests, Timeouts, WebSocket,
};
use crate::codec::Coding;
use crate::head::media::MediaPattern;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// The port of the admin address.
const ADMIN_PORT: u16 = 9900;

/// What compresses well and is not compressed already.
const TYPES: [&str; 13] = [
    "text/*",
    "application/json",
    "application/*+json",
    "application/javascript",
    "application/xml",
    "application/*+xml",
    "application/x-ndjson",
    "application/wasm",
    "application/proto",
    "application/grpc-web*",
    "image/svg+xml",
    "font/ttf",
    "font/otf",
];

impl Default for Admin {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, ADMIN_PORT)),
            token: String::new(),
            explain_to: Vec::new(),
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: LogFormat::Text,
            access: true,
        }
    }
}

impl Default for Network {
    fn default() -> Self {
        Self {
            threads: available_threads(),
            max_connections: 65536,
            per_client_connections: 0,
            max_streams: 128,
            keep_alive: Duration::from_secs(75),
            send: Duration::from_secs(60),
            tls_handshake: Duration::from_secs(10),
        }
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            threads: available_threads(),
            nice: 5,
            inline: 8 * KIB,
            max_wait: Duration::from_millis(20),
        }
    }
}

/// The CPUs that this process may use, cgroup quota included.
pub(in crate::config) fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

impl Default for CacheStore {
    fn default() -> Self {
        Self {
            memory: 256 * MIB,
            shared: None,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            compress: Compress::default(),
            cache: Cache::default(),
            grpc: Grpc::default(),
            websocket: WebSocket::default(),
            upgrades: vec!["websocket".to_owned()],
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            request_headers: HeaderEdits::default(),
            response_headers: HeaderEdits::default(),
        }
    }
}

impl Default for Levels {
    fn default() -> Self {
        Self {
            gzip: 4,
            deflate: 4,
            br: 4,
            zstd: 1,
        }
    }
}

impl Default for Compress {
    fn default() -> Self {
        // Each of them parses: a test counts them.
        let types = TYPES
            .iter()
            .filter_map(|pattern| MediaPattern::parse(pattern).ok());
        Self {
            enabled: true,
            encodings: vec![Coding::Zstd, Coding::Brotli, Coding::Gzip],
            levels: Levels::default(),
            min_size: 512,
            types: types.collect(),
            except_types: Vec::new(),
            whole_bytes: 2 * MIB,
            whole_wait: Duration::from_millis(5),
            flush: Flush::Auto,
            honor_no_transform: true,
            requests: Requests::Pass,
            max_inflated: 64 * MIB,
            breach_pad: 0,
            breach_cross_site: CrossSite::Compress,
        }
    }
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            enabled: false,
            default_ttl: Duration::ZERO,
            max_object: 8 * MIB,
            query: QueryKey::All,
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: Duration::ZERO,
            reuse: true,
            densify: true,
        }
    }
}

impl Default for Grpc {
    fn default() -> Self {
        Self {
            compress: true,
            encodings: vec![Coding::Gzip],
            levels: Levels::default(),
            min_size: KIB,
            requests: Requests::Decompress,
            web: GrpcWeb::Pass,
            max_message: 4 * MIB,
        }
    }
}

impl Default for WebSocket {
    fn default() -> Self {
        Self {
            compress: true,
            level: 6,
            window_bits: 12,
            context_takeover: true,
            min_size: 64,
            except_text: false,
            except_binary: false,
            max_message: 16 * MIB,
            idle_timeout: Duration::from_secs(300),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_head: 32 * KIB,
            request_body: 64 * MIB,
            concurrent_requests: 0,
            requests_per_second: 0,
            burst: 0,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            request_head: Duration::from_secs(10),
            request_body: Duration::from_secs(60),
            response: Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_media_pattern_parses() {
        assert_eq!(Compress::default().types.len(), TYPES.len());
    }
}
