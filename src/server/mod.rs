//! Listens: addresses, TLS, connections, the way out.

mod connection;
mod crowd;
pub mod gate;
mod http1;
mod http2;
mod inherited;
mod port;
mod proxy_protocol;
mod stream;
mod threads;
mod tls;

pub use inherited::Inherited;
pub use port::{Port, Prepared};
pub use threads::{Server, Threads};
pub use tls::{TlsFault, server_config};
