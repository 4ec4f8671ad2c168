//! Instructions an exchange costs the proxy, all of it: `cargo bench --bench counts`.
//!
//! The release binary runs under valgrind's callgrind, before the demo application on the same
//! process' own thread, once for few and once for many exchanges; the difference is what they cost,
//! the application's part included. Counts repeat to about 1 % on any machine, however busy.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "the tests' support, of which this uses a part")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use support::process::Process;
use support::{Conn, folder};

/// One network thread and one worker; every answer is coded, none taken from an earlier one.
const CONFIG: &str = "\
listen: [{ address: '127.0.0.1:0' }]
admin: { address: '127.0.0.1:0' }
network: { threads: 1 }
pool: { threads: 1 }
upstreams: { app: { servers: [demo] } }
routes: [{ name: all, match: { path: / }, upstream: app, cache: { reuse: false } }]
";

const FEW: u64 = 50;
const MANY: u64 = 250;

/// valgrind takes thirty to a hundred times as long.
const PATIENCE: Duration = Duration::from_secs(120);

const CASES: [(&str, &str, &str); 6] = [
    ("a tiny answer, plain", "/ping", "identity"),
    ("117 KiB, plain", "/report", "identity"),
    ("117 KiB, gzip", "/report", "gzip"),
    ("117 KiB, br", "/report", "br"),
    ("117 KiB, zstd", "/report", "zstd"),
    (
        "random bytes, looked at and left alone",
        "/random?type=json",
        "gzip",
    ),
];

fn main() {
    let file = folder("counts").join("config.yaml");
    std::fs::write(&file, CONFIG).unwrap();
    for (name, target, coding) in CASES {
        let [few, many] = [FEW, MANY].map(|count| instructions(&file, target, coding, count));
        println!("{name:40} {:>12}", (many - few) / (MANY - FEW));
    }
}

/// What a whole life of the process with so many exchanges takes.
fn instructions(file: &std::path::Path, target: &str, coding: &str, count: u64) -> u64 {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(env!("CARGO_BIN_EXE_thinwire"))
        .args(["serve", "--config"])
        .arg(file);
    let mut process = Process::spawn("valgrind", &mut command).expect("valgrind is installed");
    let address: SocketAddr = process
        .wait_for("an address", PATIENCE, |line| {
            line.split("listening on http://")
                .nth(1)?
                .split('"')
                .next()?
                .parse()
                .ok()
        })
        .unwrap();
    process
        .wait_for("readiness", PATIENCE, |line| {
            line.contains("ready").then_some(())
        })
        .unwrap();
    let mut conn = Conn::open(address);
    conn.stream().read_timeout(Some(PATIENCE)).unwrap();
    for _ in 0..count {
        let reply = conn.get(target, &[("Accept-Encoding", coding)]).expect(200);
        assert!(reply.coding() == coding || target.starts_with("/random"));
    }
    drop(conn);
    process.signal(rustix::process::Signal::TERM);
    process.exit();
    process
        .wait_for("the count", PATIENCE, |line| {
            line.split("Collected :").nth(1)?.trim().parse().ok()
        })
        .unwrap()
}
