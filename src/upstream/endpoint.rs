//! One server of an upstream: how it is reached, what it carries, whether it is in use.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::uri::{Authority, Scheme};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::balance::Candidate;
use super::client::{Client, Link};
use super::connect::{Connector, Ends, Target};
use super::error::{BuildError, ConnectError, SendError, TlsError};
use super::gate::{Gate, Place};
use super::resolve::Resolver;
use super::standing::{Offer, Standing};
use super::tls::{self, Tls};
use super::{http1, http2};
use crate::body::Load;
use crate::config::settings::{ProxyProtocol, Server, Upstream as Settings, UpstreamProtocol};
use crate::telemetry::ServerMetrics;

/// One server.
pub(super) struct Endpoint {
    pub(super) label: Arc<str>,
    pub(super) metrics: ServerMetrics,
    pub(super) load: Load,
    pub(super) client: Client,
    pub(super) connector: Connector,
    standing: Mutex<Standing>,
    /// Its standing is that of a server that never failed: nobody has to look.
    settled: AtomicBool,
    authority: Authority,
}

impl Endpoint {
    pub(super) fn candidate(&self) -> Candidate {
        let offer = if self.is_settled() {
            Offer::FULL
        } else {
            self.standing.lock().offer(Instant::now())
        };
        Candidate {
            usable: offer.usable,
            in_flight: self.load.count(),
            share: offer.share,
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Relaxed)
    }

    /// Changes its standing, and the gauge with it.
    pub(super) fn judge<T>(&self, change: impl FnOnce(&mut Standing) -> T) -> T {
        let mut standing = self.standing.lock();
        let changed = change(&mut standing);
        self.settled.store(standing.is_settled(), Ordering::Relaxed);
        self.metrics.healthy.set(i64::from(standing.is_up()));
        changed
    }

    pub(super) fn is_up(&self) -> bool {
        self.is_settled() || self.standing.lock().is_up()
    }

    /// What is known of the same server under earlier settings.
    pub(super) fn inherit(&self, before: &Self) {
        let known = before.standing.lock().clone();
        self.judge(|standing| *standing = known);
    }

    pub(super) fn scheme(&self) -> Scheme {
        if self.connector.is_tls() {
            Scheme::HTTPS
        } else {
            Scheme::HTTP
        }
    }

    /// Its own name, for requests that came without an authority.
    pub(super) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Makes a connection, within the upstream's time for that.
    pub(super) async fn open(&self, ends: Ends, place: Place) -> Result<Link, SendError> {
        let opening = async {
            let io = self.connector.connect(ends, place).await?;
            self.client.begin(io).await
        };
        match tokio::time::timeout(self.connector.timeout, opening).await {
            Ok(Ok(link)) => Ok(link),
            Ok(Err(ConnectError::Late)) | Err(_) => Err(SendError::ConnectTimeout {
                server: Arc::clone(&self.label),
            }),
            Ok(Err(source)) => Err(SendError::Connect {
                server: Arc::clone(&self.label),
                source,
            }),
        }
    }
}

/// Builds the servers of an upstream; certificates are read once for all of them.
pub(super) struct Builder<'a> {
    settings: &'a Settings,
    demo: Option<SocketAddr>,
    gate: &'a Arc<Gate>,
    tls: Option<Tls>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        settings: &'a Settings,
        demo: Option<SocketAddr>,
        gate: &'a Arc<Gate>,
    ) -> Result<Self, BuildError> {
        if settings.proxy_protocol != ProxyProtocol::None
            && settings.protocol == UpstreamProtocol::Http2
        {
            return Err(BuildError::SharedProxyProtocol(
                settings.name.as_str().into(),
            ));
        }
        let wanted = settings
            .servers
            .iter()
            .any(|server| matches!(server, Server::Tcp { tls: true, .. }));
        let tls = wanted
            .then(|| Tls::new(&settings.tls, settings.protocol))
            .transpose()
            .map_err(|source| tls_error(settings, source))?;
        Ok(Self {
            settings,
            demo,
            gate,
            tls,
        })
    }

    pub(super) fn endpoint(
        &self,
        server: &Server,
        metrics: ServerMetrics,
    ) -> Result<Endpoint, BuildError> {
        metrics.healthy.set(1);
        Ok(Endpoint {
            label: server.to_string().into(),
            metrics,
            load: Load::default(),
            client: self.client(),
            connector: Connector {
                target: self.target(server)?,
                proxy_protocol: self.settings.proxy_protocol,
                timeout: self.settings.connect_timeout,
            },
            authority: authority(server),
            standing: Mutex::default(),
            settled: AtomicBool::new(true),
        })
    }

    fn client(&self) -> Client {
        let idle: Duration = self.settings.idle_timeout;
        match self.settings.protocol {
            UpstreamProtocol::Http1 => {
                let keeps = self.settings.proxy_protocol == ProxyProtocol::None;
                Client::Http1(http1::Pool::new(idle, keeps, Arc::clone(self.gate)))
            }
            UpstreamProtocol::Http2 => Client::Http2(http2::Pool::new(idle)),
        }
    }

    fn target(&self, server: &Server) -> Result<Target, BuildError> {
        Ok(match (server, &self.tls) {
            (Server::Unix(path), _) => Target::Unix(path.clone()),
            (Server::Demo, _) => {
                let demo = self
                    .demo
                    .ok_or_else(|| BuildError::NoDemo(self.settings.name.as_str().into()))?;
                Target::Tcp(Arc::new(Resolver::new(&demo.ip().to_string(), demo.port())))
            }
            (
                Server::Tcp {
                    tls: true,
                    host,
                    port,
                },
                Some(tls),
            ) => {
                let name = tls::server_name(&self.settings.tls, host)
                    .map_err(|source| tls_error(self.settings, source))?;
                Target::Tls(Arc::new(Resolver::new(host, *port)), tls.clone(), name)
            }
            (Server::Tcp { host, port, .. }, _) => {
                Target::Tcp(Arc::new(Resolver::new(host, *port)))
            }
        })
    }
}

fn tls_error(settings: &Settings, source: TlsError) -> BuildError {
    BuildError::Tls {
        upstream: settings.name.as_str().into(),
        source,
    }
}

/// What is sent as authority when a client sent none.
fn authority(server: &Server) -> Authority {
    let label = server.to_string();
    let named = label.split_once("://").map(|(_, authority)| authority);
    named
        .and_then(|authority| authority.parse().ok())
        .unwrap_or_else(|| Authority::from_static("localhost"))
}
