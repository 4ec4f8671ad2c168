//! Listens: addresses, TLS, connections, the way out.

mod connection;
pub mod gate;
mod http1;
mod http2;
mod inherited;
mod port;
mod stream;
mod threads;
mod tls;

pub use inherited::Inherited;
pub use port::{Port, Prepared};
pub use threads::{Server, Threads};
pub use tls::{TlsFault, server_config};
