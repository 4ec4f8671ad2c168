//! Decides, purely: what happens to an answer, and why.

mod reason;

pub use reason::Reason;
