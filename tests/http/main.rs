//! The proxy's behaviour over HTTP, a file for each kind, in one binary: it links once.

#[path = "../support/mod.rs"]
mod support;
