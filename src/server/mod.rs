//! Listens: connections, from the socket to hyper.

pub mod gate;
