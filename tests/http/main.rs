//! The proxy's behaviour over HTTP, a file for each kind, in one binary: it links once.

#[path = "../support/mod.rs"]
mod support;

mod already_coded;
mod breach;
mod configuration;
mod cpu_memory;
mod framing;
mod integrity;
mod lengths;
mod malformed;
mod negotiation;
mod pressure;
mod ranges;
mod real_apps;
mod request_bodies;
mod streaming;
mod validators;
mod vary;
