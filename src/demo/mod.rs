//! The application behind `servers: [demo]`: what Thinwire is shown, tried and measured with.
//!
//! A plain HTTP server (HTTP/1.1 and h2c) on a loopback port of its own, on a thread of its own, so
//! that the proxy reaches it as it reaches any other application. Its bytes are the same in every
//! run. It never compresses, never looks at Accept-Encoding and never knows of the proxy.

mod answer;
mod catalogue;
mod data;
mod echo;
mod events;
mod socket;

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;

/// After a failed accept (out of descriptors, mostly), so that the thread does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Starts the application and says where it listens: a port of 127.0.0.1 that the kernel chose.
///
/// It runs on one thread, `demo`, until the process ends.
///
/// # Errors
/// No port, no thread, or no runtime to be had.
pub fn start() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    std::thread::Builder::new()
        .name("demo".to_owned())
        .spawn(move || runtime.block_on(serve(listener)))?;
    Ok(address)
}

async fn serve(listener: TcpListener) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "the demo application cannot accept connections");
            return;
        }
    };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(converse(stream));
            }
            Err(error) => {
                tracing::warn!(%error, "the demo application did not get a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn converse(stream: TcpStream) {
    // Without it only latency suffers.
    let _ = stream.set_nodelay(true);
    let service =
        service_fn(|request| async { Ok::<_, Infallible>(answer::answer(request).await) });
    let served = auto::Builder::new(TokioExecutor::new())
        .serve_connection_with_upgrades(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(error, "a connection to the demo application ended early");
    }
}

#[cfg(test)]
mod tests;
