//! Cuts frames: the wire grammars. Bytes in, verdicts out; no I/O, no clock.

pub mod extension;
pub mod grpc;
pub mod http1;
pub mod http2;
pub mod websocket;
