//! Reaches the app.

pub mod strict;
