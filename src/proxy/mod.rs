//! Conducts: which route, what is asked of the app, what the client gets.

mod copies;
mod error;
mod exchange;
mod explain;
mod facts;
mod informational;
mod intake;
mod outgoing;
mod per_client;
mod route;
mod snapshot;
mod upgrade;

pub use error::{RefusedHead, refuse};
pub use exchange::exchange;
pub use facts::{Client, Facts, Listening};
pub use route::{Route, Router};
pub use snapshot::{Shared, Snapshot};
