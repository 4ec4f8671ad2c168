//! The proxy's behaviour over HTTP, a file for each kind, in one binary: it links once.

#[path = "../support/mod.rs"]
mod support;

mod breach;
mod connect;
mod connections;
mod cpu_memory;
mod drain;
mod expectations;
mod forwarding;
mod framing;
mod integrity;
mod limits;
mod malformed;
mod pressure;
mod records;
mod reload;
mod request_bodies;
mod routing;
mod sockets;
mod starting;
mod streaming;
mod tls;
mod trailers;
mod upgrades;
mod upstreams;
