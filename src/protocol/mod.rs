//! Speaks: the answer of one exchange, in its protocol.

mod failure;
pub mod http;
pub mod tunnel;

pub use failure::{Failure, Kind, Side};
