//! The proxy's behaviour over HTTP, a file for each kind, in one binary: it links once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod already_coded;
mod breach;
mod cache;
mod clients;
mod configuration;
mod connect;
mod connections;
mod cpu_memory;
mod dashboard;
mod drain;
mod expectations;
mod explain;
mod floods;
mod forwarding;
mod framing;
mod grpc;
mod health;
mod integrity;
mod interfaces;
mod lengths;
mod limits;
mod malformed;
mod measure;
mod negotiation;
mod pressure;
mod ranges;
mod real_apps;
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
mod validators;
mod vary;
mod websocket;
