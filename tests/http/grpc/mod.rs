//! gRPC through the proxy, message by message: what BEHAVIOUR.md says of it, and the traps that
//! real clients and servers set.

use super::support;

mod endings;
mod refusals;
mod requests;
mod responses;
