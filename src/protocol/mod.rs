//! Speaks: the answer of one exchange, in its protocol.

pub mod cached;
mod failure;
pub mod http;
mod reuse;
pub mod tunnel;
pub mod websocket;

pub use failure::{Failure, Kind, Side};
