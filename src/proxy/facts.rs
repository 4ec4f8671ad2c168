//! What is known of a connection before its first request.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use http::HeaderMap;
use ipnet::IpNet;
use parking_lot::Mutex;

use crate::config::settings::Address;
use crate::head::forwarded;
use crate::protocol::Switched;

/// A listening address, as far as exchanges care.
#[derive(Debug, Clone)]
pub struct Listening {
    /// As configured: what `match.listener` names.
    pub address: Address,
    /// It speaks TLS.
    pub tls: bool,
    /// Whose X-Forwarded-* and Forwarded are kept.
    pub trust: Vec<IpNet>,
    /// Its connections begin with a PROXY header.
    pub proxy_protocol: bool,
}

/// Who is at the other end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Client {
    /// As the socket or a PROXY header has it. Absent on unix sockets.
    pub address: Option<SocketAddr>,
}

/// One client connection.
pub struct Facts {
    /// Where it came in.
    pub listening: Arc<Listening>,
    /// Who it is.
    pub client: Client,
    /// What the app is told of it.
    pub forwarded: forwarded::Peer,
    /// What an HTTP/1 connection is to become once its 101 is written.
    pub switched: Mutex<Option<Switched>>,
    activity: Mutex<Activity>,
}

/// What runs on a connection.
struct Activity {
    running: usize,
    quiet_since: Instant,
}

/// An exchange that runs on a connection.
pub struct Busy(Arc<Facts>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut activity = self.0.activity.lock();
        activity.running -= 1;
        activity.quiet_since = Instant::now();
    }
}

impl Facts {
    /// A connection of `client` to `listening`, which showed this certificate (DER).
    #[must_use]
    pub fn new(listening: Arc<Listening>, client: Client, certificate: Option<&[u8]>) -> Self {
        let trusted = client
            .ip()
            .is_none_or(|ip| listening.trust.iter().any(|net| net.contains(&ip)));
        let forwarded =
            forwarded::Peer::new(client.ip(), listening.tls, trusted).with_certificate(certificate);
        Self {
            listening,
            client,
            forwarded,
            switched: Mutex::new(None),
            activity: Mutex::new(Activity {
                running: 0,
                quiet_since: Instant::now(),
            }),
        }
    }

    /// The client address that a request is from: where the connection is of a trusted proxy, the
    /// one that its fields name.
    #[must_use]
    pub fn asker(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let trusts = |ip: IpAddr| self.listening.trust.iter().any(|net| net.contains(&ip));
        self.forwarded
            .origin(headers, trusts)
            .or_else(|| self.client.ip())
    }

    /// Since when no exchange runs on it; `None`: one does.
    #[must_use]
    pub fn quiet_since(&self) -> Option<Instant> {
        let activity = self.activity.lock();
        (activity.running == 0).then_some(activity.quiet_since)
    }

    /// An exchange begins; it ends when what is returned is dropped.
    #[must_use]
    pub fn busy(self: &Arc<Self>) -> Busy {
        self.activity.lock().running += 1;
        Busy(Arc::clone(self))
    }
}

impl Client {
    /// Its address, IPv4 also where it came in mapped.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        self.address.map(|address| address.ip().to_canonical())
    }
}
