//! The network threads: each runs its own event loop and accepts from every port.
//!
//! A connection stays on the thread that accepted it, so nothing on its way to the app and back
//! crosses threads but what goes to the pool.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{sleep, timeout};

use super::connection;
use super::crowd::{Crowd, Member};
use super::port::{Acceptor, Port};
use crate::config::settings::Network;
use crate::proxy::{Client, Shared};

/// A pause after the process ran out of file descriptors or memory: spinning would not help.
const BREATH: Duration = Duration::from_millis(50);

/// What all connections share.
pub struct Server {
    pub(super) shared: Arc<Shared>,
    places: Arc<Semaphore>,
    most: u32,
    pub(super) draining: watch::Receiver<bool>,
    crowd: Arc<Crowd>,
}

impl Server {
    /// A place among the connections of this client's address, as long as it is held.
    pub(super) fn place_for(&self, client: Client) -> Option<Member> {
        let most = self
            .shared
            .snapshot
            .load()
            .settings
            .network
            .per_client_connections;
        let place = self.crowd.join(client.ip(), most);
        if place.is_none() {
            self.shared.metrics.refused("per_client_connections").inc();
            tracing::debug!(client = ?client.address, "it has enough connections");
        }
        place
    }

    pub(super) fn network(&self) -> Network {
        self.shared.snapshot.load().settings.network.clone()
    }

    /// From a head's first byte to its last; zero is endless.
    pub(super) fn head_timeout(&self) -> Duration {
        let snapshot = self.shared.snapshot.load();
        snapshot.settings.defaults.timeouts.request_head
    }
}

/// The running threads.
pub struct Threads {
    server: Arc<Server>,
    drain: watch::Sender<bool>,
    orders: Vec<mpsc::UnboundedSender<Arc<Port>>>,
}

impl Threads {
    /// Starts `count` threads that serve at most `most` connections together.
    ///
    /// # Errors
    /// The system gives no thread or no event loop.
    pub fn start(shared: Arc<Shared>, count: usize, most: usize) -> io::Result<Self> {
        let drain = watch::Sender::new(false);
        let most = u32::try_from(most.min(Semaphore::MAX_PERMITS)).unwrap_or(u32::MAX);
        let server = Arc::new(Server {
            shared,
            places: Arc::new(Semaphore::new(most as usize)),
            most,
            draining: drain.subscribe(),
            crowd: Arc::default(),
        });
        let mut orders = Vec::new();
        for number in 0..count {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let (order, ordered) = mpsc::unbounded_channel();
            let server = Arc::clone(&server);
            std::thread::Builder::new()
                .name(format!("thinwire-net-{number}"))
                .spawn(move || runtime.block_on(run(server, ordered)))?;
            orders.push(order);
        }
        Ok(Self {
            server,
            drain,
            orders,
        })
    }

    /// Accepts on `port` from now on.
    pub fn listen(&self, port: &Arc<Port>) {
        for order in &self.orders {
            // A thread ends only with the process.
            let _ = order.send(Arc::clone(port));
        }
    }

    /// From now on no connection is kept beyond what runs on it.
    pub fn leave(&self) {
        self.server.shared.drain();
        self.drain.send_replace(true);
    }

    /// Lets what runs finish; true: all of it did within `patience`.
    ///
    /// They are to be told to [`leave`](Self::leave) before, and the ports to be closed.
    pub async fn drain(&self, patience: Duration) -> bool {
        timeout(patience, self.server.places.acquire_many(self.server.most))
            .await
            .is_ok()
    }
}

async fn run(server: Arc<Server>, mut ordered: mpsc::UnboundedReceiver<Arc<Port>>) {
    while let Some(port) = ordered.recv().await {
        match port.acceptor() {
            Ok(Some(acceptor)) => {
                tokio::spawn(accept(Arc::clone(&server), port, acceptor));
            }
            // It was closed before this thread came to it.
            Ok(None) => {}
            Err(error) => {
                tracing::error!(%error, address = port.url(), "this thread cannot listen");
            }
        }
    }
}

/// Accepts until the port closes.
async fn accept(server: Arc<Server>, port: Arc<Port>, acceptor: Acceptor) {
    let mut closing = port.closing();
    let mut complained = false;
    loop {
        let accepted = tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => return,
            accepted = acceptor.accept() => accepted,
        };
        match accepted {
            Ok((stream, client)) => {
                complained = false;
                // Past `max_connections` this one waits, and those behind it in the backlog.
                let place = tokio::select! {
                    biased;
                    _ = closing.wait_for(|closing| *closing) => return,
                    place = Arc::clone(&server.places).acquire_owned() => place,
                };
                let Ok(place) = place else { return };
                let (server, port) = (Arc::clone(&server), Arc::clone(&port));
                let open = server.shared.metrics.connection();
                tokio::spawn(async move {
                    connection::serve(&server, &port, stream, client).await;
                    drop((open, place));
                });
            }
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                if !complained {
                    tracing::error!(%error, address = port.url(), "cannot accept; trying on");
                }
                complained = true;
                sleep(BREATH).await;
            }
        }
    }
}

/// The connection was gone before it was accepted; the next may be fine.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::NotConnected
            | io::ErrorKind::InvalidInput
    )
}
