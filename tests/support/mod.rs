//! What tests tell their stories with: an app that plays a script, a client that sees every byte,
//! and the real proxy between them.
//!
//! ```text
//! let app = Origin::json(big());
//! let proxy = Proxy::before(&app);
//! let reply = proxy.get("/x", &[("accept-encoding", "gzip")]);
//! assert_eq!(reply.coding(), "gzip");
//! assert_eq!(reply.decoded(), big());
//! ```
//!
//! All of it blocks, and every wait has an end: what does not happen within [`PATIENCE`] fails the
//! test with a sentence that says what was waited for. All of it may run in parallel: ports are the
//! kernel's choice and folders are never shared.
#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    reason = "a toolbox: not every test binary takes every tool out of it"
)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub mod certs;
pub mod client;
pub mod curl;
pub mod decode;
pub mod h2;
pub mod metrics;
pub mod origin;
pub mod origin_h2;
pub mod process;
pub mod proxy;
pub mod python;
pub mod reply;
pub mod runtime;
pub mod setup;
pub mod signal;
pub mod stream;
pub mod wire;

mod tests;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub use certs::{Ca, Pair};
pub use client::Conn;
pub use curl::curl;
pub use decode::{Decoder, Pieces};
pub use h2::H2;
pub use metrics::Metrics;
pub use origin::{Call, Origin};
pub use origin_h2::{H2Call, H2Origin};
pub use proxy::{Proxy, thinwire};
pub use python::Uvicorn;
pub use reply::{Broken, Reply};
pub use setup::{App, Demo, Nowhere, PATIENT, Setup};
pub use signal::Signal;

/// How long anything may take before it counts as hanging. Ten times what a busy machine needs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Field lines, as they are written.
pub type Fields<'a> = &'a [(&'a str, &'a str)];

/// What bodies are coded in, in the policy's order.
pub const CODINGS: [&str; 3] = ["zstd", "br", "gzip"];

/// Asks once, on a connection of its own.
pub fn get(addr: SocketAddr, target: &str, fields: Fields<'_>) -> Reply {
    Conn::open(addr).get(target, fields)
}

/// Looks until there is something to see; `what` completes "waited in vain for".
pub fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A new folder of the caller's own, below the build's.
pub fn folder(purpose: &str) -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{purpose}-{}-{number}", std::process::id());
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    // A process that had this number before us may have left one.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder below target/tmp");
    folder
}

/// The behaviours' "big JSON": 100 KiB of compressible application/json.
pub fn big() -> Vec<u8> {
    json_of(100 * 1024)
}

/// A JSON array of records, at least this many bytes, compressible about as real ones are.
pub fn json_of(bytes: usize) -> Vec<u8> {
    let mut dice = fastrand::Rng::with_seed(17);
    let mut text = String::with_capacity(bytes + 128);
    text.push('[');
    for id in 0.. {
        let (word, number) = (dice.u64(..) >> 16, dice.u16(..));
        let record = r#""name":"User","email":"user@example.com","active":true"#;
        let _ = write!(
            text,
            r#"{{"id":{id},{record},"ref":"{word:012x}","n":{number}}}"#
        );
        if text.len() + 1 >= bytes {
            break;
        }
        text.push(',');
    }
    text.push(']');
    text.into_bytes()
}

/// Bytes that no codec makes smaller.
pub fn noise(bytes: usize) -> Vec<u8> {
    let mut noise = vec![0; bytes];
    fastrand::Rng::with_seed(23).fill(&mut noise);
    noise
}
