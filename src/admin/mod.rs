//! The operator's address: whether the process lives and takes requests, its metrics, its
//! configuration, and the dashboard.
//!
//! It has a thread of its own, so that it answers while the network threads are busy. What it
//! holds is bounded: connections, heads, a purge's body, how long each may take. It
//! speaks HTTP/1 alone: scrapers and probes do, and every wait of that server has a limit.

mod answer;
mod connection;
mod dashboard;
mod history;
mod purge;
mod readiness;

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::protocol::cached::Purge;
use answer::Desk;
pub use readiness::Readiness;

/// Forgets what is named, and counts it; `None` where the URL is none.
pub type Purging = dyn Fn(&Purge) -> Option<Purged> + Send + Sync;

/// A purge under way: the objects that this instance forgot.
pub type Purged = Pin<Box<dyn Future<Output = usize> + Send>>;

/// What the address shows.
pub struct AdminState {
    /// Where it listens; port 0 lets the kernel choose.
    pub address: SocketAddr,
    /// What `/config`, the purge and the dashboard want as a Bearer token. Empty: none, and they answer on loopback
    /// addresses only.
    pub token: String,
    /// What `/ready` says.
    pub readiness: Readiness,
    /// The effective configuration, secrets masked.
    pub config: Box<dyn Fn() -> Value + Send + Sync>,
    /// Forgets copies.
    pub purge: Box<Purging>,
    /// The metrics, as [`crate::telemetry::CONTENT_TYPE`].
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
}

/// The running server; dropping it stops it.
#[derive(Debug)]
pub struct AdminHandle {
    address: SocketAddr,
    stop: watch::Sender<bool>,
}

/// Listens and starts the thread.
///
/// # Errors
/// The address cannot be listened on, or the system refuses a thread or descriptors.
pub fn start(state: AdminState) -> io::Result<AdminHandle> {
    let listener = std::net::TcpListener::bind(state.address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let listener = {
        let _context = runtime.enter();
        TcpListener::from_std(listener)?
    };
    let (stop, stopped) = watch::channel(false);
    let desk = Arc::new(Desk::new(state, address));
    std::thread::Builder::new()
        .name("admin".to_owned())
        .spawn(move || runtime.block_on(connection::serve(listener, desk, stopped)))?;
    Ok(AdminHandle { address, stop })
}

impl AdminHandle {
    /// Where it listens, with the port that the kernel chose.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Accepts nothing more; answers that are under way get a moment to finish.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }
}

#[cfg(test)]
mod tests;
