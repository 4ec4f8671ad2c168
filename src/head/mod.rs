//! What heads mean: reads and edits heads, pure.
//!
//! Everything works on `&HeaderMap` or `&mut HeaderMap`, copies nothing that can be borrowed, and
//! never fails on what a peer sent: what is malformed is either not used or passes as it is.

pub mod accept;
pub mod authority;
pub mod cache_control;
pub mod conditional;
pub mod etag;
pub mod expect;
pub mod forwarded;
pub mod grpc;
pub mod hop;
pub mod list;
pub mod media;
pub mod path;
pub mod precondition;
pub mod range;
pub mod site;
pub mod trailers;
pub mod transform;
pub mod vary;
