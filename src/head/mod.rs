//! What heads mean: reads and edits heads, pure.

pub mod media;
