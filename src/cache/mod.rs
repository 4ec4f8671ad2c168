//! Remembers: a shared HTTP cache (RFC 9111) that keeps an object plain once, and each coding of it
//! as a variant that is made on first use.
//!
//! The decisions are pure functions over heads, with the clock passed in. The room asks no app and
//! runs no codec: `protocol` does that, with [`flight`] making sure that it is done once.
//!
//! It must never hand out what one user was given to another, what belongs to another scheme, host
//! or route, or coded bytes under a head that does not belong to them.

pub mod densify;
pub mod directives;
pub mod flight;
pub mod freshness;
pub mod invalidate;
pub mod kept;
pub mod key;
pub mod object;
mod purges;
mod queue;
pub mod reuse;
mod shelves;
pub mod status;
pub mod store;
pub mod tags;
mod weight;
pub mod wire;
