//! The proxy's behaviour over HTTP, a file for each kind, in one binary: it links once.

#[path = "../support/mod.rs"]
mod support;

mod breach;
mod cache;
mod cpu_memory;
mod framing;
mod integrity;
mod malformed;
mod pressure;
mod request_bodies;
mod streaming;
