//! Thinwire: an edge reverse proxy that takes compression off application servers.
//!
//! The map. A module uses lower ranks only; `tests/rooms.rs` holds it to that.
//!
//! | rank | module | what it does |
//! |---|---|---|
//! | 0 | [`codec`] | squeezes: bytes in, bytes out; no I/O, no clock |
//! | 0 | [`head`] | reads and edits heads: Accept-Encoding, media types, Vary, ETag, hop-by-hop |
//! | 0 | [`frame`] | cuts frames: the strict HTTP/1 grammar, HTTP/2's, WebSocket's, gRPC's messages |
//! | 1 | [`telemetry`] | metrics, the log, the access record |
//! | 1 | [`config`] | understands the user: file, resolve, settings, faults |
//! | 2 | [`policy`] | decides: compress, pass or decode, and why |
//! | 2 | [`work`] | computes: the CPU pool, its lanes and slices |
//! | 2 | [`cache`] | remembers: freshness, the store, one fetch at a time |
//! | 3 | [`body`] | streams: the one Body type, encoding, decoding, guarding |
//! | 3 | [`shared`] | reaches the second tier: what other instances fetched, coded and purged |
//! | 3 | [`upstream`] | reaches the app: endpoints, balance, client, TLS |
//! | 4 | [`protocol`] | speaks: one exchange in its protocol, HTTP, gRPC or WebSocket |
//! | 5 | [`proxy`] | conducts: route, the life of a request, errors |
//! | 6 | [`server`] | listens: addresses, TLS, connections, drain; [`admin`] |
//! | 7 | [`app`] | assembles: settings into a running proxy; [`cli`], [`demo`] |

pub mod codec;
pub mod frame;
pub mod head;

pub mod config;
pub mod telemetry;

pub mod cache;
pub mod policy;
pub mod work;

pub mod body;
pub mod shared;
pub mod upstream;

pub mod protocol;

pub mod proxy;

pub mod admin;
pub mod server;

pub mod app;
pub mod cli;
pub mod demo;
