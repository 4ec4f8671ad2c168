//! Speaks: the answer of one exchange, in its protocol.

pub mod cached;
mod failure;
pub mod grpc;
pub mod http;
mod reuse;
mod switched;
pub mod tunnel;
pub mod websocket;

pub use failure::{Failure, Kind, Side};
pub use switched::Switched;
