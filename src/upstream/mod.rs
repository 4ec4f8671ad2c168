//! Reaches the application: chooses a server, gets a connection to it, sends one request.
//!
//! Each network thread keeps its own connections, because a connection's driver belongs to the
//! runtime that it was made on; loads and `max_connections` are shared. The connections are
//! hyper's, the pools our own: hyper-util's client keys its pool by the request's authority (with
//! HTTP/2 that is the client's, so each virtual host would get connections of its own), does not
//! tell whether a connection was used before, and does not count toward a limit.
//!
//! It must never send a request twice that a server may have acted on, unless it is safe to
//! repeat; never again once a response head came; and never outlive its caller: who drops
//! [`Upstream::send`] or the response body ends the exchange at the server.

mod attempt;
mod balance;
mod client;
mod connect;
mod endpoint;
mod error;
mod gate;
mod health;
mod http1;
mod http2;
mod io;
mod proxy_header;
mod resolve;
mod sending;
mod standing;
pub mod strict;
mod thrift;
mod tls;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::time::Instant;

use crate::body::Body;
use crate::config::settings;
use crate::telemetry::ServerMetrics;
use attempt::{Exchange, Setback};
use balance::Candidate;
use endpoint::Endpoint;
use gate::Gate;
use health::Illness;
use standing::Change;
use thrift::Thrift;

pub use crate::body::{Lease, Load};
pub use error::{BuildError, ConnectError, SendError, TlsError};

/// One named upstream: the servers of one application.
pub struct Upstream {
    name: Arc<str>,
    endpoints: Box<[Endpoint]>,
    protocol: settings::UpstreamProtocol,
    balance: settings::Balance,
    turn: AtomicUsize,
    gate: Arc<Gate>,
    connect_timeout: Duration,
    retries: u32,
    thrift: Thrift,
    health: Option<settings::Health>,
    eject: Option<settings::Eject>,
    watched: AtomicBool,
}

/// How one request is to be sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Call {
    /// The method is idempotent (RFC 9110 section 9.2.2): without an answer on a reused connection
    /// it may be sent once more, if its body is still whole.
    pub repeatable: bool,
    /// From the end of the request, or the last piece of it that the server took, to the response
    /// head. Absent: none (gRPC).
    pub head_timeout: Option<Duration>,
    /// The client's address, and ours that it came to: for `proxy_protocol`.
    pub client: Option<SocketAddr>,
    /// See `client`.
    pub local: Option<SocketAddr>,
}

/// A response head, its body still coming.
pub struct Answer {
    /// As it came; for a 101, `hyper::upgrade::on` gives its stream.
    pub response: Response<Incoming>,
    /// Who answered.
    pub server: Arc<str>,
    /// To be kept as long as the body, or the upgraded stream.
    pub lease: Lease,
}

impl Upstream {
    /// Reads certificates; connects to nothing. `demo` is where the demo application listens;
    /// `metrics` gives the handles of the server with this label. What `before`, the same upstream
    /// under earlier settings, knows of its servers is kept.
    ///
    /// # Errors
    /// Certificates that are unreadable or unusable; settings that contradict each other.
    pub fn new(
        settings: &settings::Upstream,
        before: Option<&Self>,
        demo: Option<SocketAddr>,
        metrics: impl Fn(&str) -> ServerMetrics,
    ) -> Result<Self, BuildError> {
        let gate = Gate::new(settings.max_connections);
        let builder = endpoint::Builder::new(settings, demo, &gate)?;
        let endpoints = settings
            .servers
            .iter()
            .map(|server| builder.endpoint(server, metrics(&server.to_string())))
            .collect::<Result<Box<[Endpoint]>, _>>()?;
        for endpoint in &endpoints {
            let known = before.into_iter().flat_map(|before| &before.endpoints);
            if let Some(known) = known
                .into_iter()
                .find(|known| known.label == endpoint.label)
            {
                endpoint.inherit(known);
            }
        }
        Ok(Self {
            name: settings.name.as_str().into(),
            endpoints,
            protocol: settings.protocol,
            balance: settings.balance,
            turn: AtomicUsize::new(0),
            gate,
            connect_timeout: settings.connect_timeout,
            retries: settings.retries,
            thrift: Thrift::new(),
            health: settings.health.clone(),
            eject: settings.eject.clone(),
            watched: AtomicBool::new(false),
        })
    }

    /// Begins the active checks, on the runtime that this is called on; once is enough.
    pub fn watch(self: &Arc<Self>) {
        let Some(health) = &self.health else { return };
        if self.watched.swap(true, Ordering::Relaxed) {
            return;
        }
        for index in 0..self.endpoints.len() {
            tokio::spawn(health::watch(Arc::downgrade(self), index, health.clone()));
        }
    }

    /// Its name in the configuration.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// What is spoken to its servers.
    #[must_use]
    pub fn protocol(&self) -> settings::UpstreamProtocol {
        self.protocol
    }

    /// Closes the connections of all threads that carry nothing.
    pub fn close_idle(&self) {
        for endpoint in &self.endpoints {
            endpoint.client.close_idle();
        }
    }

    /// Sends `request` and waits for the response head.
    ///
    /// The URI may be in origin or absolute form; Host, or the URI's authority, reaches the server
    /// as it is. Hop-by-hop fields are the caller's; so are `Connection` and `Upgrade` for an
    /// upgrade, after which the connection is not used again. The request's extensions are kept.
    ///
    /// A server that cannot be connected to is passed over for the next, whatever the request is:
    /// nothing was sent.
    ///
    /// # Errors
    /// No response head came: [`SendError`] says why.
    pub async fn send(&self, request: Request<Body>, call: Call) -> Result<Answer, SendError> {
        self.thrift.earn();
        let mut exchange = Box::new(Exchange::new(request, call, self.retries));
        let began = Instant::now();
        let mut tried = Vec::new();
        let mut index = self.choose(&tried).ok_or(SendError::NoServer)?;
        loop {
            let error = match self.attempt(&self.endpoints[index], exchange).await {
                Ok(answer) => return Ok(answer),
                Err(Setback::Over(error)) => return Err(error),
                Err(Setback::Again(again)) => {
                    exchange = again;
                    continue;
                }
                Err(Setback::Unreached(error, again)) => {
                    exchange = again;
                    error
                }
            };
            tried.push(index);
            // Those that refuse at once are all asked; waiting in vain is done twice at most.
            if began.elapsed() >= self.connect_timeout * 2 {
                return Err(error);
            }
            let Some(next) = self.choose(&tried) else {
                return Err(error);
            };
            index = next;
        }
    }

    /// Where all are left out, all are asked: no answer at all would be worse.
    fn choose(&self, tried: &[usize]) -> Option<usize> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let choose = |all: bool| {
            balance::choose(self.balance, turn, self.endpoints.len(), |index| {
                let candidate = self.endpoints[index].candidate();
                Candidate {
                    usable: (all || candidate.usable) && !tried.contains(&index),
                    ..candidate
                }
            })
        };
        let index = choose(false).or_else(|| choose(true))?;
        let endpoint = &self.endpoints[index];
        if !endpoint.is_settled() {
            endpoint.judge(|standing| standing.chosen(Instant::now()));
        }
        Some(index)
    }

    /// The server answered a request, with this status.
    fn answered(&self, endpoint: &Endpoint, status: StatusCode) {
        // What a gateway says of the application behind it, or an application of its own state.
        // A 500 is about one request: a bug on one path must not take the others away.
        if matches!(status.as_u16(), 502..=504) {
            return self.failed(endpoint, &format_args!("it answers {status}"));
        }
        if !endpoint.is_settled() {
            let change = endpoint.judge(|standing| standing.answered(Instant::now()));
            self.tell(endpoint, change, &"");
        }
    }

    /// The server failed a request.
    fn failed(&self, endpoint: &Endpoint, cause: &dyn Display) {
        let Some(eject) = &self.eject else { return };
        let spare = self
            .endpoints
            .iter()
            .any(|other| other.label != endpoint.label && other.is_up());
        let change = endpoint.judge(|standing| standing.failed(Instant::now(), eject, spare));
        self.tell(endpoint, change, cause);
    }

    /// A check of the server ended so.
    fn checked(&self, endpoint: &Endpoint, health: &settings::Health, found: Result<(), Illness>) {
        let now = Instant::now();
        let change = endpoint.judge(|standing| standing.checked(now, found.is_ok(), health));
        match found {
            Ok(()) => self.tell(endpoint, change, &""),
            Err(illness) => self.tell(endpoint, change, &illness),
        }
    }

    fn tell(&self, endpoint: &Endpoint, change: Option<Change>, cause: &dyn Display) {
        let (upstream, server) = (&self.name, &endpoint.label);
        match change {
            Some(Change::Out) => {
                tracing::warn!(%upstream, %server, %cause, "the server gets no more requests");
            }
            Some(Change::Back) => {
                tracing::info!(%upstream, %server, "the server gets requests again");
            }
            None => {}
        }
    }
}
