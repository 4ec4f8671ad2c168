//! The proxy's behaviour over HTTP, a file for each kind, in one binary: it links once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod already_coded;
mod breach;
mod cache;
mod configuration;
mod cpu_memory;
mod framing;
mod grpc;
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
