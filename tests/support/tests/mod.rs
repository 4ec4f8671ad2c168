//! The tools tried on each other: what a test trusts has to be right itself.

mod coding;
mod http1;
mod http2;
mod processes;
