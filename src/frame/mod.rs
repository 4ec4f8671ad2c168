//! Cuts frames: the wire grammars. Bytes in, verdicts out; no I/O, no clock.

pub mod grpc;
pub mod http1;
